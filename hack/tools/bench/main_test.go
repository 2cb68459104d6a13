package main

import (
	"crypto/tls"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/vmware/govmomi/simulator"
	_ "github.com/vmware/govmomi/vapi/simulator"
)

func TestEveryWorkIsDoneAndMeasured(t *testing.T) {
	model := simulator.VPX()
	if err := model.Create(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(model.Remove)
	model.Service.TLS = new(tls.Config)
	model.Service.RegisterEndpoints = true
	server := model.Service.NewServer()
	t.Cleanup(server.Close)
	certificate, err := server.CertificateFile()
	if err != nil {
		t.Fatal(err)
	}

	var uuids, objects []string
	for _, entity := range model.Map().All("VirtualMachine") {
		vm := entity.(*simulator.VirtualMachine)
		uuids = append(uuids, vm.Config.Uuid)
		objects = append(objects, vm.Self.String())
	}
	uuidFile, objectFile := filepath.Join(t.TempDir(), "uuids"), filepath.Join(t.TempDir(), "objects")
	for path, list := range map[string][]string{uuidFile: uuids, objectFile: objects} {
		if err := os.WriteFile(path, []byte(strings.Join(list, "\n")), 0o600); err != nil {
			t.Fatal(err)
		}
	}

	address := []string{"--url", "https://" + server.URL.Host + "/sdk", "--username", "user", "--password", "pass", "--ca", certificate}
	for _, work := range [][]string{
		{"inventory"}, {"inventory", "--vms", "finder"}, {"inventory", "--vms", "view"}, {"uuids", "--file", uuidFile}, {"tags", "--file", objectFile, "--tags", "3"},
		{"calls", "--count", "10"},
	} {
		done, err := measure(append(work, address...))
		if err != nil {
			t.Errorf("%v: %v", work, err)
			continue
		}
		if done.Seconds <= 0 || done.Requests < 4 || done.BytesIn == 0 || done.BytesOut == 0 || done.PeakMB == 0 {
			t.Errorf("%v: %+v", work, *done)
		}
	}
	if done, err := measure(append([]string{"calls", "--count", "10"}, address...)); err != nil || done.Requests != 13 {
		t.Errorf("ten small calls with content, login and logout are %+v, %v", done, err)
	}
}
