package main

import (
	"log"
	"slices"
	"time"

	"github.com/google/uuid"
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

// reconfigure tries again where the simulator stumbles: it looks at the files of all machines of a datastore, and fails when
// one of them is destroyed meanwhile. A failed change leaves its device list in disorder, so that is put back first.
func reconfigure(ctx *simulator.Context, vm *simulator.VirtualMachine, config types.VirtualMachineConfigSpec) types.BaseMethodFault {
	const attempts = 20
	devices := slices.Clone(vm.Config.Hardware.Device)
	for attempt := 1; ; attempt++ {
		task := vm.ReconfigVMTask(ctx, &types.ReconfigVM_Task{This: vm.Self, Spec: config})
		_, fault := outcome(ctx, task.(*methods.ReconfigVM_TaskBody).Res.Returnval)
		if fault == nil || attempt == attempts {
			return fault
		}
		log.Printf("vcsim: the devices of %s could not be changed (%T), trying again", vm.Name, fault)
		vm.Config.Hardware.Device = slices.Clone(devices)
		time.Sleep(20 * time.Millisecond)
	}
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
