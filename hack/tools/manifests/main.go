// Command manifests collects the CRDs and other manifests of OpenShift that the lab applies, from the Go modules that
// carry them, into a folder: --into DIR gets DIR/<generation>/crds/*.yaml and so on.
//
// list.json says which file of which module goes where. The modules are not in go.mod, because two versions of one
// module cannot be; modules.sum pins them as go.sum would. Nothing that is collected belongs into the repository.
package main

import (
	_ "embed"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
)

//go:embed list.json
var listJSON []byte

// entry is one file: `path` may hold wildcards but must match exactly one file of the module.
type entry struct {
	Module     string `json:"module"`
	Generation string `json:"generation"`
	Path       string `json:"path"`
	Into       string `json:"into"`
}

func main() {
	into := flag.String("into", "", "`folder` to fill")
	flag.Parse()
	if *into == "" {
		fmt.Fprintln(os.Stderr, "manifests: name the folder to fill with --into")
		os.Exit(2)
	}
	if err := collect(*into); err != nil {
		fmt.Fprintf(os.Stderr, "manifests: %v\n", err)
		os.Exit(1)
	}
}

func list() ([]entry, error) {
	var all []entry
	err := json.Unmarshal(listJSON, &all)
	return all, err
}

func collect(into string) error {
	all, err := list()
	if err != nil {
		return fmt.Errorf("list.json: %w", err)
	}
	modules := newModules()
	for _, e := range all {
		folder, err := modules.folder(e.Module)
		if err != nil {
			return err
		}
		if err := copyOne(filepath.Join(folder, e.Path), filepath.Join(into, e.Generation, e.Into)); err != nil {
			return fmt.Errorf("%s: %w", e.Module, err)
		}
	}
	return nil
}

func copyOne(pattern, to string) error {
	found, err := filepath.Glob(pattern)
	if err != nil {
		return err
	}
	if len(found) != 1 {
		return fmt.Errorf("%d files match %s; exactly one was expected", len(found), pattern)
	}
	text, err := os.ReadFile(found[0])
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	return os.WriteFile(to, text, 0o644)
}
