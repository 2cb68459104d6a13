package main

import (
	"context"

	"github.com/vmware/govmomi/object"
	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/mo"
)

// absentee is an object that is gone for as long as its fault lasts, and the folder it was in.
type absentee struct {
	entity mo.Entity
	folder *simulator.Folder
}

// takeAway makes the object at the fault's path vanish: no listing shows it, and its reference leads nowhere. It is kept,
// with all below it, for the day the fault is lifted.
func (v *vcenter) takeAway(f *fault) error {
	found, err := object.NewSearchIndex(v.client).FindByInventoryPath(context.Background(), f.Object)
	if err != nil {
		return err
	}
	if found == nil {
		return notFound("object %q in vCenter %q", f.Object, v.config.Name)
	}
	ref := found.Reference()
	if vm, ok := v.registry.Get(ref).(*simulator.VirtualMachine); ok && !vm.Config.Template {
		return badRequest("%q is a virtual machine, which would lose its address for good: destroy it, or switch it off", f.Object)
	}
	entity, isEntity := v.registry.Get(ref).(mo.Entity)
	if !isEntity || entity.Entity().Parent == nil {
		return badRequest("%q cannot go", f.Object)
	}
	folder, inFolder := v.registry.Get(*entity.Entity().Parent).(*simulator.Folder)
	if !inFolder {
		return badRequest("%q is not in a folder, and only what is in one can go alone", f.Object)
	}
	ctx := v.context()
	v.registry.WithLock(ctx, folder, func() {
		v.registry.RemoveReference(ctx, folder, &folder.ChildEntity, ref)
	})
	v.registry.Remove(ctx, ref)
	f.absent = &absentee{entity: entity, folder: folder}
	return nil
}

// bringBack ends the absence of what these faults took away.
func (v *vcenter) bringBack(lifted faults) {
	ctx := v.context()
	for _, f := range lifted {
		if f.absent == nil {
			continue
		}
		folder := f.absent.folder
		v.registry.PutEntity(folder, f.absent.entity)
		v.registry.WithLock(ctx, folder, func() {
			v.registry.AppendReference(ctx, folder, &folder.ChildEntity, f.absent.entity.Reference())
		})
		f.absent = nil
	}
}
