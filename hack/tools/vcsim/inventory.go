package main

import (
	"strings"

	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/types"
)

// nameOf is needed because networks keep a name of their own beside the entity's.
func nameOf(entity mo.Reference) string {
	switch e := entity.(type) {
	case *mo.Network:
		return e.Name
	case *simulator.DistributedVirtualPortgroup:
		return e.Name
	case *simulator.DistributedVirtualSwitch:
		return e.Name
	case mo.Entity:
		return e.Entity().Name
	}
	return ""
}

func (v *vcenter) name(ref types.ManagedObjectReference) string {
	return nameOf(v.registry.Get(ref))
}

// ancestors are the names from the entity up to, but not including, the root folder.
func (v *vcenter) ancestors(entity mo.Entity) []mo.Entity {
	var all []mo.Entity
	for entity != nil && entity.Entity().Parent != nil {
		all = append(all, entity)
		entity, _ = v.registry.Get(*entity.Entity().Parent).(mo.Entity)
	}
	return all
}

// path is the inventory path, for example /dc-a/vm/lab-x7k2p.
func (v *vcenter) path(ref *types.ManagedObjectReference) string {
	if ref == nil {
		return ""
	}
	entity, ok := v.registry.Get(*ref).(mo.Entity)
	if !ok {
		return ""
	}
	var names []string
	for _, e := range v.ancestors(entity) {
		names = append([]string{nameOf(e)}, names...)
	}
	return "/" + strings.Join(names, "/")
}

func (b *datacenterBuilder) inDatacenter(entity mo.Entity) bool {
	for _, e := range b.ancestors(entity) {
		if e.Reference() == b.datacenter.Reference() {
			return true
		}
	}
	return false
}

// find returns the entities of one type that carry a name.
func (v *vcenter) find(kind, name string) []mo.Entity {
	var found []mo.Entity
	for _, entity := range v.registry.All(kind) {
		if nameOf(entity) == name {
			found = append(found, entity)
		}
	}
	return found
}
