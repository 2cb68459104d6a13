package main

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/vmware/govmomi/vapi/rest"
	"github.com/vmware/govmomi/vapi/tags"
)

func TestATagIsTakenOffManyObjectsInOneCall(t *testing.T) {
	s := startTest(t)
	r := rest.NewClient(s.login("a").Client)
	s.must(r.Login(s.context(), url.UserPassword(testUser, testPassword)))
	manager := tags.NewManager(r)
	category, err := manager.CreateCategory(s.context(), &tags.Category{Name: "x"})
	s.must(err)
	datacenter, folder := s.vc("a").find("Datacenter", "dc-a")[0], s.vc("a").find("Folder", "lab-x7k2p")[0]
	made := map[string]string{}
	for _, name := range []string{"kept", "gone"} {
		made[name], err = manager.CreateTag(s.context(), &tags.Tag{Name: name, CategoryID: category})
		s.must(err)
		s.must(manager.AttachTag(s.context(), made[name], datacenter))
	}
	s.must(manager.AttachTag(s.context(), made["gone"], folder))

	detach := func(tag string) (success bool, err error) {
		path := r.Resource("/com/vmware/cis/tagging/tag-association").WithID(tag).WithAction("detach-tag-from-multiple-objects")
		var result struct{ Success bool }
		err = r.Do(s.context(), path.Request(http.MethodPost, map[string]any{"object_ids": []any{
			map[string]string{"type": "Datacenter", "id": datacenter.Reference().Value},
			map[string]string{"type": "Folder", "id": folder.Reference().Value},
		}}), &result)
		return result.Success, err
	}
	for range 2 {
		if success, err := detach(made["gone"]); err != nil || !success {
			t.Fatalf("success is %v, error %v", success, err)
		}
	}
	attached, err := manager.ListAttachedTags(s.context(), datacenter)
	s.must(err)
	objects, err := manager.ListAttachedObjects(s.context(), made["gone"])
	s.must(err)
	if len(attached) != 1 || attached[0] != made["kept"] || len(objects) != 0 {
		t.Errorf("the datacenter has %v, the tag that is gone is on %v", attached, objects)
	}
	if _, err := detach("urn:vmomi:InventoryServiceTag:nobody:GLOBAL"); err == nil || !strings.Contains(err.Error(), "404") {
		t.Errorf("an unknown tag: %v", err)
	}
	s.must(r.Logout(s.context()))
	if _, err := detach(made["gone"]); err == nil || !strings.Contains(err.Error(), "401") {
		t.Errorf("without a session: %v", err)
	}
}
