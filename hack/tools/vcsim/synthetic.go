package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/google/uuid"
	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/types"
)

// addSynthetic puts copies of one virtual machine straight into the registry. Made through the API, 50,000 of them take
// a quarter of an hour and as many files; they are for reading only, as they share their devices.
func (v *vcenter) addSynthetic(count int) error {
	config := v.config.Datacenters[0]
	if len(config.Datastores) == 0 {
		return errors.New("synthetic virtual machines need a datastore in the first datacenter")
	}
	b := &datacenterBuilder{vcenter: v, config: config, ctx: context.Background()}
	first, err := b.firstSynthetic()
	if err != nil {
		return err
	}

	folder := v.registry.Get(*first.Parent).(*simulator.Folder)
	pool := v.registry.Get(*first.ResourcePool).(*simulator.ResourcePool)
	var all []types.ManagedObjectReference
	for i := 1; i < count; i++ {
		vm := copyOf(first, i)
		v.registry.PutEntity(folder, vm)
		all = append(all, vm.Self)
	}
	ctx := v.context()
	v.registry.WithLock(ctx, folder, func() { folder.ChildEntity = append(folder.ChildEntity, all...) })
	v.registry.WithLock(ctx, pool, func() { pool.Vm = append(pool.Vm, all...) })
	return nil
}

type crowdRequest struct {
	Count int `json:"count"`
}

// crowd fills a running vCenter with synthetic virtual machines, once.
func (s *site) crowd(r *http.Request) (any, error) {
	var request crowdRequest
	v, err := s.request(r, &request)
	if err != nil {
		return nil, err
	}
	if request.Count < 1 || request.Count > 100_000 {
		return nil, badRequest("`count` is %d; wanted is 1 to 100000", request.Count)
	}
	if len(v.find("VirtualMachine", syntheticName(0))) > 0 {
		return nil, badRequest("vCenter %q has its synthetic virtual machines already", v.config.Name)
	}
	return done, v.addSynthetic(request.Count)
}

func syntheticName(i int) string { return fmt.Sprintf("synthetic-%06d", i) }

func (b *datacenterBuilder) firstSynthetic() (*simulator.VirtualMachine, error) {
	folder, err := b.ensureFolder(b.config.path(), "")
	if err != nil {
		return nil, err
	}
	if err := b.adopt(); err != nil {
		return nil, err
	}
	vm, err := b.createVM(folder, templateConfig{Name: syntheticName(0)})
	if err != nil {
		return nil, err
	}
	return b.registry.Get(vm.Reference()).(*simulator.VirtualMachine), nil
}

func copyOf(first *simulator.VirtualMachine, i int) *simulator.VirtualMachine {
	vm := new(simulator.VirtualMachine)
	vm.VirtualMachine = first.VirtualMachine
	vm.Self = types.ManagedObjectReference{Type: "VirtualMachine", Value: fmt.Sprintf("vm-9%06d", i)}
	vm.Name = syntheticName(i)

	config := *first.Config
	config.Name = vm.Name
	config.Uuid = uuid.NewString()
	config.InstanceUuid = uuid.NewString()
	vm.Config = &config

	vm.Summary.Vm = &vm.Self
	vm.Summary.Config.Name = vm.Name
	vm.Summary.Config.Uuid = config.Uuid
	vm.Summary.Config.InstanceUuid = config.InstanceUuid
	guest := *first.Guest
	vm.Guest = &guest
	return vm
}
