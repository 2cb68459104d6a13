package main

import (
	"net/http"

	"github.com/vmware/govmomi/find"
	"github.com/vmware/govmomi/object"
	"github.com/vmware/govmomi/vim25/types"
)

type installRequest struct {
	Name         string `json:"name"`
	Template     string `json:"template"`
	Folder       string `json:"folder"`
	ResourcePool string `json:"resourcePool"`
	Datastore    string `json:"datastore"`
	CPUs         int32  `json:"cpus"`
	MemoryMiB    int64  `json:"memoryMiB"`
}

// installMachine clones a template and powers the clone on, as the OpenShift installer does for the control plane, whose
// machines exist before any controller that could make them.
func (s *site) installMachine(r *http.Request) (any, error) {
	var request installRequest
	v, err := s.request(r, &request)
	if err != nil {
		return nil, err
	}
	ctx := r.Context()
	finder := find.NewFinder(v.client)
	template, err := finder.VirtualMachine(ctx, request.Template)
	if err != nil {
		return nil, badRequest("template: %v", err)
	}
	folder, err := finder.Folder(ctx, request.Folder)
	if err != nil {
		return nil, badRequest("folder: %v", err)
	}
	pool, err := finder.ResourcePool(ctx, request.ResourcePool)
	if err != nil {
		return nil, badRequest("resourcePool: %v", err)
	}
	datastore, err := finder.Datastore(ctx, request.Datastore)
	if err != nil {
		return nil, badRequest("datastore: %v", err)
	}
	poolRef, datastoreRef, diskUUIDs := pool.Reference(), datastore.Reference(), true
	task, err := template.Clone(ctx, folder, request.Name, types.VirtualMachineCloneSpec{
		Location: types.VirtualMachineRelocateSpec{Pool: &poolRef, Datastore: &datastoreRef},
	})
	if err != nil {
		return nil, err
	}
	made, err := task.WaitForResult(ctx)
	if err != nil {
		return nil, err
	}
	vm := object.NewVirtualMachine(v.client, made.Result.(types.ManagedObjectReference))
	// What comes with a clone is ignored by the simulator itself, which a call of our own reaches.
	task, err = vm.Reconfigure(ctx, types.VirtualMachineConfigSpec{
		NumCPUs: request.CPUs, MemoryMB: request.MemoryMiB, Flags: &types.VirtualMachineFlagInfo{DiskUuidEnabled: &diskUUIDs},
	})
	if err != nil {
		return nil, err
	}
	if err := task.Wait(ctx); err != nil {
		return nil, err
	}
	if err := act(ctx, vm, "poweron"); err != nil {
		return nil, err
	}
	return map[string]string{"reference": vm.Reference().Value}, nil
}
