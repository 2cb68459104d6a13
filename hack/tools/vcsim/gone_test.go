package main

import (
	"net/http"
	"strconv"
	"testing"

	vimfault "github.com/vmware/govmomi/fault"
	"github.com/vmware/govmomi/find"
	"github.com/vmware/govmomi/object"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/types"
)

func TestAnObjectThatIsGoneCannotBeFoundUntilItIsBack(t *testing.T) {
	s := startTest(t)
	client := s.login("a")
	finder := find.NewFinder(client.Client, true)
	look := func(path string) error {
		list, err := finder.ManagedObjectList(s.context(), path)
		if err == nil && len(list) == 0 {
			err = &find.NotFoundError{}
		}
		return err
	}
	for _, path := range []string{"/dc-a/vm/lab-x7k2p", "/dc-a/vm/rhcos-a", "/dc-a/host/cluster-a", "/dc-a/network/network-a", "/dc-a/datastore/datastore-a", "/dc-a"} {
		s.must(look(path))
		found, err := object.NewSearchIndex(client.Client).FindByInventoryPath(s.context(), path)
		s.must(err)
		id := s.fault("a", fault{Kind: "gone", Object: path})
		if look(path) == nil {
			t.Errorf("%s is still found", path)
		}
		var entity mo.ManagedEntity
		err = object.NewCommon(client.Client, found.Reference()).Properties(s.context(), found.Reference(), []string{"name"}, &entity)
		if !vimfault.Is(err, &types.ManagedObjectNotFound{}) {
			t.Errorf("%s: its reference still leads somewhere: %v", path, err)
		}
		s.ask("DELETE", "/vcenters/a/faults/"+strconv.Itoa(id), nil, nil, http.StatusOK)
		s.must(look(path))
	}
}

func TestOnlyWhatIsThereAndRunsNothingCanGo(t *testing.T) {
	s := startTest(t)
	for _, path := range []string{"/dc-a/vm/nothing", "/dc-a/host/cluster-a/Resources", ""} {
		status := http.StatusNotFound
		if path != "/dc-a/vm/nothing" {
			status = http.StatusBadRequest
		}
		s.ask("POST", "/vcenters/a/faults", map[string]string{"kind": "gone", "object": path}, nil, status)
	}
	if len(s.hits()) != 0 {
		t.Errorf("a refused fault is listed: %v", s.hits())
	}
}
