package main

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestMachinesAndMachineSetsAreValidatedAndDefaulted(t *testing.T) {
	text, err := json.Marshal(configurations())
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{
		`"kind":"ValidatingWebhookConfiguration"`, `"kind":"MutatingWebhookConfiguration"`,
		"validation.machine.machine.openshift.io", "validation.machineset.machine.openshift.io",
		"default.machine.machine.openshift.io", "default.machineset.machine.openshift.io",
	} {
		if !strings.Contains(string(text), name) {
			t.Errorf("%s is missing", name)
		}
	}
}
