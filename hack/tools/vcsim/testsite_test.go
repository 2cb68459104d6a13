package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/url"
	"path/filepath"
	"testing"
	"time"

	"github.com/vmware/govmomi"
	"github.com/vmware/govmomi/find"
	"github.com/vmware/govmomi/object"
	"github.com/vmware/govmomi/session"
	"github.com/vmware/govmomi/vim25"
	"github.com/vmware/govmomi/vim25/soap"
	"github.com/vmware/govmomi/vim25/types"
)

const (
	testUser     = "administrator@vsphere.local"
	testPassword = "correct horse"
	testClient   = "test-client/1.0"
)

// testSite is a running simulator with the vCenters a and b.
type testSite struct {
	*testing.T
	*site
	control *http.Client
}

func testVCenter(letter string) vcenterConfig {
	return vcenterConfig{
		Name: letter, Listen: "127.0.0.1:0", Username: testUser, Password: testPassword, Guests: "10.31.0.0/16",
		Datacenters: []datacenterConfig{{
			Name:       "dc-" + letter,
			Clusters:   []clusterConfig{{Name: "cluster-" + letter, Hosts: 2, ResourcePools: []string{"ocp-" + letter}}},
			Datastores: []string{"datastore-" + letter},
			Networks:   []string{"network-" + letter},
			Folders:    []string{"lab-x7k2p", "deep/er"},
			Templates:  []templateConfig{{Name: "rhcos-" + letter, Hardware: "vmx-19", DiskGiB: 120}},
		}},
	}
}

func startTest(t *testing.T, change ...func(*siteConfig)) *testSite {
	t.Helper()
	config := &siteConfig{
		Control:  filepath.Join(t.TempDir(), "control.sock"),
		VCenters: []vcenterConfig{testVCenter("a"), testVCenter("b")},
	}
	for _, f := range change {
		f(config)
	}
	if err := config.check(); err != nil {
		t.Fatal(err)
	}
	s, err := startSite(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.stop)
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", config.Control)
	}
	return &testSite{T: t, site: s, control: &http.Client{Transport: &http.Transport{DialContext: dial}}}
}

// ask uses the control API and fails the test unless the answer has the expected status.
func (s *testSite) ask(method, path string, body, into any, status int) {
	s.Helper()
	var sent bytes.Buffer
	if body != nil {
		writeJSON(&sent, body)
	}
	request, err := http.NewRequest(method, "http://control"+path, &sent)
	s.must(err)
	response, err := s.control.Do(request)
	s.must(err)
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	s.must(err)
	if response.StatusCode != status {
		s.Fatalf("%s %s answered %d, not %d: %s", method, path, response.StatusCode, status, text)
	}
	if into != nil {
		s.must(json.Unmarshal(text, into))
	}
}

func (s *testSite) must(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

func (s *testSite) fault(vcenter string, f fault) int {
	s.Helper()
	var made struct{ ID int }
	s.ask("POST", "/vcenters/"+vcenter+"/faults", wire(f), &made, http.StatusOK)
	return made.ID
}

// wire leaves out what only listings carry.
func wire(f fault) map[string]any {
	text, _ := json.Marshal(f)
	var fields map[string]any
	json.Unmarshal(text, &fields)
	for _, name := range []string{"id", "vcenter", "hits"} {
		delete(fields, name)
	}
	return fields
}

func (s *testSite) vc(name string) *vcenter {
	v, err := s.vcenter(name)
	s.must(err)
	return v
}

func (s *testSite) url(vcenter string) *url.URL {
	return &url.URL{Scheme: "https", Host: s.vc(vcenter).address, Path: vim25.Path}
}

// connect makes a client without a session.
func (s *testSite) connect(vcenter string) *govmomi.Client {
	s.Helper()
	transport := soap.NewClient(s.url(vcenter), true)
	transport.UserAgent = testClient
	client, err := vim25.NewClient(s.context(), transport)
	s.must(err)
	return &govmomi.Client{Client: client, SessionManager: session.NewManager(client)}
}

func (s *testSite) login(vcenter string) *govmomi.Client {
	s.Helper()
	client := s.connect(vcenter)
	s.must(client.Login(s.context(), url.UserPassword(testUser, testPassword)))
	return client
}

func (s *testSite) context() context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	s.Cleanup(cancel)
	return ctx
}

// clone makes a virtual machine from the template as the machine controller does.
func (s *testSite) clone(client *govmomi.Client, letter, name string, config *types.VirtualMachineConfigSpec) (*object.VirtualMachine, error) {
	s.Helper()
	ctx := s.context()
	finder := find.NewFinder(client.Client, true)
	template, err := finder.VirtualMachine(ctx, "/dc-"+letter+"/vm/rhcos-"+letter)
	s.must(err)
	folder, err := finder.Folder(ctx, "/dc-"+letter+"/vm/lab-x7k2p")
	s.must(err)
	pool, err := finder.ResourcePool(ctx, "/dc-"+letter+"/host/cluster-"+letter+"/Resources/ocp-"+letter)
	s.must(err)
	datastore, err := finder.Datastore(ctx, "/dc-"+letter+"/datastore/datastore-"+letter)
	s.must(err)
	task, err := template.Clone(ctx, folder, name, types.VirtualMachineCloneSpec{
		Config: config,
		Location: types.VirtualMachineRelocateSpec{
			Datastore: types.NewReference(datastore.Reference()),
			Folder:    types.NewReference(folder.Reference()),
			Pool:      types.NewReference(pool.Reference()),
		},
	})
	if err != nil {
		return nil, err
	}
	info, err := task.WaitForResult(ctx, nil)
	if err != nil {
		return nil, err
	}
	return object.NewVirtualMachine(client.Client, info.Result.(types.ManagedObjectReference)), nil
}
