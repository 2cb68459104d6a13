package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestNoTwoManifestsGoToTheSamePlace(t *testing.T) {
	all, err := list()
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, e := range all {
		to := filepath.Join(e.Generation, e.Into)
		if seen[to] {
			t.Errorf("%s is listed twice", to)
		}
		seen[to] = true
	}
}

func TestTheBuiltComponentsAndTheirManifestsAreOfOneVersion(t *testing.T) {
	text, err := os.ReadFile("../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	all, err := list()
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range all {
		module, version, _ := strings.Cut(e.Module, "@")
		if e.Generation != "next" && strings.Contains(string(text), "\t"+module+" v") && !strings.Contains(string(text), module+" "+version) {
			t.Errorf("go.mod pins another version of %s than list.json's %s", module, version)
		}
	}
}

func TestTheTwoGenerationsCarryTheRulesAboutVCentersTheyAreChosenFor(t *testing.T) {
	into := t.TempDir()
	if err := collect(into); err != nil {
		t.Fatal(err)
	}
	for path, rules := range map[string][]string{
		"4.21/crds/infrastructures.yaml": {"vcenters cannot be added or removed once set"},
		"next/crds/infrastructures.yaml": {
			"vcenters must have unique server values", "vcenters is required once set and cannot be removed",
			"Cannot add and remove vCenters at the same time",
		},
		"any/crds/machineautoscalers.yaml":          {"autoscaling.openshift.io"},
		"any/crds/credentialsrequests.yaml":         {"cloudcredential.openshift.io"},
		"any/webhooks/controlplanemachinesets.yaml": {"ValidatingWebhookConfiguration"},
	} {
		text, err := os.ReadFile(filepath.Join(into, path))
		if err != nil {
			t.Error(err)
		}
		for _, rule := range rules {
			if !strings.Contains(string(text), rule) {
				t.Errorf("%s does not say %q", path, rule)
			}
		}
	}
}

func TestAModuleWithAnotherChecksumIsRefused(t *testing.T) {
	m := newModules()
	const module = "sigs.k8s.io/cluster-api@v1.11.3"
	m.sums[module] = "h1:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="
	if _, err := m.folder(module); err == nil || !strings.Contains(err.Error(), "do not use it") {
		t.Fatalf("got %v", err)
	}
}
