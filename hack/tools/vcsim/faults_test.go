package main

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/vmware/govmomi"
	vimfault "github.com/vmware/govmomi/fault"
	"github.com/vmware/govmomi/object"
	"github.com/vmware/govmomi/vapi/rest"
	"github.com/vmware/govmomi/vapi/tags"
	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/soap"
	"github.com/vmware/govmomi/vim25/types"
)

func (s *testSite) ping(client *govmomi.Client) error {
	_, err := methods.GetCurrentTime(s.context(), client.Client)
	return err
}

func (s *testSite) hits() map[int]int {
	s.Helper()
	var all []struct{ ID, Hits int }
	s.ask("GET", "/faults", nil, &all, http.StatusOK)
	hits := map[int]int{}
	for _, f := range all {
		hits[f.ID] = f.Hits
	}
	return hits
}

func TestAStatusFaultAnswersUntilItsCountIsUsedUp(t *testing.T) {
	s := startTest(t)
	client := s.login("a")
	id := s.fault("a", fault{Kind: "status", Code: 503, Method: "CurrentTime", Count: 2})
	for range 2 {
		if err := s.ping(client); err == nil || !strings.Contains(err.Error(), "503") {
			t.Fatalf("got %v", err)
		}
	}
	s.must(s.ping(client))
	if s.hits()[id] != 2 {
		t.Errorf("hits: %v", s.hits())
	}
}

func TestAFaultConcernsOnlyItsMethodItsClientAndItsVCenter(t *testing.T) {
	s := startTest(t)
	a, b := s.login("a"), s.login("b")
	s.fault("a", fault{Kind: "status", Code: 500, Method: "CurrentTime", Client: "somebody else"})
	s.fault("a", fault{Kind: "status", Code: 500, API: "rest"})
	s.fault("a", fault{Kind: "status", Code: 500, Method: "CreateFolder"})
	s.must(s.ping(a))
	s.fault("a", fault{Kind: "status", Code: 500, Method: "Current*"})
	s.must(s.ping(b))
	if s.ping(a) == nil {
		t.Fatal("the fault with a pattern did not apply")
	}
	s.ask("DELETE", "/vcenters/a/faults", nil, nil, http.StatusOK)
	s.must(s.ping(a))
}

func TestDropAndTruncateAndGarbageLeaveNoWholeAnswer(t *testing.T) {
	s := startTest(t)
	client := s.login("a")
	for _, f := range []fault{
		{Kind: "drop", Method: "CurrentTime"},
		{Kind: "truncate", Bytes: 40, Method: "CurrentTime"},
		{Kind: "garbage", Body: "<html>not vSphere", Method: "CurrentTime"},
	} {
		id := s.fault("a", f)
		if err := s.ping(client); err == nil {
			t.Errorf("%s: the call succeeded", f.Kind)
		}
		if s.hits()[id] == 0 {
			t.Errorf("%s: no hit", f.Kind)
		}
		s.ask("DELETE", "/vcenters/a/faults", nil, nil, http.StatusOK)
		s.must(s.ping(client))
	}
}

func TestAnAnswerWithoutABodyIsDroppedToo(t *testing.T) {
	s := startTest(t)
	r := rest.NewClient(s.login("a").Client)
	s.must(r.Login(s.context(), url.UserPassword(testUser, testPassword)))
	s.fault("a", fault{Kind: "drop", Method: "DELETE *"})
	request, err := http.NewRequest("DELETE", "https://"+s.vc("a").address+restSession, nil)
	s.must(err)
	response, err := r.Client.Client.Transport.RoundTrip(request)
	if err == nil {
		_, err = io.ReadAll(response.Body)
	}
	if err == nil {
		t.Fatal("the answer came whole")
	}
}

func TestOnlyTheFirstOfTwoAnsweringFaultsIsUsedUpByACall(t *testing.T) {
	s := startTest(t)
	client := s.login("a")
	for _, code := range []int{502, 503} {
		s.fault("a", fault{Kind: "status", Code: code, Method: "CurrentTime", Count: 1})
	}
	for _, code := range []string{"502", "503"} {
		if err := s.ping(client); err == nil || !strings.Contains(err.Error(), code) {
			t.Errorf("%s expected: %v", code, err)
		}
	}
	s.must(s.ping(client))
}

func TestEndedSessionsAreRefusedByBothAPIs(t *testing.T) {
	s := startTest(t)
	client := s.login("a")
	r := rest.NewClient(client.Client)
	s.must(r.Login(s.context(), url.UserPassword(testUser, testPassword)))
	other := s.login("b")
	s.fault("a", fault{Kind: "sessions"})

	if err := s.ping(client); !vimfault.Is(err, &types.NotAuthenticated{}) {
		t.Errorf("SOAP: %v", err)
	}
	if _, err := tags.NewManager(r).ListCategories(s.context()); err == nil || !strings.Contains(err.Error(), "401") {
		t.Errorf("REST: %v", err)
	}
	s.must(s.ping(other))
	s.login("a")
}

