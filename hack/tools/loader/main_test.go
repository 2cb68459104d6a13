package main

import (
	"bytes"
	"strings"
	"testing"
)

func TestYAMLAndINIOfTheSameConfigurationAreSeenAlike(t *testing.T) {
	yaml := "global:\n  insecureFlag: true\n  secretName: creds\n  secretNamespace: kube-system\n" +
		"vcenter:\n  vc-a:\n    server: vc-a\n    datacenters: [dc-a]\nlabels:\n  region: openshift-region\n  zone: openshift-zone\n"
	ini := "[Global]\ninsecure-flag = 1\nsecret-name = creds\nsecret-namespace = kube-system\n" +
		"[VirtualCenter \"vc-a\"]\ndatacenters = dc-a\n[Labels]\nregion = openshift-region\nzone = openshift-zone\n"
	for name, text := range map[string]string{"YAML": yaml, "INI": ini} {
		var out bytes.Buffer
		if err := load([]byte(text), &out); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for _, want := range []string{`"VCenterIP": "vc-a"`, `"Datacenters": "dc-a"`, `"InsecureFlag": true`, `"Region": "openshift-region"`} {
			if !strings.Contains(out.String(), want) {
				t.Errorf("%s lacks %s: %s", name, want, out.String())
			}
		}
	}
}

func TestWhatTheLoaderRefusesOrCrashesOnIsAnError(t *testing.T) {
	for text, reason := range map[string]string{
		"":                    "no vSphere cloud provider config",
		"not a configuration": "expected section header",
		"global:\n  user: u\n  password: p\nvcenter:\n  vc-a:\n": "crashed",
	} {
		if err := load([]byte(text), new(bytes.Buffer)); err == nil || !strings.Contains(err.Error(), reason) {
			t.Errorf("%q: %v", text, err)
		}
	}
}
