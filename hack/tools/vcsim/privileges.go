package main

import (
	"slices"
	"strings"

	"github.com/vmware/govmomi/object"
	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/soap"
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

var restNeeds = []struct{ method, privilege string }{
	{"POST /rest/com/vmware/cis/tagging/category", "InventoryService.Tagging.CreateCategory"},
	{"POST /rest/com/vmware/cis/tagging/tag", "InventoryService.Tagging.CreateTag"},
	{"PATCH /rest/com/vmware/cis/tagging/category/{id}", "InventoryService.Tagging.EditCategory"},
	{"PATCH /rest/com/vmware/cis/tagging/tag/{id}", "InventoryService.Tagging.EditTag"},
	{"DELETE /rest/com/vmware/cis/tagging/category/{id}", "InventoryService.Tagging.DeleteCategory"},
	{"DELETE /rest/com/vmware/cis/tagging/tag/{id}", "InventoryService.Tagging.DeleteTag"},
}

func restNeed(method string) string {
	if strings.Contains(method, "/tagging/tag-association") && strings.Contains(method, "tach") {
		return "InventoryService.Tagging.AttachTag" // attach and detach alike
	}
	for _, n := range restNeeds {
		if n.method == method {
			return n.privilege
		}
	}
	return ""
}

// refusedREST is the answer to a REST call whose privilege is withheld from the session's user.
func (v *vcenter) refusedREST(c *call) *answer {
	if c.API != restAPI {
		return nil
	}
	privilege := restNeed(c.Method)
	if privilege == "" || !v.sessions.hasREST(c.http) || !v.faults.denies(c.callKey, privilege, "*") {
		return nil
	}
	return restError("NoPermission", "")
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

// authorization answers questions about privileges with the faults in mind; the simulator grants everything.
type authorization struct {
	*simulator.AuthorizationManager
	vcenter *vcenter
}

func (a *authorization) granted(ctx *simulator.Context, entity types.ManagedObjectReference, privilege string) bool {
	key := callKey{Client: ctx.Session.UserAgent, API: soapAPI}
	known := slices.Contains(a.all(), privilege)
	return known && !a.vcenter.faults.denies(key, privilege, a.vcenter.name(entity))
}

func (a *authorization) all() []string {
	return object.AuthorizationRoleList(a.RoleList).ByName("Admin").Privilege
}

func (a *authorization) availability(ctx *simulator.Context, entities []types.ManagedObjectReference, privileges []string) []types.EntityPrivilege {
	var all []types.EntityPrivilege
	for _, entity := range entities {
		entry := types.EntityPrivilege{Entity: entity}
		for _, privilege := range privileges {
			entry.PrivAvailability = append(entry.PrivAvailability, types.PrivilegeAvailability{
				PrivId:    privilege,
				IsGranted: a.granted(ctx, entity, privilege),
			})
		}
		all = append(all, entry)
	}
	return all
}

func (a *authorization) HasPrivilegeOnEntities(ctx *simulator.Context, request *types.HasPrivilegeOnEntities) soap.HasFault {
	return &methods.HasPrivilegeOnEntitiesBody{Res: &types.HasPrivilegeOnEntitiesResponse{
		Returnval: a.availability(ctx, request.Entity, request.PrivId),
	}}
}

func (a *authorization) HasUserPrivilegeOnEntities(ctx *simulator.Context, request *types.HasUserPrivilegeOnEntities) soap.HasFault {
	return &methods.HasUserPrivilegeOnEntitiesBody{Res: &types.HasUserPrivilegeOnEntitiesResponse{
		Returnval: a.availability(ctx, request.Entities, request.PrivId),
	}}
}

func (a *authorization) HasPrivilegeOnEntity(ctx *simulator.Context, request *types.HasPrivilegeOnEntity) soap.HasFault {
	granted := make([]bool, len(request.PrivId))
	for i, privilege := range request.PrivId {
		granted[i] = a.granted(ctx, request.Entity, privilege)
	}
	return &methods.HasPrivilegeOnEntityBody{Res: &types.HasPrivilegeOnEntityResponse{Returnval: granted}}
}

func (a *authorization) FetchUserPrivilegeOnEntities(ctx *simulator.Context, request *types.FetchUserPrivilegeOnEntities) soap.HasFault {
	var all []types.UserPrivilegeResult
	for _, entity := range request.Entities {
		entry := types.UserPrivilegeResult{Entity: entity}
		for _, privilege := range a.all() {
			if a.granted(ctx, entity, privilege) {
				entry.Privileges = append(entry.Privileges, privilege)
			}
		}
		all = append(all, entry)
	}
	return &methods.FetchUserPrivilegeOnEntitiesBody{Res: &types.FetchUserPrivilegeOnEntitiesResponse{Returnval: all}}
}

// guardPrivileges puts our authorization manager in the place of the simulator's.
func (v *vcenter) guardPrivileges() {
	manager := v.registry.Get(*v.client.ServiceContent.AuthorizationManager).(*simulator.AuthorizationManager)
	v.authorization = &authorization{manager, v}
	v.registry.Put(v.authorization)
	v.publishPrivileges()
}

// publishPrivileges fills privilegeList, which the simulator leaves empty and clients prune their wishes by.
func (v *vcenter) publishPrivileges() {
	unknown := v.faults.unknown()
	var list []types.AuthorizationPrivilege
	for _, id := range v.authorization.all() {
		if slices.Contains(unknown, id) {
			continue
		}
		dot := strings.LastIndex(id, ".")
		list = append(list, types.AuthorizationPrivilege{PrivId: id, Name: id[dot+1:], PrivGroupName: id[:dot]})
	}
	v.registry.AtomicUpdate(v.context(), v.authorization, []types.PropertyChange{{
		Name: "privilegeList", Val: types.ArrayOfAuthorizationPrivilege{AuthorizationPrivilege: list},
	}})
}