func TestSessionsAndLoginsAreCounted(t *testing.T) {
	s := startTest(t)
	client := s.login("a")
	r := rest.NewClient(client.Client)
	s.must(r.Login(s.context(), url.UserPassword(testUser, testPassword)))
	s.connect("a").Login(s.context(), url.UserPassword(testUser, "wrong"))
	rest.NewClient(client.Client).Login(s.context(), url.UserPassword(testUser, "wrong"))
	expect := func(want sessionCount) {
		t.Helper()
		var all []sessionCount
		s.ask("GET", "/sessions", nil, &all, http.StatusOK)
		want.Clients = map[string]loginCount{testClient: {want.Logins, want.RefusedLogins}}
		if !reflect.DeepEqual(all[0], want) {
			t.Fatalf("sessions: %+v, not %+v", all[0], want)
		}
	}
	expect(sessionCount{VCenter: "a", SOAP: 1, REST: 1, Logins: 2, RefusedLogins: 2})
	s.must(r.Logout(s.context()))
	s.must(client.Logout(s.context()))
	expect(sessionCount{VCenter: "a", Logins: 2, RefusedLogins: 2})
}

func TestAChangedPasswordRefusesTheOldOneUntilItIsTakenBack(t *testing.T) {
	s := startTest(t)
	id := s.fault("a", fault{Kind: "password", Password: "new"})
	if s.connect("a").Login(s.context(), url.UserPassword(testUser, testPassword)) == nil {
		t.Fatal("the old password still works")
	}
	s.must(s.connect("a").Login(s.context(), url.UserPassword(testUser, "new")))
	var listed []fault
	s.ask("GET", "/faults", nil, &listed, http.StatusOK)
	if len(listed) != 1 || listed[0].Password != "" {
		t.Error("the listing shows a password")
	}
	if listed[0].Hits != 1 {
		t.Errorf("%d refused logins are counted, not 1", listed[0].Hits)
	}
	s.ask("DELETE", "/vcenters/a/faults/"+strconv.Itoa(id), nil, nil, http.StatusOK)
	s.login("a")
}

func TestAChangedCertificateIsSeenByEveryClientAtOnce(t *testing.T) {
	s := startTest(t)
	client := s.login("a")
	before := s.thumbprint(client)
	folder := t.TempDir()
	pair, err := selfSigned(s.vc("a").address)
	s.must(err)
	key, err := x509.MarshalPKCS8PrivateKey(pair.PrivateKey)
	s.must(err)
	certificateFile, keyFile := filepath.Join(folder, "c.pem"), filepath.Join(folder, "k.pem")
	s.must(os.WriteFile(certificateFile, []byte(certificatePEM(pair)), 0o600))
	s.must(os.WriteFile(keyFile, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key}), 0o600))

	s.fault("a", fault{Kind: "certificate", Certificate: certificateFile, Key: keyFile})
	if s.thumbprint(client) == before {
		t.Fatal("the certificate is still the old one")
	}
	s.ask("DELETE", "/vcenters/a/faults", nil, nil, http.StatusOK)
	if s.thumbprint(client) != before {
		t.Fatal("the certificate did not come back")
	}
}

// thumbprint reads the certificate of the connection that a call truly uses.
func (s *testSite) thumbprint(client *govmomi.Client) string {
	s.Helper()
	request, err := http.NewRequest("GET", s.url("a").String()+"/vimServiceVersions.xml", nil)
	s.must(err)
	response, err := client.Client.Client.Client.Do(request)
	s.must(err)
	response.Body.Close()
	return soap.ThumbprintSHA256(response.TLS.PeerCertificates[0])
}

func TestAMethodFaultIsTypedAndCarriesItsMessage(t *testing.T) {
	s := startTest(t)
	client := s.login("a")
	folder := s.vc("a").find("Folder", "lab-x7k2p")[0].Reference()
	destroy := func() error {
		_, err := object.NewFolder(client.Client, folder).Destroy(s.context())
		return err
	}
	s.fault("a", fault{Kind: "fault", Method: "Destroy_Task", Type: "InUse", Count: 1})
	if err := destroy(); !vimfault.Is(err, &types.ResourceInUse{}) {
		t.Errorf("InUse: %v", err)
	}
	s.fault("a", fault{Kind: "fault", Method: "Destroy_Task", Type: "NoPermission", Privilege: "Folder.Delete", Message: "not today", Count: 1})
	err := destroy()
	var denied *types.NoPermission
	if _, ok := vimfault.As(err, &denied); !ok || denied.PrivilegeId != "Folder.Delete" || *denied.Object != folder || !strings.Contains(err.Error(), "not today") {
		t.Errorf("NoPermission: %v", err)
	}
	s.ask("POST", "/vcenters/a/faults", map[string]string{"kind": "fault", "type": "Nonsense"}, nil, http.StatusBadRequest)
}

func TestARESTFaultHasVAPIsErrorBody(t *testing.T) {
	s := startTest(t)
	client := s.login("a")
	r := rest.NewClient(client.Client)
	s.must(r.Login(s.context(), url.UserPassword(testUser, testPassword)))
	s.fault("a", fault{Kind: "fault", API: "rest", Method: "GET /rest/com/vmware/cis/tagging/category", Type: "NotFound"})
	_, err := tags.NewManager(r).ListCategories(s.context())
	if err == nil || !strings.Contains(err.Error(), "404") {
		t.Fatalf("got %v", err)
	}
}

func TestLatencyHoldsACallBackButNotTheProxy(t *testing.T) {
	s := startTest(t)
	client := s.login("a")
	id := s.fault("a", fault{Kind: "latency", Milliseconds: 600_000})
	ctx, cancel := context.WithTimeout(s.context(), 50*time.Millisecond)
	defer cancel()
	_, err := methods.GetCurrentTime(ctx, client.Client)
	var timeout net.Error
	if !errors.As(err, &timeout) && !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("got %v", err)
	}
	s.ask("DELETE", "/vcenters/a/faults/"+strconv.Itoa(id), nil, nil, http.StatusOK)
	s.must(s.ping(client))
}
