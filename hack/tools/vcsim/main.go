// Command vcsim serves simulated vCenters to the lab and to the tests of the vSphere client.
//
// The inventory and the SOAP and REST services are govmomi's simulator. In front of each vCenter stands a proxy of our
// own that counts calls and injects faults, because the simulator has neither for REST and only process-wide ones for
// SOAP. A unix socket carries the control API.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

const startFailed = 2

func main() {
	path := flag.String("config", "", "JSON `file` that describes the vCenters")
	flag.Parse()

	if err := run(*path); err != nil {
		fmt.Fprintf(os.Stderr, "vcsim: %v\n", err)
		os.Exit(startFailed)
	}
}

func run(path string) error {
	config, err := loadConfig(path)
	if err != nil {
		return err
	}

	site, err := startSite(config)
	if err != nil {
		return err
	}
	defer site.stop()

	if err := json.NewEncoder(os.Stdout).Encode(site.ready()); err != nil {
		return fmt.Errorf("cannot say on standard output that the simulator is ready: %w", err)
	}

	end := make(chan os.Signal, 1)
	signal.Notify(end, os.Interrupt, syscall.SIGTERM)
	<-end
	return nil
}
