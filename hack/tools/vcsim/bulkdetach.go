package main

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
)

const bulkDetach = "POST " + tagging + "/tag-association/{id}?~action=detach-tag-from-multiple-objects"

// detachMany does what govmomi's simulator has only acknowledged, having checked the session and the tag: it takes the tag
// off many objects. As published, an object without the tag is no error, and the answer is a batch result:
// https://developer.broadcom.com/xapis/vsphere-automation-api/latest/cis-tagging
func (v *vcenter) detachMany(c *call) *answer {
	var request struct {
		Objects []json.RawMessage `json:"object_ids"`
	}
	if json.Unmarshal(c.body, &request) != nil {
		return restError("InvalidArgument", "")
	}
	for _, object := range request.Objects {
		if a := v.detachOne(c.http, object); a.status != http.StatusOK {
			return a
		}
	}
	a := newAnswer()
	a.header.Set("Content-Type", "application/json")
	writeJSON(&a.body, map[string]any{"value": map[string]any{"success": true, "error_messages": []any{}}})
	return a
}

func (v *vcenter) detachOne(r *http.Request, object json.RawMessage) *answer {
	single := r.Clone(r.Context())
	single.URL.RawQuery = "~action=detach"
	var body bytes.Buffer
	writeJSON(&body, map[string]any{"object_id": object})
	single.ContentLength, single.Body = int64(body.Len()), io.NopCloser(&body)
	a := newAnswer()
	v.mux.ServeHTTP(a, single)
	return a
}
