package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/vmware/govmomi/find"
	"github.com/vmware/govmomi/object"
	"github.com/vmware/govmomi/vim25/types"
)

// buildInventory makes what the configuration asks for through the vSphere API, as an administrator would.
func (v *vcenter) buildInventory() error {
	for _, datacenter := range v.config.Datacenters {
		b := &datacenterBuilder{vcenter: v, config: datacenter, ctx: context.Background()}
		if err := b.build(); err != nil {
			return fmt.Errorf("datacenter %q: %w", datacenter.Name, err)
		}
	}
	if v.config.Synthetic > 0 {
		return v.addSynthetic(v.config.Synthetic)
	}
	return nil
}

type datacenterBuilder struct {
	*vcenter
	config     datacenterConfig
	ctx        context.Context
	datacenter *object.Datacenter
	folders    *object.DatacenterFolders
	dvs        *object.DistributedVirtualSwitch
	hosts      []*object.HostSystem
	pool       *object.ResourcePool
}

func (b *datacenterBuilder) build() error {
	parent, err := b.below(object.NewRootFolder(b.client), "", b.config.Folder)
	if err != nil {
		return err
	}
	if b.datacenter, err = parent.CreateDatacenter(b.ctx, b.config.Name); err != nil {
		return err
	}
	if b.folders, err = b.datacenter.Folders(b.ctx); err != nil {
		return err
	}
	if err := b.addNetworks(); err != nil {
		return fmt.Errorf("networks: %w", err)
	}
	for _, cluster := range b.config.Clusters {
		if err := b.addCluster(cluster); err != nil {
			return fmt.Errorf("cluster %q: %w", cluster.Name, err)
		}
	}
	for _, name := range b.config.Datastores {
		if err := b.addDatastore(name); err != nil {
			return fmt.Errorf("datastore %q: %w", name, err)
		}
	}
	for _, path := range b.config.Folders {
		if _, err := b.ensureFolder(b.config.path(), path); err != nil {
			return fmt.Errorf("folder %q: %w", path, err)
		}
	}
	for _, template := range b.config.Templates {
		if err := b.addTemplate(template); err != nil {
			return fmt.Errorf("template %q: %w", template.Name, err)
		}
	}
	return nil
}

// addNetworks makes port groups of one distributed switch, which every host joins when it is added.
func (b *datacenterBuilder) addNetworks() error {
	if len(b.config.Networks) == 0 {
		return nil
	}
	spec := types.DVSCreateSpec{ConfigSpec: &types.VMwareDVSConfigSpec{}}
	spec.ConfigSpec.GetDVSConfigSpec().Name = b.config.Name + "-switch"
	task, err := b.folders.NetworkFolder.CreateDVS(b.ctx, spec)
	if err != nil {
		return err
	}
	info, err := task.WaitForResult(b.ctx, nil)
	if err != nil {
		return err
	}
	b.dvs = object.NewDistributedVirtualSwitch(b.client, info.Result.(types.ManagedObjectReference))

	for _, name := range b.config.Networks {
		task, err := b.dvs.AddPortgroup(b.ctx, []types.DVPortgroupConfigSpec{{
			Name:     name,
			Type:     string(types.DistributedVirtualPortgroupPortgroupTypeEarlyBinding),
			NumPorts: 128,
		}})
		if err != nil {
			return err
		}
		if err := task.Wait(b.ctx); err != nil {
			return err
		}
	}
	return nil
}

func (b *datacenterBuilder) addCluster(config clusterConfig) error {
	cluster, err := b.folders.HostFolder.CreateCluster(b.ctx, config.Name, types.ClusterConfigSpecEx{})
	if err != nil {
		return err
	}
	for i := range config.Hosts {
		if err := b.addHost(cluster, fmt.Sprintf("%s-host-%d", config.Name, i)); err != nil {
			return fmt.Errorf("host %d: %w", i, err)
		}
	}
	root, err := cluster.ResourcePool(b.ctx)
	if err != nil {
		return err
	}
	if b.pool == nil {
		b.pool = root
	}
	for _, name := range config.ResourcePools {
		if _, err := root.Create(b.ctx, name, types.DefaultResourceConfigSpec()); err != nil {
			return fmt.Errorf("resource pool %q: %w", name, err)
		}
	}
	return nil
}

func (b *datacenterBuilder) addHost(cluster *object.ClusterComputeResource, name string) error {
	task, err := cluster.AddHost(b.ctx, types.HostConnectSpec{HostName: name}, true, nil, nil)
	if err != nil {
		return err
	}
	info, err := task.WaitForResult(b.ctx, nil)
	if err != nil {
		return err
	}
	host := object.NewHostSystem(b.client, info.Result.(types.ManagedObjectReference))
	b.hosts = append(b.hosts, host)
	if b.dvs == nil {
		return nil
	}
	task, err = b.dvs.Reconfigure(b.ctx, &types.DVSConfigSpec{
		Host: []types.DistributedVirtualSwitchHostMemberConfigSpec{{
			Operation: string(types.ConfigSpecOperationAdd),
			Host:      host.Reference(),
		}},
	})
	if err != nil {
		return err
	}
	return task.Wait(b.ctx)
}

func (b *datacenterBuilder) addDatastore(name string) error {
	folder := filepath.Join(b.home, b.config.Name, name)
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return err
	}
	for _, host := range b.hosts {
		system, err := host.ConfigManager().DatastoreSystem(b.ctx)
		if err != nil {
			return err
		}
		if _, err := system.CreateLocalDatastore(b.ctx, name, folder); err != nil {
			return err
		}
	}
	return nil
}

func (b *datacenterBuilder) addTemplate(config templateConfig) error {
	folder, err := b.ensureFolder(b.config.path(), config.Folder)
	if err != nil {
		return err
	}
	vm, err := b.createVM(folder, config)
	if err != nil {
		return err
	}
	return vm.MarkAsTemplate(b.ctx)
}

// ensureFolder returns the folder at `path` below a datacenter's vm folder and makes what is missing of it.
func (v *vcenter) ensureFolder(datacenter, path string) (*object.Folder, error) {
	at := "/" + datacenter + "/vm"
	folder, err := find.NewFinder(v.client, false).Folder(context.Background(), at)
	if err != nil {
		return nil, err
	}
	return v.below(folder, at, path)
}

// below returns the folder at `path` below another that lies at `at`, and makes what is missing of it.
func (v *vcenter) below(folder *object.Folder, at, path string) (*object.Folder, error) {
	ctx := context.Background()
	finder := find.NewFinder(v.client, false)
	for _, name := range strings.FieldsFunc(path, func(r rune) bool { return r == '/' }) {
		at += "/" + name
		next, err := finder.Folder(ctx, at)
		if err != nil {
			if next, err = folder.CreateFolder(ctx, name); err != nil {
				return nil, err
			}
		}
		folder = next
	}
	return folder, nil
}

// adopt finds again what build made, for a builder that comes later.
func (b *datacenterBuilder) adopt() error {
	finder := find.NewFinder(b.client, false)
	var err error
	if b.datacenter, err = finder.Datacenter(b.ctx, "/"+b.config.path()); err != nil {
		return err
	}
	b.pool, err = finder.ResourcePool(b.ctx, fmt.Sprintf("/%s/host/%s/Resources", b.config.path(), b.config.Clusters[0].Name))
	return err
}
