// Command loader reads a cloud provider configuration on standard input and prints, as JSON, what the real vSphere
// cloud controller manager makes of it. It ends with status 1 and the loader's own words when that is nothing.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"

	"k8s.io/cloud-provider-vsphere/pkg/cloudprovider/vsphere/config"
	"k8s.io/klog/v2"
)

func main() {
	// The loader gives the true reason of a refused YAML only in its log, which goes to standard error.
	klog.InitFlags(nil)
	flag.Parse()

	text, err := io.ReadAll(os.Stdin)
	if err == nil {
		err = load(text, os.Stdout)
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "loader: %v\n", err)
		os.Exit(1)
	}
}

// load turns the loader's panics into errors: on some input it crashes the controller manager.
func load(text []byte, out io.Writer) (err error) {
	defer func() {
		if crash := recover(); crash != nil {
			err = fmt.Errorf("the loader crashed: %v", crash)
		}
	}()
	seen, err := config.ReadCPIConfig(text)
	if err != nil {
		return err
	}
	encoder := json.NewEncoder(out)
	encoder.SetIndent("", "  ")
	return encoder.Encode(seen)
}
