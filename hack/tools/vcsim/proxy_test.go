package main

import (
	"net/http"
	"net/url"
	"testing"

	"github.com/vmware/govmomi/vapi/rest"
	"github.com/vmware/govmomi/vapi/tags"
)

func (s *testSite) calls() map[string]callCount {
	s.Helper()
	var all []callCount
	s.ask("GET", "/calls", nil, &all, http.StatusOK)
	calls := map[string]callCount{}
	for _, c := range all {
		calls[c.VCenter+" "+c.Client+" "+c.API+" "+c.Method] = c
	}
	return calls
}

func TestCallsAreCountedByVCenterClientAndMethod(t *testing.T) {
	s := startTest(t)
	client := s.login("a")
	s.ask("POST", "/calls/reset", nil, nil, http.StatusOK)
	for range 3 {
		s.must(s.ping(client))
	}
	calls := s.calls()
	seen := calls["a "+testClient+" soap CurrentTime"]
	if len(calls) != 1 || seen.Count != 3 || seen.BytesIn == 0 || seen.BytesOut == 0 || seen.BytesIn%3 != 0 {
		t.Fatalf("calls: %+v", calls)
	}
}

func TestRESTCallsAreCountedWithoutTheIdentifiersInTheirPaths(t *testing.T) {
	s := startTest(t)
	client := s.login("a")
	r := rest.NewClient(client.Client)
	s.must(r.Login(s.context(), url.UserPassword(testUser, testPassword)))
	manager := tags.NewManager(r)
	for _, name := range []string{"one", "two"} {
		category, err := manager.CreateCategory(s.context(), &tags.Category{Name: name, Cardinality: "SINGLE"})
		s.must(err)
		tag, err := manager.CreateTag(s.context(), &tags.Tag{Name: "tag", CategoryID: category})
		s.must(err)
		s.must(manager.AttachTag(s.context(), tag, s.vc("a").find("Datacenter", "dc-a")[0]))
	}
	calls := s.calls()
	for _, method := range []string{
		"POST /rest/com/vmware/cis/tagging/category",
		"POST /rest/com/vmware/cis/tagging/tag",
		"POST /rest/com/vmware/cis/tagging/tag-association/{id}?~action=attach",
	} {
		if got := calls["a "+testClient+" rest "+method].Count; got != 2 {
			t.Errorf("%s: %d calls; all: %v", method, got, calls)
		}
	}
}

func TestTheControlAPITagsWithoutBeingCounted(t *testing.T) {
	s := startTest(t)
	request := tagRequest{Category: "openshift-region", Tag: "east", Type: "Datacenter", Object: "dc-a"}
	s.ask("POST", "/vcenters/a/tags", request, nil, http.StatusOK)
	s.ask("POST", "/vcenters/a/tags", request, nil, http.StatusOK)
	if calls := s.calls(); len(calls) != 0 {
		t.Errorf("calls: %v", calls)
	}
	client := s.login("a")
	r := rest.NewClient(client.Client)
	s.must(r.Login(s.context(), url.UserPassword(testUser, testPassword)))
	attached, err := tags.NewManager(r).GetAttachedTags(s.context(), s.vc("a").find("Datacenter", "dc-a")[0])
	s.must(err)
	if len(attached) != 1 || attached[0].Name != "east" {
		t.Fatalf("attached: %+v", attached)
	}
	request.Object = "nowhere"
	s.ask("POST", "/vcenters/a/tags", request, nil, http.StatusNotFound)
}

func TestAFolderOrderedTwiceIsMadeOnce(t *testing.T) {
	s := startTest(t)
	var first, second map[string]string
	s.ask("POST", "/vcenters/a/folders", folderRequest{"dc-a", "new/nested"}, &first, http.StatusOK)
	s.ask("POST", "/vcenters/a/folders", folderRequest{"dc-a", "new/nested"}, &second, http.StatusOK)
	if first["reference"] == "" || first["reference"] != second["reference"] {
		t.Fatalf("references %v and %v", first, second)
	}
}
