package main

import (
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/vmware/govmomi/find"
	"github.com/vmware/govmomi/object"
	"github.com/vmware/govmomi/view"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/types"
)

func TestAVCenterSaysWhatItWasConfiguredToBe(t *testing.T) {
	const uuid = "11111111-1111-4111-8111-111111111111"
	s := startTest(t, func(c *siteConfig) { c.VCenters[0].InstanceUUID = uuid })
	about := s.connect("a").ServiceContent.About
	if about.Version != "8.0.3" || about.ApiVersion != "8.0.3.0" || about.InstanceUuid != uuid || about.Name != "VMware vCenter Server" {
		t.Fatalf("about: %+v", about)
	}
	if other := s.connect("b").ServiceContent.About.InstanceUuid; other == uuid || other == "" {
		t.Fatalf("the other vCenter is %q", other)
	}
}

func TestTheVersionsOfTheServiceCanBeRead(t *testing.T) {
	s := startTest(t)
	transport := s.connect("a").Client.Client.Client.Transport
	response, err := (&http.Client{Transport: transport}).Get(s.url("a").String() + "/vimServiceVersions.xml")
	s.must(err)
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	s.must(err)
	if !strings.Contains(string(text), "<version>8.0.3.0</version>") {
		t.Fatalf("versions: %s", text)
	}
}

func TestTheConfiguredInventoryIsFoundByPath(t *testing.T) {
	s := startTest(t)
	client := s.login("a")
	index := object.NewSearchIndex(client.Client)
	for _, path := range []string{
		"dc-a", "dc-a/host/cluster-a", "dc-a/host/cluster-a/Resources/ocp-a", "dc-a/host/cluster-a/cluster-a-host-1",
		"dc-a/datastore/datastore-a", "dc-a/network/network-a", "dc-a/vm/lab-x7k2p", "dc-a/vm/deep/er", "dc-a/vm/rhcos-a",
	} {
		found, err := index.FindByInventoryPath(s.context(), path)
		s.must(err)
		if found == nil {
			t.Errorf("%s is not there", path)
		}
	}
}

func TestDatastoresAndNetworksAreSeenByEveryHost(t *testing.T) {
	s := startTest(t)
	client := s.login("a")
	hosts, err := find.NewFinder(client.Client, true).HostSystemList(s.context(), "/dc-a/host/cluster-a/*")
	s.must(err)
	for _, host := range hosts {
		var seen mo.HostSystem
		s.must(host.Properties(s.context(), host.Reference(), []string{"datastore", "network"}, &seen))
		network := false
		for _, ref := range seen.Network {
			network = network || s.vc("a").name(ref) == "network-a"
		}
		if len(seen.Datastore) != 1 || !network {
			t.Errorf("%s sees %v and %v", host.Name(), seen.Datastore, seen.Network)
		}
	}
}

func TestARefusedLoginSpeaksInVCentersWords(t *testing.T) {
	s := startTest(t)
	err := s.connect("a").Login(s.context(), url.UserPassword(testUser, "wrong"))
	if err == nil || !strings.Contains(err.Error(), "Cannot complete login due to an incorrect user name or password.") {
		t.Fatalf("login said %v", err)
	}
}

func TestACloneIsAMachineOfItsOwnWithTheConfigurationAskedFor(t *testing.T) {
	s := startTest(t)
	client := s.login("a")
	const instance = "22222222-2222-4222-8222-222222222222"
	vm, err := s.clone(client, "a", "lab-x7k2p-worker-0", &types.VirtualMachineConfigSpec{
		InstanceUuid: instance, NumCPUs: 8, MemoryMB: 4096,
		ExtraConfig: []types.BaseOptionValue{&types.OptionValue{Key: "guestinfo.hostname", Value: "worker-0"}},
	})
	s.must(err)
	var made, template mo.VirtualMachine
	s.must(vm.Properties(s.context(), vm.Reference(), []string{"config", "resourcePool"}, &made))
	source, err := find.NewFinder(client.Client, true).VirtualMachine(s.context(), "/dc-a/vm/rhcos-a")
	s.must(err)
	s.must(source.Properties(s.context(), source.Reference(), []string{"config"}, &template))

	if made.Config.Template || !template.Config.Template {
		t.Error("the clone is a template or the template is none")
	}
	if made.Config.InstanceUuid != instance || made.Config.Uuid == template.Config.Uuid || made.Config.Uuid == "" {
		t.Errorf("identities: %s %s", made.Config.InstanceUuid, made.Config.Uuid)
	}
	if made.Config.Hardware.NumCPU != 8 || made.Config.Hardware.MemoryMB != 4096 || made.Config.Version != "vmx-19" {
		t.Errorf("hardware: %+v", made.Config.Hardware)
	}
	if object.OptionValueList(made.Config.ExtraConfig).Map()["guestinfo.hostname"] != "worker-0" {
		t.Error("extraConfig is lost")
	}
	ref, err := object.NewSearchIndex(client.Client).FindByUuid(s.context(), nil, instance, true, types.NewBool(true))
	s.must(err)
	if ref == nil || ref.Reference() != vm.Reference() {
		t.Error("the clone is not found by its instance UUID")
	}
}

