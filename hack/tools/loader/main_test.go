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
	for reader, read := range readers {
		for format, text := range map[string]string{"YAML": yaml, "INI": ini} {
			var out bytes.Buffer
			if err := load(read, []byte(text), &out); err != nil {
				t.Fatalf("%s, %s: %v", reader, format, err)
			}
			for _, want := range []string{`"VCenterIP": "vc-a"`, `"Datacenters": "dc-a"`, `"InsecureFlag": true`, `"Region": "openshift-region"`} {
				if !strings.Contains(out.String(), want) {
					t.Errorf("%s, %s lacks %s: %s", reader, format, want, out.String())
				}
			}
		}
	}
}

func TestWhatAReaderRefusesOrCrashesOnIsAnErrorInItsOwnWords(t *testing.T) {
	nobody := "global:\n  user: u\nvcenter:\n  vc-a:\n    server: vc-a\n"
	crashing := "global:\n  user: u\n  password: p\nvcenter:\n  vc-a:\n"
	for reader, reasons := range map[string]map[string]string{
		"cloud-controller-manager": {
			"": "no vSphere cloud provider config", "not a configuration": "expected section header", crashing: "crashed",
			nobody: "expected section header",
		},
		"machine-api": {
			"": "Invalid YAML/INI file", "not a configuration": "YAML=[", crashing: "crashed",
			nobody: "Password is missing",
		},
	} {
		for text, reason := range reasons {
			if err := load(readers[reader], []byte(text), new(bytes.Buffer)); err == nil || !strings.Contains(err.Error(), reason) {
				t.Errorf("%s, %q: %v", reader, text, err)
			}
		}
	}
}
