package main

import (
	"fmt"

	"github.com/google/uuid"
	"github.com/vmware/govmomi/object"
	"github.com/vmware/govmomi/vim25/types"
)

const defaultHardware = "vmx-19"

// createVM makes a virtual machine with one disk and one network card, powered off.
func (b *datacenterBuilder) createVM(folder *object.Folder, config templateConfig) (*object.VirtualMachine, error) {
	if config.Hardware == "" {
		config.Hardware = defaultHardware
	}
	if config.DiskGiB == 0 {
		config.DiskGiB = 16
	}
	devices, err := b.devices(config)
	if err != nil {
		return nil, err
	}
	changes, err := devices.ConfigSpec(types.VirtualDeviceConfigSpecOperationAdd)
	if err != nil {
		return nil, err
	}
	spec := types.VirtualMachineConfigSpec{
		Name:         config.Name,
		GuestId:      string(types.VirtualMachineGuestOsIdentifierCoreos64Guest),
		Version:      config.Hardware,
		Uuid:         uuid.NewString(),
		InstanceUuid: uuid.NewString(),
		NumCPUs:      4,
		MemoryMB:     16384,
		Files:        &types.VirtualMachineFileInfo{VmPathName: fmt.Sprintf("[%s]", b.config.Datastores[0])},
		DeviceChange: changes,
	}
	task, err := folder.CreateVM(b.ctx, spec, b.pool, nil)
	if err != nil {
		return nil, err
	}
	info, err := task.WaitForResult(b.ctx, nil)
	if err != nil {
		return nil, err
	}
	return object.NewVirtualMachine(b.client, info.Result.(types.ManagedObjectReference)), nil
}

func (b *datacenterBuilder) devices(config templateConfig) (object.VirtualDeviceList, error) {
	var devices object.VirtualDeviceList
	controller, err := devices.CreateSCSIController("pvscsi")
	if err != nil {
		return nil, err
	}
	path := fmt.Sprintf("[%s] %s/disk1.vmdk", b.config.Datastores[0], config.Name)
	disk := devices.CreateDisk(controller.(types.BaseVirtualController), types.ManagedObjectReference{}, path)
	disk.CapacityInKB = config.DiskGiB << 20
	devices = append(devices, controller, disk)

	if len(b.config.Networks) == 0 {
		return devices, nil
	}
	network, err := b.network(b.config.Networks[0])
	if err != nil {
		return nil, err
	}
	card, err := devices.CreateEthernetCard("vmxnet3", network)
	if err != nil {
		return nil, err
	}
	return append(devices, card), nil
}

func (b *datacenterBuilder) network(name string) (types.BaseVirtualDeviceBackingInfo, error) {
	for _, entity := range b.registry.All("DistributedVirtualPortgroup") {
		if nameOf(entity) == name && b.inDatacenter(entity) {
			return object.NewDistributedVirtualPortgroup(b.client, entity.Reference()).EthernetCardBackingInfo(b.ctx)
		}
	}
	return nil, fmt.Errorf("network %q was not made", name)
}