func TestACloneRunsOnAHostOfTheClusterItsPoolBelongsTo(t *testing.T) {
	s := startTest(t, func(c *siteConfig) {
		d := &c.VCenters[0].Datacenters[0]
		d.Clusters = append([]clusterConfig{{Name: "first", Hosts: 1}}, d.Clusters...)
	})
	_, err := s.clone(s.login("a"), "a", "clone", nil)
	s.must(err)
	var all []machine
	s.ask("GET", "/vms", nil, &all, http.StatusOK)
	for _, m := range all {
		if m.Name == "clone" && m.Cluster != "cluster-a" {
			t.Fatalf("the clone is in %s", m.Cluster)
		}
	}
}

func TestABusyAddressAndABadConfigurationAreRefusedWithAReason(t *testing.T) {
	s := startTest(t)
	busy := testVCenter("a")
	busy.Listen = s.vc("a").address
	_, err := startSite(&siteConfig{Control: filepath.Join(t.TempDir(), "c"), VCenters: []vcenterConfig{busy}})
	if err == nil || !strings.Contains(err.Error(), "address already in use") {
		t.Errorf("busy address: %v", err)
	}
	path := filepath.Join(t.TempDir(), "config.json")
	for text, reason := range map[string]string{
		`{"control":"c","vcenters":[{"name":"a","listen":"127.0.0.1:0"}]}`: "`username` and `password`",
		`{"control":"c","vcentres":[]}`:                                    "vcentres",
		`{"control":"c"}`:                                                  "`vcenters` is empty",
	} {
		s.must(os.WriteFile(path, []byte(text), 0o600))
		if _, err := loadConfig(path); err == nil || !strings.Contains(err.Error(), reason) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func TestFiftyThousandSyntheticMachinesCanBeListedAndFound(t *testing.T) {
	const count = 50_000
	s := startTest(t, func(c *siteConfig) {
		c.VCenters = c.VCenters[:1]
		c.VCenters[0].Synthetic = count
	})
	client := s.login("a")
	all, err := view.NewManager(client.Client).CreateContainerView(s.context(), client.ServiceContent.RootFolder, []string{"VirtualMachine"}, true)
	s.must(err)
	var list []mo.VirtualMachine
	s.must(all.Retrieve(s.context(), []string{"VirtualMachine"}, []string{"name"}, &list))
	if template := 1; len(list) != count+template {
		t.Fatalf("%d machines", len(list))
	}
	last := s.vc("a").find("VirtualMachine", syntheticName(count-1))
	uuid := s.vc("a").guests.guests[last[0].Reference()].UUID
	found, err := object.NewSearchIndex(client.Client).FindByUuid(s.context(), nil, uuid, true, nil)
	s.must(err)
	if found == nil || found.Reference() != last[0].Reference() {
		t.Fatalf("UUID %s is %v", uuid, found)
	}
}

func TestARunningVCenterCanBeCrowdedOnce(t *testing.T) {
	s := startTest(t)
	before := len(s.vc("b").registry.All("VirtualMachine"))
	s.ask("POST", "/vcenters/b/crowd", crowdRequest{Count: 1000}, nil, http.StatusOK)
	if now := len(s.vc("b").registry.All("VirtualMachine")); now != before+1000 {
		t.Errorf("%d virtual machines after %d", now, before)
	}
	s.ask("POST", "/vcenters/b/crowd", crowdRequest{Count: 1}, nil, http.StatusBadRequest)
	s.ask("POST", "/vcenters/a/crowd", crowdRequest{}, nil, http.StatusBadRequest)
}
