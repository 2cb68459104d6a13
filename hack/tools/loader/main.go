// Command loader reads a cloud provider configuration on standard input and prints, as JSON, what one of its real readers
// makes of it. It ends with status 1 and the reader's own words when that is nothing, and with 2 when there is no such reader.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"

	manager "k8s.io/cloud-provider-vsphere/pkg/cloudprovider/vsphere/config"
	common "k8s.io/cloud-provider-vsphere/pkg/common/config"
	"k8s.io/klog/v2"
)

// readers are the functions that the components themselves call.
var readers = map[string]func([]byte) (any, error){
	"cloud-controller-manager": func(text []byte) (any, error) { return manager.ReadCPIConfig(text) },
	// It does not try INI where a text is YAML. The problem detector calls the same.
	"machine-api": func(text []byte) (any, error) { return common.ReadConfig(text) },
}

func main() {
	reader := flag.String("reader", "cloud-controller-manager", fmt.Sprintf("whose eyes to use, of %q", slices.Sorted(maps.Keys(readers))))
	// The loader gives the true reason of a refused YAML only in its log, which goes to standard error.
	klog.InitFlags(nil)
	flag.Parse()
	read, known := readers[*reader]
	if !known {
		fmt.Fprintf(os.Stderr, "loader: there is no reader %q, use one of %q\n", *reader, slices.Sorted(maps.Keys(readers)))
		os.Exit(2)
	}

	text, err := io.ReadAll(os.Stdin)
	if err == nil {
		err = load(read, text, os.Stdout)
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "loader: %v\n", err)
		os.Exit(1)
	}
}

// load turns a reader's panics into errors: some input crashes whoever reads it.
func load(read func([]byte) (any, error), text []byte, out io.Writer) (err error) {
	defer func() {
		if crash := recover(); crash != nil {
			err = fmt.Errorf("the loader crashed: %v", crash)
		}
	}()
	seen, err := read(text)
	if err != nil {
		return err
	}
	encoder := json.NewEncoder(out)
	encoder.SetIndent("", "  ")
	return encoder.Encode(seen)
}
