package main

import (
	"crypto/tls"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
)

// fault is one thing that goes wrong on purpose, as the control API takes and lists it.
type fault struct {
	ID      int    `json:"id"`
	VCenter string `json:"vcenter"`
	Hits    int    `json:"hits"`

	Kind   string `json:"kind"`
	API    string `json:"api,omitempty"`
	Method string `json:"method,omitempty"`
	Client string `json:"client,omitempty"`
	Count  int    `json:"count,omitempty"`

	Milliseconds int      `json:"milliseconds,omitempty"`
	Code         int      `json:"code,omitempty"`
	RetryAfter   string   `json:"retryAfter,omitempty"`
	Certificate  string   `json:"certificate,omitempty"`
	Key          string   `json:"key,omitempty"`
	Missing      []string `json:"missing,omitempty"`
	Unknown      []string `json:"unknown,omitempty"`
	Object       string   `json:"object,omitempty"`
	Password     string   `json:"password,omitempty"`
	Type         string   `json:"type,omitempty"`
	Message      string   `json:"message,omitempty"`
	Privilege    string   `json:"privilege,omitempty"`
	Error        string   `json:"error,omitempty"`
	Bytes        int      `json:"bytes,omitempty"`
	Body         string   `json:"body,omitempty"`

	pair   *tls.Certificate
	absent *absentee
}

// check refuses a fault that could never do anything.
func (f *fault) check() error {
	needs := func(ok bool, field string) error {
		if !ok {
			return fmt.Errorf("a %s fault needs `%s`", f.Kind, field)
		}
		return nil
	}
	switch f.Kind {
	case "latency":
		return needs(f.Milliseconds > 0, "milliseconds")
	case "status":
		return needs(f.Code >= 100 && f.Code < 600, "code")
	case "drop", "sessions":
		return nil
	case "truncate":
		return needs(f.Bytes >= 0, "bytes")
	case "garbage":
		return needs(f.Body != "", "body")
	case "gone":
		return needs(f.Object != "", "object")
	case "password":
		return needs(f.Password != "", "password")
	case "privileges":
		return needs(len(f.Missing)+len(f.Unknown) > 0, "missing")
	case "certificate":
		var err error
		f.pair, err = loadCertificate(f.Certificate, f.Key)
		return err
	case "fault":
		if f.API != restAPI {
			_, err := newMethodFault(f.Type)
			return err
		}
		return needs(f.Type != "", "type")
	case "task":
		if f.Error != "" {
			if _, err := newMethodFault(f.Error); err != nil {
				return err
			}
		}
		return needs(f.Error != "" || f.Milliseconds > 0, "milliseconds` or `error")
	}
	return errors.New("`kind` is none of latency, status, drop, sessions, certificate, privileges, password, gone, fault, task, truncate, garbage")
}

// applies says whether a fault is about this call. A method may end in * to mean all that begin so.
func (f *fault) applies(key callKey) bool {
	if f.API != "" && f.API != key.API {
		return false
	}
	if prefix, wild := strings.CutSuffix(f.Method, "*"); wild {
		if !strings.HasPrefix(key.Method, prefix) {
			return false
		}
	} else if f.Method != "" && f.Method != key.Method {
		return false
	}
	return strings.Contains(key.Client, f.Client)
}

func (f *fault) spent() bool { return f.Count > 0 && f.Hits >= f.Count }

type faults []*fault

func (l faults) first(kind string) *fault {
	for _, f := range l {
		if f.Kind == kind {
			return f
		}
	}
	return nil
}

func (l faults) has(kind string) bool { return l.first(kind) != nil }

// faultList holds the faults of one vCenter in the order they came.
type faultList struct {
	mu   sync.Mutex
	next int
	all  faults
}

func (l *faultList) add(f *fault) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.next++
	f.ID, f.Hits = l.next, 0
	l.all = append(l.all, f)
	return f.ID
}

// remove takes out one fault, or all of them for id 0, and returns what it took.
func (l *faultList) remove(id int) faults {
	l.mu.Lock()
	defer l.mu.Unlock()
	var kept, gone faults
	for _, f := range l.all {
		if id == 0 || f.ID == id {
			gone = append(gone, f)
		} else {
			kept = append(kept, f)
		}
	}
	l.all = kept
	return gone
}

var (
	answering = []string{"status", "garbage", "fault", "task"}
	changing  = []string{"latency", "drop", "truncate"}
)

// matching takes one hit from every fault that changes what happens to the call and from the first that answers it;
// privileges are asked for separately, because only the decoded method tells which objects they are about.
func (l *faultList) matching(c *call) faults {
	l.mu.Lock()
	defer l.mu.Unlock()
	var hits faults
	answered := false
	for _, f := range l.all {
		answers := slices.Contains(answering, f.Kind)
		if f.spent() || !f.applies(c.callKey) || !answers && !slices.Contains(changing, f.Kind) {
			continue
		}
		if answers && answered || f.Kind == "task" && !strings.HasSuffix(c.Method, "_Task") {
			continue
		}
		answered = answered || answers
		f.Hits++
		hits = append(hits, f)
	}
	return hits
}

// last is the newest fault of a kind that describes a state, such as the accepted password.
func (l *faultList) last(kind string) *fault {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, f := range slices.Backward(l.all) {
		if f.Kind == kind {
			return f
		}
	}
	return nil
}

// refused counts a login that was refused while another password is in force.
func (l *faultList) refused() {
	if f := l.last("password"); f != nil {
		l.mu.Lock()
		defer l.mu.Unlock()
		f.Hits++
	}
}

// denies finds the fault that withholds a privilege on an object.
func (l *faultList) denies(key callKey, privilege, object string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, f := range l.all {
		if f.Kind != "privileges" || f.spent() || !f.applies(key) {
			continue
		}
		here := f.Object == "" || f.Object == "*" || f.Object == object
		if slices.Contains(f.Unknown, privilege) || here && slices.Contains(f.Missing, privilege) {
			f.Hits++
			return true
		}
	}
	return false
}

// unknown are the privileges this vCenter is to have never heard of.
func (l *faultList) unknown() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var names []string
	for _, f := range l.all {
		names = append(names, f.Unknown...)
	}
	return names
}

// list never shows a password, as the listing ends up in test output.
func (l *faultList) list(vcenter string) []fault {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := make([]fault, 0, len(l.all))
	for _, f := range l.all {
		entry := *f
		entry.VCenter, entry.Password = vcenter, ""
		all = append(all, entry)
	}
	return all
}
