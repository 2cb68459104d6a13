package main

import (
	"slices"
	"testing"
)

func TestEveryFeatureSetNamesEveryGateOnce(t *testing.T) {
	all, err := read()
	if err != nil {
		t.Fatal(err)
	}
	known := slices.Sorted(slices.Values(append(slices.Clone(all["Default"].Enabled), all["Default"].Disabled...)))
	if len(known) < 50 || !slices.Contains(known, "VSphereMultiDisk") {
		t.Fatalf("only %d gates: %v", len(known), known)
	}
	for name, set := range all {
		names := slices.Sorted(slices.Values(append(slices.Clone(set.Enabled), set.Disabled...)))
		if !slices.Equal(names, known) {
			t.Errorf("%s knows other gates than Default", name)
		}
	}
}
