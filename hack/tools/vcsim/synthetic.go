package main

import (
	"context"
	"errors"
	"fmt"

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
	for i := 1; i < count; i++ {
		vm := copyOf(first, i)
		folder.ChildEntity = append(folder.ChildEntity, vm.Self)
		pool.Vm = append(pool.Vm, vm.Self)
		v.registry.PutEntity(folder, vm)
	}
	return nil
}

func syntheticName(i int) string { return fmt.Sprintf("synthetic-%06d", i) }

func (b *datacenterBuilder) firstSynthetic() (*simulator.VirtualMachine, error) {
	folder, err := b.ensureFolder(b.config.Name, "")
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
