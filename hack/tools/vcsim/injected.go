package main

import (
	"net/http"
	"time"
)

// injected is the answer a fault gives in place of the vCenter, or nil when the call still goes there.
func (v *vcenter) injected(c *call, f *fault) *answer {
	switch f.Kind {
	case "latency":
		select {
		case <-time.After(time.Duration(f.Milliseconds) * time.Millisecond):
		case <-c.http.Context().Done():
		}
	case "status":
		a := newAnswer()
		a.status = f.Code
		if f.RetryAfter != "" {
			a.header.Set("Retry-After", f.RetryAfter)
		}
		return a
	case "garbage":
		a := newAnswer()
		a.body.WriteString(f.Body)
		return a
	case "fault":
		if c.API == restAPI {
			return restError(f.Type, f.Message)
		}
		return v.soapFault(c, f)
	case "task":
		return v.ownTask(c, f)
	}
	return nil
}

// inject puts a fault in force. Some faults also change at once what already is.
func (v *vcenter) inject(f *fault) (int, error) {
	if err := f.check(); err != nil {
		return 0, badRequest("%v", err)
	}
	switch f.Kind {
	case "sessions":
		f.Count = 1
	case "gone":
		if err := v.takeAway(f); err != nil {
			return 0, err
		}
	}
	id := v.faults.add(f)
	switch f.Kind {
	case "sessions":
		if err := v.endSessions(); err != nil {
			return 0, err
		}
		v.faults.remove(id)
	default:
		v.settle(faults{f})
	}
	return id, nil
}

// settle makes the running vCenter follow faults that came or went.
func (v *vcenter) settle(changed faults) {
	if changed.has("certificate") {
		v.closeConnections()
	}
	if changed.has("privileges") {
		v.publishPrivileges()
	}
}

// lift takes faults out of force: one, or all of them for id 0.
func (v *vcenter) lift(id int) faults {
	gone := v.faults.remove(id)
	v.bringBack(gone)
	v.settle(gone)
	return gone
}

var restErrors = map[string]struct {
	status int
	name   string
}{
	"NotAuthenticated":   {http.StatusUnauthorized, "unauthenticated"},
	"InvalidLogin":       {http.StatusUnauthorized, "unauthenticated"},
	"NoPermission":       {http.StatusForbidden, "unauthorized"},
	"NotFound":           {http.StatusNotFound, "not_found"},
	"AlreadyExists":      {http.StatusBadRequest, "already_exists"},
	"DuplicateName":      {http.StatusBadRequest, "already_exists"},
	"InvalidArgument":    {http.StatusBadRequest, "invalid_argument"},
	"InUse":              {http.StatusBadRequest, "resource_in_use"},
	"ResourceInUse":      {http.StatusBadRequest, "resource_in_use"},
	"NotSupported":       {http.StatusBadRequest, "unsupported"},
	"MethodNotFound":     {http.StatusNotFound, "operation_not_found"},
	"ServiceUnavailable": {http.StatusServiceUnavailable, "service_unavailable"},
	"SystemError":        {http.StatusInternalServerError, "internal_server_error"},
}

func restError(kind, message string) *answer {
	known, ok := restErrors[kind]
	if !ok {
		known.status, known.name = http.StatusBadRequest, kind
	}
	if message == "" {
		message = wordsFor(kind)
	}
	a := newAnswer()
	a.status = known.status
	a.header.Set("Content-Type", "application/json")
	writeJSON(&a.body, map[string]any{
		"type": "com.vmware.vapi.std.errors." + known.name,
		"value": map[string]any{"messages": []any{map[string]any{
			"id": "com.vmware.vapi.std.errors." + known.name, "default_message": message, "args": []string{},
		}}},
	})
	return a
}
