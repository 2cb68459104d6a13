package main

import (
	"github.com/google/uuid"
	"github.com/vmware/govmomi/object"
	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/soap"
	"github.com/vmware/govmomi/vim25/types"
)

// cloneSource clones as vCenter does. The simulator ignores the configuration that comes with a clone and powerOn, takes
// the host of the source even if the pool is in another cluster, and derives equal UUIDs in every vCenter.
type cloneSource struct {
	*simulator.VirtualMachine
}

func (s *cloneSource) CloneVMTask(ctx *simulator.Context, request *types.CloneVM_Task) soap.HasFault {
	source := s.VirtualMachine
	if request.Spec.Location.Host == nil {
		request.Spec.Location.Host = hostOf(ctx, request.Spec.Location.Pool)
	}
	if request.Spec.Location.Host == nil && source.Runtime.Host == nil {
		return &methods.CloneVM_TaskBody{Fault_: simulator.Fault("", &types.InvalidArgument{InvalidProperty: "spec.location.host"})}
	}
	task := simulator.CreateTask(source, "cloneVm", func(*simulator.Task) (types.AnyType, types.BaseMethodFault) {
		made := source.CloneVMTask(ctx, withoutDevices(request))
		if made.Fault() != nil {
			return nil, made.Fault().VimFault().(types.BaseMethodFault)
		}
		result, fault := outcome(ctx, made.(*methods.CloneVM_TaskBody).Res.Returnval)
		if fault != nil {
			return nil, fault
		}
		clone := ctx.Map.Get(result.(types.ManagedObjectReference)).(*simulator.VirtualMachine)
		return clone.Self, finishClone(ctx, clone, request.Spec)
	})
	return &methods.CloneVM_TaskBody{Res: &types.CloneVM_TaskResponse{Returnval: task.Run(ctx)}}
}

func finishClone(ctx *simulator.Context, clone *simulator.VirtualMachine, spec types.VirtualMachineCloneSpec) types.BaseMethodFault {
	config := types.VirtualMachineConfigSpec{}
	if spec.Config != nil {
		config = *spec.Config
	}
	if config.Uuid == "" {
		config.Uuid = uuid.NewString()
	}
	if config.InstanceUuid == "" {
		config.InstanceUuid = uuid.NewString()
	}
	var fault types.BaseMethodFault
	ctx.WithLock(clone, func() {
		if !spec.Template {
			fault = reconfigure(ctx, clone, config)
		}
		if fault == nil && spec.PowerOn {
			task := clone.PowerOnVMTask(ctx, &types.PowerOnVM_Task{This: clone.Self})
			_, fault = outcome(ctx, task.(*methods.PowerOnVM_TaskBody).Res.Returnval)
		}
	})
	return fault
}

// withoutDevices is the request without its device changes: the simulator would apply them in the clone and drop the error.
func withoutDevices(request *types.CloneVM_Task) *types.CloneVM_Task {
	if request.Spec.Config == nil {
		return request
	}
	plain := *request
	config := *request.Spec.Config
	config.DeviceChange = nil
	plain.Spec.Config = &config
	return &plain
}

// reconfigure changes the clone, not what it was cloned from: the caller read the disks off the template, so they name the
// template's files, which would go with the first clone that is destroyed.
func reconfigure(ctx *simulator.Context, clone *simulator.VirtualMachine, config types.VirtualMachineConfigSpec) types.BaseMethodFault {
	own := object.VirtualDeviceList(clone.Config.Hardware.Device)
	for _, change := range config.DeviceChange {
		spec := change.GetVirtualDeviceConfigSpec()
		device := spec.Device.GetVirtualDevice()
		if cloned := own.FindByKey(device.Key); spec.Operation == types.VirtualDeviceConfigSpecOperationEdit && cloned != nil {
			device.Backing = cloned.GetVirtualDevice().Backing
		}
	}
	task := clone.ReconfigVMTask(ctx, &types.ReconfigVM_Task{This: clone.Self, Spec: config})
	_, fault := outcome(ctx, task.(*methods.ReconfigVM_TaskBody).Res.Returnval)
	return fault
}

// outcome waits for one of the simulator's tasks.
func outcome(ctx *simulator.Context, ref types.ManagedObjectReference) (types.AnyType, types.BaseMethodFault) {
	task := ctx.Map.Get(ref).(*simulator.Task)
	task.Wait()
	if task.Info.Error != nil {
		return nil, task.Info.Error.Fault
	}
	return task.Info.Result, nil
}

// hostOf picks the first host of the cluster that a resource pool belongs to.
func hostOf(ctx *simulator.Context, pool *types.ManagedObjectReference) *types.ManagedObjectReference {
	if pool == nil {
		return nil
	}
	if p, ok := ctx.Map.Get(*pool).(*simulator.ResourcePool); ok {
		if cluster, ok := ctx.Map.Get(p.Owner).(*simulator.ClusterComputeResource); ok && len(cluster.Host) > 0 {
			return &cluster.Host[0]
		}
	}
	return nil
}
