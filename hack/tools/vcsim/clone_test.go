package main

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/vmware/govmomi/find"
	"github.com/vmware/govmomi/object"
	"github.com/vmware/govmomi/vim25/types"
)

// As the machine controller does: the disk grows, the template's cards go, one of its own comes, while others are destroyed.
func TestEveryCloneHasExactlyTheNetworkCardItAskedFor(t *testing.T) {
	s := startTest(t)
	client := s.login("a").Client
	ctx := context.Background()
	finder := find.NewFinder(client)
	template, err := finder.VirtualMachine(ctx, "/dc-a/vm/rhcos-a")
	s.must(err)
	folder, err := finder.Folder(ctx, "/dc-a/vm/lab-x7k2p")
	s.must(err)
	pool, err := finder.ResourcePool(ctx, "/dc-a/host/cluster-a/Resources")
	s.must(err)
	network, err := finder.Network(ctx, "/dc-a/network/network-a")
	s.must(err)
	backing, err := network.EthernetCardBackingInfo(ctx)
	s.must(err)
	for round := range 3 {
		var running sync.WaitGroup
		for i := range 6 {
			running.Go(func() {
				name := fmt.Sprintf("machine-%d-%d", round, i)
				devices, err := template.Device(ctx)
				s.must(err)
				var changes []types.BaseVirtualDeviceConfigSpec
				for _, card := range devices.SelectByType((*types.VirtualEthernetCard)(nil)) {
					changes = append(changes, &types.VirtualDeviceConfigSpec{Operation: types.VirtualDeviceConfigSpecOperationRemove, Device: card})
				}
				for _, device := range devices.SelectByType((*types.VirtualDisk)(nil)) {
					device.(*types.VirtualDisk).CapacityInKB *= 2
					changes = append([]types.BaseVirtualDeviceConfigSpec{
						&types.VirtualDeviceConfigSpec{Operation: types.VirtualDeviceConfigSpecOperationEdit, Device: device},
					}, changes...)
				}
				card, err := object.EthernetCardTypes().CreateEthernetCard("vmxnet3", backing)
				s.must(err)
				card.GetVirtualDevice().Key = -200
				changes = append(changes, &types.VirtualDeviceConfigSpec{Operation: types.VirtualDeviceConfigSpecOperationAdd, Device: card})
				poolRef := pool.Reference()
				task, err := template.Clone(ctx, folder, name, types.VirtualMachineCloneSpec{
					Location: types.VirtualMachineRelocateSpec{Pool: &poolRef},
					Config:   &types.VirtualMachineConfigSpec{DeviceChange: changes},
				})
				s.must(err)
				made, err := task.WaitForResult(ctx)
				s.must(err)
				vm := object.NewVirtualMachine(client, made.Result.(types.ManagedObjectReference))
				s.must(act(ctx, vm, "poweron"))
				devices, err = vm.Device(ctx)
				s.must(err)
				if cards := devices.SelectByType((*types.VirtualEthernetCard)(nil)); len(cards) != 1 {
					t.Errorf("%s has %d network cards", name, len(cards))
				}
				if i%2 == 0 {
					s.must(act(ctx, vm, "destroy"))
				}
			})
		}
		running.Wait()
	}
}
