package main

import (
	"bufio"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
)

//go:embed modules.sum
var modulesSum string

// modules finds the folders of modules in Go's module cache, downloading what is missing.
type modules struct {
	sums    map[string]string
	folders map[string]string
}

func newModules() *modules {
	m := &modules{sums: map[string]string{}, folders: map[string]string{}}
	for lines := bufio.NewScanner(strings.NewReader(modulesSum)); lines.Scan(); {
		if fields := strings.Fields(lines.Text()); len(fields) == 3 {
			m.sums[fields[0]+"@"+fields[1]] = fields[2]
		}
	}
	return m
}

func (m *modules) folder(module string) (string, error) {
	if folder, ok := m.folders[module]; ok {
		return folder, nil
	}
	folder, err := m.download(module)
	m.folders[module] = folder
	return folder, err
}

func (m *modules) download(module string) (string, error) {
	pinned, ok := m.sums[module]
	if !ok {
		return "", fmt.Errorf("modules.sum has no line for %s", module)
	}
	// Away from any go.mod, whose requirements would be resolved along; the checksum database does not know them all.
	empty, err := os.MkdirTemp("", "manifests-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(empty)
	command := exec.Command("go", "mod", "download", "-json", module)
	command.Dir = empty
	command.Env = append(os.Environ(), "GOFLAGS=-mod=mod", "GONOSUMDB=*", "GOWORK=off")
	out, failure := command.Output()

	var got struct{ Dir, Sum, Error string }
	if err := json.Unmarshal(out, &got); err != nil {
		return "", fmt.Errorf("cannot download %s: %w", module, errors.Join(failure, err))
	}
	switch {
	case got.Error != "":
		return "", fmt.Errorf("cannot download %s: %s", module, got.Error)
	case got.Sum != pinned:
		return "", fmt.Errorf("%s has the checksum %s, not the pinned %s: do not use it", module, got.Sum, pinned)
	}
	return got.Dir, nil
}
