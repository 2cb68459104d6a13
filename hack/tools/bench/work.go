package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"

	"github.com/vmware/govmomi/find"
	"github.com/vmware/govmomi/object"
	"github.com/vmware/govmomi/property"
	"github.com/vmware/govmomi/vapi/tags"
	"github.com/vmware/govmomi/view"
	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/types"
)

// inventory lists what a migration looks at with the finder, as programs on govmomi do, and then reads of each kind the
// properties that our client reads too.
func inventory(ctx context.Context, p *peer, o *options) error {
	finder := find.NewFinder(p.Client, false)
	datacenters, err := finder.DatacenterList(ctx, "*")
	if err != nil {
		return err
	}
	for _, datacenter := range datacenters {
		finder.SetDatacenter(datacenter)
		if err := structure(ctx, p, finder); err != nil {
			return fmt.Errorf("%s: %w", datacenter.InventoryPath, err)
		}
		if o.vms == "finder" {
			if err := foundMachines(ctx, p, finder); err != nil {
				return fmt.Errorf("%s: %w", datacenter.InventoryPath, err)
			}
		}
	}
	if o.vms == "view" {
		return viewedMachines(ctx, p)
	}
	return nil
}

func structure(ctx context.Context, p *peer, finder *find.Finder) error {
	clusters, err := finder.ClusterComputeResourceList(ctx, "*")
	if err := read[mo.ClusterComputeResource](ctx, p, clusters, err, "name", "parent", "resourcePool", "summary"); err != nil {
		return err
	}
	for _, cluster := range clusters {
		hosts, err := finder.HostSystemList(ctx, cluster.InventoryPath+"/*")
		if err := read[mo.HostSystem](ctx, p, hosts, err, hostProperties...); err != nil {
			return err
		}
		pools, err := finder.ResourcePoolList(ctx, cluster.InventoryPath+"/Resources/...")
		if err := read[mo.ResourcePool](ctx, p, pools, err, "name", "parent", "owner"); err != nil {
			return err
		}
	}
	datastores, err := finder.DatastoreList(ctx, "*")
	if err := read[mo.Datastore](ctx, p, datastores, err, datastoreProperties...); err != nil {
		return err
	}
	networks, err := finder.NetworkList(ctx, "*")
	// Networks are of several types, which govmomi reads together only as what they have in common.
	if err := read[mo.ManagedEntity](ctx, p, networks, err, "name", "parent"); err != nil {
		return err
	}
	folders, err := finder.FolderList(ctx, "*")
	return read[mo.Folder](ctx, p, folders, err, "name", "parent", "childType")
}

var (
	hostProperties = []string{
		"name", "parent", "summary.config.product.version", "summary.config.product.build", "runtime.connectionState",
		"runtime.inMaintenanceMode", "summary.hardware.numCpuCores", "summary.hardware.memorySize",
		"summary.quickStats.overallMemoryUsage", "network", "datastore",
	}
	datastoreProperties = []string{
		"name", "parent", "summary.type", "summary.capacity", "summary.freeSpace", "summary.accessible", "summary.maintenanceMode",
		"summary.url",
	}
	machineProperties = []string{"name", "parent", "config.uuid", "config.instanceUuid", "config.template", "runtime.powerState"}
)

// read retrieves properties of what the finder found; to the finder an empty list is an error.
func read[T any, R mo.Reference](ctx context.Context, p *peer, found []R, err error, properties ...string) error {
	var none *find.NotFoundError
	if errors.As(err, &none) {
		return nil
	}
	if err != nil {
		return err
	}
	refs := make([]types.ManagedObjectReference, len(found))
	for i, item := range found {
		refs[i] = item.Reference()
	}
	var list []T
	return property.DefaultCollector(p.Client).Retrieve(ctx, refs, properties, &list)
}

// foundMachines has the finder go through all folders, which is how programs on govmomi list virtual machines by path.
func foundMachines(ctx context.Context, p *peer, finder *find.Finder) error {
	machines, err := finder.VirtualMachineList(ctx, "*")
	return read[mo.VirtualMachine](ctx, p, machines, err, machineProperties...)
}

// viewedMachines reads them through one view, which is the quickest govmomi offers; it tells no paths.
func viewedMachines(ctx context.Context, p *peer) error {
	all, err := view.NewManager(p.Client).CreateContainerView(ctx, p.ServiceContent.RootFolder, []string{"VirtualMachine"}, true)
	if err != nil {
		return err
	}
	defer all.Destroy(ctx)
	var list []mo.VirtualMachine
	return all.Retrieve(ctx, []string{"VirtualMachine"}, machineProperties, &list)
}

func lookups(ctx context.Context, p *peer, o *options) error {
	uuids, err := lines(o.file)
	if err != nil {
		return err
	}
	index := object.NewSearchIndex(p.Client)
	return inParallel(o.parallel, uuids, func(uuid string) error {
		found, err := index.FindByUuid(ctx, nil, uuid, true, nil)
		if err == nil && found == nil {
			return fmt.Errorf("no virtual machine has the UUID %s", uuid)
		}
		return err
	})
}

// tagging ensures the tags of one category and attaches each to all objects in govmomi's bulk call.
func tagging(ctx context.Context, p *peer, o *options) error {
	names, err := lines(o.file)
	if err != nil {
		return err
	}
	var objects []mo.Reference
	for _, name := range names {
		var ref types.ManagedObjectReference
		if !ref.FromString(name) {
			return fmt.Errorf("%q is not Type:value", name)
		}
		objects = append(objects, ref)
	}
	client, err := p.withREST(ctx)
	if err != nil {
		return err
	}
	manager := tags.NewManager(client)
	const category = "govmomi-bench"
	if _, err := manager.GetCategory(ctx, category); err != nil {
		if _, err := manager.CreateCategory(ctx, &tags.Category{Name: category, Cardinality: "MULTIPLE"}); err != nil {
			return err
		}
	}
	for i := range o.tags {
		name := fmt.Sprintf("tag-%02d", i)
		tag, err := manager.GetTagForCategory(ctx, name, category)
		if err != nil {
			id, err := manager.CreateTag(ctx, &tags.Tag{Name: name, CategoryID: category})
			if err != nil {
				return err
			}
			tag = &tags.Tag{ID: id}
		}
		if err := manager.AttachTagToMultipleObjects(ctx, tag.ID, objects); err != nil {
			return err
		}
	}
	return nil
}

func smallCalls(ctx context.Context, p *peer, o *options) error {
	for range o.count {
		if _, err := methods.GetCurrentTime(ctx, p.Client); err != nil {
			return err
		}
	}
	return nil
}

func lines(path string) ([]string, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("--file: %w", err)
	}
	return strings.Fields(string(text)), nil
}

func inParallel(workers int, items []string, work func(string) error) error {
	queue := make(chan string)
	failed := make(chan error, len(items))
	var all sync.WaitGroup
	for range workers {
		all.Go(func() {
			for item := range queue {
				if err := work(item); err != nil {
					failed <- err
				}
			}
		})
	}
	for _, item := range items {
		queue <- item
	}
	close(queue)
	all.Wait()
	close(failed)
	return <-failed
}
