package main

import (
	"encoding/json"
	"strings"

	"github.com/vmware/govmomi/vim25/types"
)

const tagging = "/rest/com/vmware/cis/tagging"

var taggingNeeds = map[string]string{
	"POST " + tagging + "/category":        "InventoryService.Tagging.CreateCategory",
	"POST " + tagging + "/tag":             "InventoryService.Tagging.CreateTag",
	"PATCH " + tagging + "/category/{id}":  "InventoryService.Tagging.EditCategory",
	"PATCH " + tagging + "/tag/{id}":       "InventoryService.Tagging.EditTag",
	"DELETE " + tagging + "/category/{id}": "InventoryService.Tagging.DeleteCategory",
	"DELETE " + tagging + "/tag/{id}":      "InventoryService.Tagging.DeleteTag",
}

// refusedREST is the answer to a tagging call whose privilege is withheld from the session's user.
func (v *vcenter) refusedREST(c *call) *answer {
	if c.API != restAPI || !strings.Contains(c.Method, tagging) || !v.sessions.hasREST(c.http) {
		return nil
	}
	for _, n := range v.restNeeds(c) {
		if v.faults.denies(c.callKey, n.privilege, v.name(n.object)) {
			return restError("NoPermission", "")
		}
	}
	return nil
}

func (v *vcenter) restNeeds(c *call) []need {
	root := v.client.ServiceContent.RootFolder
	if privilege, ok := taggingNeeds[c.Method]; ok {
		return []need{{privilege, root}}
	}
	_, action, _ := strings.Cut(c.Method, "?~action=")
	if !strings.HasPrefix(action, "attach") && !strings.HasPrefix(action, "detach") {
		return nil
	}
	all := []need{{"InventoryService.Tagging.AttachTag", root}}
	for _, object := range objectsOf(c.body) {
		all = append(all, need{"InventoryService.Tagging.ObjectAttachable", object})
	}
	return all
}

// objectsOf reads the objects of an association call, which come alone or in a list.
func objectsOf(body []byte) []types.ManagedObjectReference {
	type id struct {
		Type string `json:"type"`
		ID   string `json:"id"`
	}
	var request struct {
		One  *id  `json:"object_id"`
		Many []id `json:"object_ids"`
	}
	if json.Unmarshal(body, &request) != nil {
		return nil // the simulator answers what it thinks of such a body
	}
	if request.One != nil {
		request.Many = append(request.Many, *request.One)
	}
	var refs []types.ManagedObjectReference
	for _, object := range request.Many {
		refs = append(refs, types.ManagedObjectReference{Type: object.Type, Value: object.ID})
	}
	return refs
}
