package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"strings"
)

type siteConfig struct {
	Control  string          `json:"control"`
	VCenters []vcenterConfig `json:"vcenters"`
}

type vcenterConfig struct {
	Name         string             `json:"name"`
	Listen       string             `json:"listen"`
	Certificate  string             `json:"certificate"`
	Key          string             `json:"key"`
	Username     string             `json:"username"`
	Password     string             `json:"password"`
	InstanceUUID string             `json:"instanceUuid"`
	Version      string             `json:"version"`
	Datacenters  []datacenterConfig `json:"datacenters"`
	Guests       string             `json:"guests"`
	Synthetic    int                `json:"synthetic"`
}

type datacenterConfig struct {
	Name       string           `json:"name"`
	Folder     string           `json:"folder"`
	Clusters   []clusterConfig  `json:"clusters"`
	Datastores []string         `json:"datastores"`
	Networks   []string         `json:"networks"`
	Folders    []string         `json:"folders"`
	Templates  []templateConfig `json:"templates"`
}

type clusterConfig struct {
	Name          string   `json:"name"`
	Hosts         int      `json:"hosts"`
	ResourcePools []string `json:"resourcePools"`
}

type templateConfig struct {
	Name     string `json:"name"`
	Folder   string `json:"folder"`
	Hardware string `json:"hardware"`
	DiskGiB  int64  `json:"diskGiB"`
}

func loadConfig(path string) (*siteConfig, error) {
	if path == "" {
		return nil, errors.New("no configuration given; use --config FILE")
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("cannot read the configuration: %w", err)
	}

	config := new(siteConfig)
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(config); err != nil {
		return nil, fmt.Errorf("configuration %s is not what was expected: %w", path, err)
	}
	if err := config.check(); err != nil {
		return nil, fmt.Errorf("configuration %s: %w", path, err)
	}
	return config, nil
}

func (c *siteConfig) check() error {
	if c.Control == "" {
		return errors.New("`control`, the path of the control socket, is missing")
	}
	if len(c.VCenters) == 0 {
		return errors.New("`vcenters` is empty")
	}
	seen := map[string]bool{}
	for i := range c.VCenters {
		vcenter := &c.VCenters[i]
		if seen[vcenter.Name] {
			return fmt.Errorf("two vCenters are named %q", vcenter.Name)
		}
		seen[vcenter.Name] = true
		if err := vcenter.check(); err != nil {
			return fmt.Errorf("vCenter %q: %w", vcenter.Name, err)
		}
	}
	return nil
}

func (c *vcenterConfig) check() error {
	switch {
	case c.Name == "":
		return errors.New("`name` is missing")
	case c.Listen == "":
		return errors.New("`listen` is missing; use 127.0.0.1:0 for any free port")
	case c.Username == "" || c.Password == "":
		return errors.New("`username` and `password` are both needed")
	case (c.Certificate == "") != (c.Key == ""):
		return errors.New("`certificate` and `key` are given together or not at all")
	case c.Synthetic > 0 && len(c.Datacenters) == 0:
		return errors.New("`synthetic` virtual machines need a datacenter")
	}
	if c.Version == "" {
		c.Version = "8.0.3"
	}
	if c.Guests != "" {
		if _, err := netip.ParsePrefix(c.Guests); err != nil {
			return fmt.Errorf("`guests` is not a network: %w", err)
		}
	}
	for _, datacenter := range c.Datacenters {
		if err := datacenter.check(); err != nil {
			return fmt.Errorf("datacenter %q: %w", datacenter.Name, err)
		}
	}
	return nil
}

// path is where the datacenter lies, without a slash at either end.
func (c *datacenterConfig) path() string { return strings.Trim(c.Folder+"/"+c.Name, "/") }

func (c *datacenterConfig) check() error {
	if c.Name == "" {
		return errors.New("`name` is missing")
	}
	hosts := 0
	for _, cluster := range c.Clusters {
		hosts += cluster.Hosts
	}
	if hosts == 0 && (len(c.Datastores) > 0 || len(c.Templates) > 0) {
		return errors.New("datastores and templates need a cluster with a host")
	}
	if len(c.Templates) > 0 && len(c.Datastores) == 0 {
		return errors.New("templates need a datastore")
	}
	return nil
}
