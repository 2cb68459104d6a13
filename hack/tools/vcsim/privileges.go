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
	if ctx.Session == nil {
		return nil, nil // the simulator refuses what needs a session
	}
	key := callKey{Client: ctx.Session.UserAgent, API: soapAPI, Method: method.Name}
	for _, n := range needs(method) {
		if n.privilege != "" && key.Client != "" && v.faults.denies(key, n.privilege, v.name(n.object)) {
			return nil, noPermission(n)
		}
	}
	switch handler := ctx.Map.Get(method.This).(type) {
	case *simulator.VirtualMachine:
		if method.Name == "CloneVM_Task" {
			return &cloneSource{handler}, nil
		}
	case *simulator.AuthorizationManager:
		return &authorization{handler, v, key}, nil
	}
	return nil, nil
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
	key     callKey
}

func (a *authorization) granted(entity types.ManagedObjectReference, privilege string) bool {
	known := slices.Contains(a.vcenter.allPrivileges(), privilege)
	return known && !a.vcenter.faults.denies(a.key, privilege, a.vcenter.name(entity))
}

func (a *authorization) availability(entities []types.ManagedObjectReference, privileges []string) []types.EntityPrivilege {
	var all []types.EntityPrivilege
	for _, entity := range entities {
		entry := types.EntityPrivilege{Entity: entity}
		for _, privilege := range privileges {
			entry.PrivAvailability = append(entry.PrivAvailability, types.PrivilegeAvailability{
				PrivId:    privilege,
				IsGranted: a.granted(entity, privilege),
			})
		}
		all = append(all, entry)
	}
	return all
}

func (a *authorization) HasPrivilegeOnEntities(request *types.HasPrivilegeOnEntities) soap.HasFault {
	return &methods.HasPrivilegeOnEntitiesBody{Res: &types.HasPrivilegeOnEntitiesResponse{
		Returnval: a.availability(request.Entity, request.PrivId),
	}}
}

func (a *authorization) HasUserPrivilegeOnEntities(request *types.HasUserPrivilegeOnEntities) soap.HasFault {
	return &methods.HasUserPrivilegeOnEntitiesBody{Res: &types.HasUserPrivilegeOnEntitiesResponse{
		Returnval: a.availability(request.Entities, request.PrivId),
	}}
}

func (a *authorization) HasPrivilegeOnEntity(request *types.HasPrivilegeOnEntity) soap.HasFault {
	granted := make([]bool, len(request.PrivId))
	for i, privilege := range request.PrivId {
		granted[i] = a.granted(request.Entity, privilege)
	}
	return &methods.HasPrivilegeOnEntityBody{Res: &types.HasPrivilegeOnEntityResponse{Returnval: granted}}
}

func (a *authorization) FetchUserPrivilegeOnEntities(request *types.FetchUserPrivilegeOnEntities) soap.HasFault {
	var all []types.UserPrivilegeResult
	for _, entity := range request.Entities {
		entry := types.UserPrivilegeResult{Entity: entity}
		for _, privilege := range a.vcenter.allPrivileges() {
			if !a.vcenter.faults.denies(a.key, privilege, a.vcenter.name(entity)) {
				entry.Privileges = append(entry.Privileges, privilege)
			}
		}
		all = append(all, entry)
	}
	return &methods.FetchUserPrivilegeOnEntitiesBody{Res: &types.FetchUserPrivilegeOnEntitiesResponse{Returnval: all}}
}

func (v *vcenter) authorizationManager() *simulator.AuthorizationManager {
	return v.registry.Get(*v.client.ServiceContent.AuthorizationManager).(*simulator.AuthorizationManager)
}

func (v *vcenter) allPrivileges() []string {
	return object.AuthorizationRoleList(v.authorizationManager().RoleList).ByName("Admin").Privilege
}

// publishPrivileges fills privilegeList, which the simulator leaves empty and clients prune their wishes by.
func (v *vcenter) publishPrivileges() {
	unknown := v.faults.unknown()
	var list []types.AuthorizationPrivilege
	for _, id := range v.allPrivileges() {
		if slices.Contains(unknown, id) {
			continue
		}
		dot := strings.LastIndex(id, ".")
		list = append(list, types.AuthorizationPrivilege{PrivId: id, Name: id[dot+1:], PrivGroupName: id[:dot]})
	}
	manager := v.authorizationManager()
	ctx := v.context()
	v.registry.AtomicUpdate(ctx, manager, []types.PropertyChange{{
		Name: "privilegeList", Val: types.ArrayOfAuthorizationPrivilege{AuthorizationPrivilege: list},
	}})
}
