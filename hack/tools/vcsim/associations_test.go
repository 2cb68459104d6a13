package main

import (
	"net/url"
	"testing"

	"github.com/vmware/govmomi/object"
	"github.com/vmware/govmomi/vapi/rest"
	"github.com/vmware/govmomi/vapi/tags"
)

func TestATagIsOnNoVirtualMachineThatIsGone(t *testing.T) {
	s := startTest(t)
	client := s.login("a")
	r := rest.NewClient(client.Client)
	s.must(r.Login(s.context(), url.UserPassword(testUser, testPassword)))
	manager := tags.NewManager(r)
	category, err := manager.CreateCategory(s.context(), &tags.Category{Name: "x"})
	s.must(err)
	tag, err := manager.CreateTag(s.context(), &tags.Tag{Name: "y", CategoryID: category})
	s.must(err)
	datacenter := s.vc("a").find("Datacenter", "dc-a")[0]
	vm := object.NewVirtualMachine(client.Client, s.vc("a").registry.Any("VirtualMachine").Reference())
	s.must(manager.AttachTag(s.context(), tag, datacenter))
	s.must(manager.AttachTag(s.context(), tag, vm))

	s.must(act(s.context(), vm, "destroy"))

	objects, err := manager.ListAttachedObjects(s.context(), tag)
	s.must(err)
	if len(objects) != 1 || objects[0].Reference() != datacenter.Reference() {
		t.Errorf("the tag is on %v", objects)
	}
}
