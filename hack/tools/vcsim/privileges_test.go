package main

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"

	vimfault "github.com/vmware/govmomi/fault"
	"github.com/vmware/govmomi/object"
	"github.com/vmware/govmomi/vapi/rest"
	"github.com/vmware/govmomi/vapi/tags"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/types"
)

func TestAWithheldPrivilegeIsReportedAndEnforced(t *testing.T) {
	s := startTest(t)
	client := s.login("a")
	v := s.vc("a")
	datacenter := v.find("Datacenter", "dc-a")[0].Reference()
	folder := v.find("Folder", "lab-x7k2p")[0].Reference()
	id := s.fault("a", fault{Kind: "privileges", Missing: []string{"Folder.Create"}, Object: "lab-x7k2p"})

	manager := object.NewAuthorizationManager(client.Client)
	fetched, err := manager.FetchUserPrivilegeOnEntities(s.context(), []types.ManagedObjectReference{datacenter, folder}, testUser)
	s.must(err)
	if !slices.Contains(fetched[0].Privileges, "Folder.Create") || slices.Contains(fetched[1].Privileges, "Folder.Create") {
		t.Error("the fetched privileges are wrong")
	}
	has, err := manager.HasUserPrivilegeOnEntities(s.context(), []types.ManagedObjectReference{folder}, testUser, []string{"Folder.Create", "Folder.Delete"})
	s.must(err)
	if granted := has[0].PrivAvailability; granted[0].IsGranted || !granted[1].IsGranted {
		t.Errorf("availability: %+v", granted)
	}
	_, err = object.NewFolder(client.Client, folder).CreateFolder(s.context(), "new")
	var denied *types.NoPermission
	if _, ok := vimfault.As(err, &denied); !ok || denied.PrivilegeId != "Folder.Create" || *denied.Object != folder {
		t.Fatalf("CreateFolder: %v", err)
	}
	if !strings.Contains(err.Error(), "Permission to perform this operation was denied.") {
		t.Errorf("words: %v", err)
	}
	s.ask("DELETE", "/vcenters/a/faults/"+strconv.Itoa(id), nil, nil, http.StatusOK)
	_, err = object.NewFolder(client.Client, folder).CreateFolder(s.context(), "new")
	s.must(err)
}

func TestAWithheldTaggingPrivilegeIsEnforcedByREST(t *testing.T) {
	s := startTest(t)
	client := s.login("a")
	r := rest.NewClient(client.Client)
	s.must(r.Login(s.context(), url.UserPassword(testUser, testPassword)))
	manager := tags.NewManager(r)
	category, err := manager.CreateCategory(s.context(), &tags.Category{Name: "x"})
	s.must(err)
	tag, err := manager.CreateTag(s.context(), &tags.Tag{Name: "y", CategoryID: category})
	s.must(err)

	s.fault("a", fault{Kind: "privileges", Missing: []string{"InventoryService.Tagging.CreateCategory"}})
	if _, err := manager.CreateCategory(s.context(), &tags.Category{Name: "z"}); err == nil || !strings.Contains(err.Error(), "403") {
		t.Errorf("create: %v", err)
	}
	s.fault("a", fault{Kind: "privileges", Missing: []string{"InventoryService.Tagging.ObjectAttachable"}, Object: "dc-a"})
	if err := manager.AttachTag(s.context(), tag, s.vc("a").find("Datacenter", "dc-a")[0]); err == nil || !strings.Contains(err.Error(), "403") {
		t.Errorf("attach: %v", err)
	}
	s.must(manager.AttachTag(s.context(), tag, s.vc("a").find("Folder", "lab-x7k2p")[0]))
}

func TestAnUnknownPrivilegeIsMissingFromThePrivilegeList(t *testing.T) {
	s := startTest(t)
	client := s.login("a")
	const name = "InventoryService.Tagging.ObjectAttachable"
	read := func() bool {
		t.Helper()
		var manager mo.AuthorizationManager
		ref := *client.ServiceContent.AuthorizationManager
		s.must(client.RetrieveOne(s.context(), ref, []string{"privilegeList"}, &manager))
		if len(manager.PrivilegeList) < 100 {
			t.Fatalf("only %d privileges", len(manager.PrivilegeList))
		}
		return slices.ContainsFunc(manager.PrivilegeList, func(p types.AuthorizationPrivilege) bool { return p.PrivId == name })
	}
	if !read() {
		t.Fatal("the list lacks it from the start")
	}
	s.fault("a", fault{Kind: "privileges", Unknown: []string{name}})
	if read() {
		t.Fatal("the list still has it")
	}
}
