package main

import (
	"slices"
	"strings"

	"github.com/vmware/govmomi/object"
	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/soap"
	"github.com/vmware/govmomi/vim25/types"
)

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
