// Command webhooks prints the admission webhook configurations of the Machine API as its operator would create them.
//
// Their services do not exist in the lab: it puts the address of the running webhook server and its CA in their place.
package main

import (
	"encoding/json"
	"os"

	"github.com/openshift/machine-api-operator/pkg/webhooks"
)

func main() {
	encoder := json.NewEncoder(os.Stdout)
	encoder.SetIndent("", "  ")
	encoder.Encode(configurations())
}

func configurations() map[string]any {
	return map[string]any{
		"apiVersion": "v1",
		"kind":       "List",
		"items": []any{
			webhooks.NewMachineValidatingWebhookConfiguration(),
			webhooks.NewMachineMutatingWebhookConfiguration(),
		},
	}
}
