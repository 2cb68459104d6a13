package main

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"

	"github.com/vmware/govmomi/property"
	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/soap"
	"github.com/vmware/govmomi/vim25/types"
)

const (
	restSession    = "/rest/com/vmware/cis/session"
	restSessionKey = "vmware-api-session-id"
)

type sessionCount struct {
	VCenter       string `json:"vcenter"`
	SOAP          int    `json:"soap"`
	REST          int    `json:"rest"`
	Logins        int    `json:"logins"`
	RefusedLogins int    `json:"refusedLogins"`

	Clients map[string]loginCount `json:"clients"` // by user agent
}

type loginCount struct {
	Logins        int `json:"logins"`
	RefusedLogins int `json:"refusedLogins"`
}

// sessionBook counts logins and remembers REST sessions, which the simulator keeps to itself.
type sessionBook struct {
	mu      sync.Mutex
	rest    map[string]bool
	clients map[string]loginCount
}

// note learns from an answer what happened to sessions, and tells whether a login was refused.
func (b *sessionBook) note(c *call, a *answer) (refused bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.rest == nil {
		b.rest, b.clients = map[string]bool{}, map[string]loginCount{}
	}
	client := b.clients[c.Client]
	switch {
	case c.isLogin() && a.status == http.StatusOK:
		client.Logins++
		b.clients[c.Client] = client
		var created struct {
			Value string `json:"value"`
		}
		if c.isRESTLogin() && json.Unmarshal(a.body.Bytes(), &created) == nil {
			b.rest[created.Value] = true
		}
	case c.isRESTLogin() && a.status == http.StatusUnauthorized,
		c.Method == "Login" && strings.Contains(a.body.String(), `"InvalidLogin"`):
		client.RefusedLogins++
		b.clients[c.Client] = client
		return true
	case c.Method == "DELETE "+restSession && a.status == http.StatusOK:
		delete(b.rest, restKey(c.http))
	}
	return false
}

func restKey(r *http.Request) string {
	if key := r.Header.Get(restSessionKey); key != "" {
		return key
	}
	if cookie, err := r.Cookie(restSessionKey); err == nil {
		return cookie.Value
	}
	return ""
}

func (b *sessionBook) hasREST(r *http.Request) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.rest[restKey(r)]
}

func (b *sessionBook) takeREST() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	var keys []string
	for key := range b.rest {
		keys = append(keys, key)
	}
	clear(b.rest)
	return keys
}

func (v *vcenter) soapSessions() ([]types.UserSession, error) {
	var manager mo.SessionManager
	ref := *v.client.ServiceContent.SessionManager
	err := property.DefaultCollector(v.client).RetrieveOne(context.Background(), ref, []string{"sessionList"}, &manager)
	return manager.SessionList, err
}

func (v *vcenter) sessionCount() (sessionCount, error) {
	list, err := v.soapSessions()
	v.sessions.mu.Lock()
	defer v.sessions.mu.Unlock()
	count := sessionCount{VCenter: v.config.Name, SOAP: len(list), REST: len(v.sessions.rest), Clients: map[string]loginCount{}}
	for name, client := range v.sessions.clients {
		count.Logins += client.Logins
		count.RefusedLogins += client.RefusedLogins
		count.Clients[name] = client
	}
	return count, err
}

// authenticated says whether a SOAP call carries a living session.
func (v *vcenter) authenticated(r *http.Request) bool {
	cookie, err := r.Cookie(soap.SessionCookieName)
	if err != nil {
		return false
	}
	list, err := v.soapSessions()
	if err != nil {
		return false
	}
	for _, session := range list {
		if session.Key == cookie.Value {
			return true
		}
	}
	return false
}

// endSessions ends all of them at once, as a restart of vCenter's services does.
func (v *vcenter) endSessions() error {
	list, err := v.soapSessions()
	if err != nil {
		return err
	}
	for _, session := range list {
		_, err := methods.TerminateSession(context.Background(), v.client, &types.TerminateSession{
			This:      *v.client.ServiceContent.SessionManager,
			SessionId: []string{session.Key},
		})
		if err != nil {
			return err
		}
	}
	for _, key := range v.sessions.takeREST() {
		end := httptest.NewRequest(http.MethodDelete, restSession, nil)
		end.Header.Set(restSessionKey, key)
		v.mux.ServeHTTP(newAnswer(), end)
	}
	return nil
}
