package main

import (
	"net/http"
	"testing"

	"github.com/vmware/govmomi/find"
	"github.com/vmware/govmomi/vim25/mo"
)

func TestAnInstalledMachineIsPoweredOnWithAnAddressAndShowsTheUUIDsOfItsDisks(t *testing.T) {
	s := startTest(t)
	guests := s.guestStream()
	s.ask("POST", "/vcenters/a/vms", map[string]any{
		"name": "master-0", "template": "/dc-a/vm/rhcos-a", "folder": "/dc-a/vm", "resourcePool": "/dc-a/host/cluster-a/Resources",
		"datastore": "/dc-a/datastore/datastore-a", "cpus": 4, "memoryMiB": 16384,
	}, nil, http.StatusOK)
	guests.until("the machine to run", func(g *guest) bool {
		return g.Name == "master-0" && g.Power == poweredOn && g.IP != ""
	})
	vm, err := find.NewFinder(s.login("a").Client).VirtualMachine(t.Context(), "/dc-a/vm/master-0")
	if err != nil {
		t.Fatal(err)
	}
	var made mo.VirtualMachine
	if err := vm.Properties(t.Context(), vm.Reference(), []string{"config.flags"}, &made); err != nil {
		t.Fatal(err)
	}
	if shown := made.Config.Flags.DiskUuidEnabled; shown == nil || !*shown {
		t.Errorf("disk.enableUUID is %v", shown)
	}
}
