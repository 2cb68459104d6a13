// Command gates prints every feature gate that the pinned openshift/api knows, enabled or disabled, per feature set.
//
// Operators refuse to start unless the FeatureGate object lists every gate they know.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"

	configv1 "github.com/openshift/api/config/v1"
	"github.com/openshift/api/features"
)

type gates struct {
	Enabled  []string `json:"enabled"`
	Disabled []string `json:"disabled"`
}

// A custom feature set is the default one with what the cluster's administrator adds and removes.
var featureSets = map[string]configv1.FeatureSet{
	"Default":              configv1.Default,
	"TechPreviewNoUpgrade": configv1.TechPreviewNoUpgrade,
	"DevPreviewNoUpgrade":  configv1.DevPreviewNoUpgrade,
	"CustomNoUpgrade":      configv1.Default,
}

func main() {
	all, err := read()
	if err != nil {
		fmt.Fprintf(os.Stderr, "gates: %v\n", err)
		os.Exit(1)
	}
	encoder := json.NewEncoder(os.Stdout)
	encoder.SetIndent("", "  ")
	encoder.Encode(all)
}

func read() (map[string]gates, error) {
	all := map[string]gates{}
	for name, set := range featureSets {
		known, err := features.FeatureSets(features.SelfManaged, set)
		if err != nil {
			return nil, err
		}
		all[name] = gates{Enabled: names(known.Enabled), Disabled: names(known.Disabled)}
	}
	return all, nil
}

func names(descriptions []features.FeatureGateDescription) []string {
	list := []string{}
	for _, d := range descriptions {
		list = append(list, string(d.FeatureGateAttributes.Name))
	}
	slices.Sort(list)
	return list
}
