package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
)

// refusal is an error of the control API's caller.
type refusal struct {
	status int
	text   string
}

func (r *refusal) Error() string { return r.text }

func notFound(format string, values ...any) error {
	return &refusal{http.StatusNotFound, "there is no " + fmt.Sprintf(format, values...)}
}

func badRequest(format string, values ...any) error {
	return &refusal{http.StatusBadRequest, fmt.Sprintf(format, values...)}
}

func writeJSON(w io.Writer, value any) {
	json.NewEncoder(w).Encode(value)
}

// reply turns a function into a handler: its value as JSON, its error as {"error"}.
func reply(answer func(*http.Request) (any, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		value, err := answer(r)
		w.Header().Set("Content-Type", "application/json")
		if err != nil {
			status := http.StatusInternalServerError
			var refused *refusal
			if errors.As(err, &refused) {
				status = refused.status
			}
			w.WriteHeader(status)
			value = map[string]string{"error": err.Error()}
		}
		writeJSON(w, value)
	}
}

var done = map[string]bool{"done": true}

func (s *site) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", reply(func(*http.Request) (any, error) { return map[string]bool{"ok": true}, nil }))
	mux.HandleFunc("GET /guests", s.streamGuests)
	mux.HandleFunc("GET /calls", reply(s.listCalls))
	mux.HandleFunc("POST /calls/reset", reply(s.resetCalls))
	mux.HandleFunc("GET /sessions", reply(s.listSessions))
	mux.HandleFunc("GET /vms", reply(s.listMachines))
	mux.HandleFunc("POST /vms/{vcenter}/{name}/{action}", reply(s.actOnMachine))
	mux.HandleFunc("POST /vcenters/{vcenter}/vms", reply(s.installMachine))
	mux.HandleFunc("POST /vcenters/{vcenter}/tags", reply(s.attachTag))
	mux.HandleFunc("POST /vcenters/{vcenter}/folders", reply(s.createFolder))
	mux.HandleFunc("POST /vcenters/{vcenter}/crowd", reply(s.crowd))
	mux.HandleFunc("GET /faults", reply(s.listFaults))
	mux.HandleFunc("POST /vcenters/{vcenter}/faults", reply(s.addFault))
	mux.HandleFunc("DELETE /vcenters/{vcenter}/faults", reply(s.removeFaults))
	mux.HandleFunc("DELETE /vcenters/{vcenter}/faults/{id}", reply(s.removeFaults))
	return mux
}

func (s *site) listCalls(*http.Request) (any, error) {
	all := []callCount{}
	for _, v := range s.vcenters {
		all = append(all, v.calls.list(v.config.Name)...)
	}
	return all, nil
}

func (s *site) resetCalls(*http.Request) (any, error) {
	for _, v := range s.vcenters {
		v.calls.reset()
	}
	return done, nil
}

func (s *site) listSessions(*http.Request) (any, error) {
	all := []sessionCount{}
	for _, v := range s.vcenters {
		count, err := v.sessionCount()
		if err != nil {
			return nil, err
		}
		all = append(all, count)
	}
	return all, nil
}

func (s *site) listFaults(*http.Request) (any, error) {
	all := []fault{}
	for _, v := range s.vcenters {
		all = append(all, v.faults.list(v.config.Name)...)
	}
	return all, nil
}

func (s *site) addFault(r *http.Request) (any, error) {
	f := new(fault)
	v, err := s.request(r, f)
	if err != nil {
		return nil, err
	}
	id, err := v.inject(f)
	return map[string]int{"id": id}, err
}

func (s *site) removeFaults(r *http.Request) (any, error) {
	v, err := s.vcenter(r.PathValue("vcenter"))
	if err != nil {
		return nil, err
	}
	id := 0
	if text := r.PathValue("id"); text != "" {
		if id, err = strconv.Atoi(text); err != nil || id == 0 {
			return nil, badRequest("%q is not the number of a fault", text)
		}
	}
	if lifted := v.lift(id); id != 0 && len(lifted) == 0 {
		return nil, notFound("fault %d", id)
	}
	return done, nil
}

// request finds the vCenter a request names and decodes its body.
func (s *site) request(r *http.Request, body any) (*vcenter, error) {
	v, err := s.vcenter(r.PathValue("vcenter"))
	if err != nil {
		return nil, err
	}
	decoder := json.NewDecoder(r.Body)
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(body); err != nil {
		return nil, badRequest("the body is not what was expected: %v", err)
	}
	return v, nil
}

// streamGuests first sends every guest, then {} and from then on each change.
func (s *site) streamGuests(w http.ResponseWriter, r *http.Request) {
	subscription := newSubscriber()
	for _, v := range s.vcenters {
		v.guests.subscribe(subscription)
		defer v.guests.unsubscribe(subscription)
	}
	w.Header().Set("Content-Type", "application/x-ndjson")
	encoder := json.NewEncoder(w)
	send := func() {
		for _, g := range subscription.take() {
			encoder.Encode(g)
		}
	}
	send()
	encoder.Encode(struct{}{})
	for {
		http.NewResponseController(w).Flush()
		select {
		case <-r.Context().Done():
			return
		case <-subscription.wake:
			send()
		}
	}
}
