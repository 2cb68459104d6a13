package main

import (
	"net/http"
	"testing"
)

func TestAnInstalledMachineIsPoweredOnWithAnAddress(t *testing.T) {
	s := startTest(t)
	guests := s.guestStream()
	s.ask("POST", "/vcenters/a/vms", map[string]any{
		"name": "master-0", "template": "/dc-a/vm/rhcos-a", "folder": "/dc-a/vm", "resourcePool": "/dc-a/host/cluster-a/Resources",
		"datastore": "/dc-a/datastore/datastore-a", "cpus": 4, "memoryMiB": 16384,
	}, nil, http.StatusOK)
	guests.until("the machine to run", func(g *guest) bool {
		return g.Name == "master-0" && g.Power == poweredOn && g.IP != ""
	})
}
