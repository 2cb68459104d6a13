package main

import (
	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/types"
)

// need is a privilege that a method wants on an object.
type need struct {
	privilege string
	object    types.ManagedObjectReference
}

// needs lists what vCenter asks for, as far as an OpenShift cluster's components meet it.
func needs(method *simulator.Method) []need {
	this := method.This
	on := func(privileges ...string) []need {
		var all []need
		for _, privilege := range privileges {
			all = append(all, need{privilege, this})
		}
		return all
	}
	switch request := method.Body.(type) {
	case *types.CreateFolder:
		return on("Folder.Create")
	case *types.CreateVM_Task:
		return append(on("VirtualMachine.Inventory.Create"), need{"Resource.AssignVMToPool", request.Pool})
	case *types.CloneVM_Task:
		all := on("VirtualMachine.Provisioning.DeployTemplate", "VirtualMachine.Provisioning.Clone")
		all = append(all, need{"VirtualMachine.Inventory.CreateFromExisting", request.Folder})
		if pool := request.Spec.Location.Pool; pool != nil {
			all = append(all, need{"Resource.AssignVMToPool", *pool})
		}
		if datastore := request.Spec.Location.Datastore; datastore != nil {
			all = append(all, need{"Datastore.AllocateSpace", *datastore})
		}
		return all
	case *types.ReconfigVM_Task:
		return on("VirtualMachine.Config.Settings", "VirtualMachine.Config.AdvancedConfig")
	case *types.PowerOnVM_Task:
		return on("VirtualMachine.Interact.PowerOn")
	case *types.PowerOnMultiVM_Task:
		var all []need
		for _, vm := range request.Vm {
			all = append(all, need{"VirtualMachine.Interact.PowerOn", vm})
		}
		return all
	case *types.PowerOffVM_Task:
		return on("VirtualMachine.Interact.PowerOff")
	case *types.ResetVM_Task:
		return on("VirtualMachine.Interact.Reset")
	case *types.MarkAsTemplate:
		return on("VirtualMachine.Provisioning.MarkAsTemplate")
	case *types.SessionIsActive:
		return on("Sessions.ValidateSession")
	case *types.Rename_Task:
		return on(map[string]string{"Folder": "Folder.Rename"}[this.Type], "VirtualMachine.Config.Rename")
	case *types.Destroy_Task:
		return on(map[string]string{
			"Folder":         "Folder.Delete",
			"VirtualMachine": "VirtualMachine.Inventory.Delete",
			"Datacenter":     "Datacenter.Delete",
			"ResourcePool":   "Resource.DeletePool",
		}[this.Type])
	}
	return nil
}

// intercept stands between the simulator's session check and its methods.
func (v *vcenter) intercept(ctx *simulator.Context, method *simulator.Method) (mo.Reference, types.BaseMethodFault) {
	if ctx.Session == nil || ctx.Session.IpAddress == "" {
		return nil, nil // the simulator refuses what needs a session, and calls past the proxy are our own
	}
	return nil, v.refused(callKey{Client: ctx.Session.UserAgent, API: soapAPI, Method: method.Name}, method)
}

func (v *vcenter) refused(key callKey, method *simulator.Method) types.BaseMethodFault {
	for _, n := range needs(method) {
		if n.privilege != "" && v.faults.denies(key, n.privilege, v.name(n.object)) {
			return noPermission(n)
		}
	}
	return nil
}

func noPermission(n need) *types.NoPermission {
	return &types.NoPermission{
		Object:      &n.object,
		PrivilegeId: n.privilege,
		MissingPrivileges: []types.NoPermissionEntityPrivileges{{
			Entity:       n.object,
			PrivilegeIds: []string{n.privilege},
		}},
	}
}
