package main

import (
	"cmp"
	"context"
	"net/http"
	"slices"

	"github.com/vmware/govmomi/object"
	"github.com/vmware/govmomi/simulator"
)

type machine struct {
	guest
	Reference string `json:"reference"`
	Folder    string `json:"folder"`
	Pool      string `json:"pool"`
	Cluster   string `json:"cluster"`
	Host      string `json:"host"`
	Datastore string `json:"datastore"`
	Network   string `json:"network"`
	Hardware  string `json:"hardware"`
	CPUs      int32  `json:"cpus"`
	MemoryMiB int32  `json:"memoryMiB"`
}

func (s *site) listMachines(*http.Request) (any, error) {
	all := []machine{}
	for _, v := range s.vcenters {
		all = append(all, v.machines()...)
	}
	return all, nil
}

func (v *vcenter) machines() []machine {
	var all []machine
	ctx := v.context()
	for _, entity := range v.registry.All("VirtualMachine") {
		vm := entity.(*simulator.VirtualMachine)
		v.registry.WithLock(ctx, vm, func() {
			all = append(all, v.machine(vm))
		})
	}
	slices.SortFunc(all, func(a, b machine) int {
		return cmp.Or(cmp.Compare(a.Folder, b.Folder), cmp.Compare(a.Name, b.Name))
	})
	return all
}

func (v *vcenter) machine(vm *simulator.VirtualMachine) machine {
	v.guests.mu.Lock()
	m := machine{guest: v.guests.guests[vm.Self]}
	v.guests.mu.Unlock()
	m.Reference = vm.Self.Value
	m.Folder = v.path(vm.Parent)
	m.Pool = v.path(vm.ResourcePool)
	m.Hardware = vm.Config.Version
	m.CPUs = vm.Config.Hardware.NumCPU
	m.MemoryMiB = vm.Config.Hardware.MemoryMB
	if len(vm.Datastore) > 0 {
		m.Datastore = v.name(vm.Datastore[0])
	}
	if len(vm.Network) > 0 {
		m.Network = v.name(vm.Network[len(vm.Network)-1])
	}
	if vm.Runtime.Host != nil {
		if host, ok := v.registry.Get(*vm.Runtime.Host).(*simulator.HostSystem); ok {
			m.Host = host.Name
			m.Cluster = v.name(*host.Parent)
		}
	}
	return m
}

func (s *site) actOnMachine(r *http.Request) (any, error) {
	v, err := s.vcenter(r.PathValue("vcenter"))
	if err != nil {
		return nil, err
	}
	found := v.find("VirtualMachine", r.PathValue("name"))
	switch len(found) {
	case 0:
		return nil, notFound("virtual machine %q in vCenter %q", r.PathValue("name"), v.config.Name)
	case 1:
	default:
		return nil, badRequest("%d virtual machines are named %q", len(found), r.PathValue("name"))
	}
	vm := object.NewVirtualMachine(v.client, found[0].Reference())
	return done, act(r.Context(), vm, r.PathValue("action"))
}

func act(ctx context.Context, vm *object.VirtualMachine, action string) error {
	var task *object.Task
	var err error
	switch action {
	case "poweron":
		task, err = vm.PowerOn(ctx)
	case "poweroff":
		task, err = vm.PowerOff(ctx)
	case "reset":
		task, err = vm.Reset(ctx)
	case "destroy":
		state, stateErr := vm.PowerState(ctx)
		if stateErr == nil && string(state) == poweredOn {
			if err := act(ctx, vm, "poweroff"); err != nil {
				return err
			}
		}
		task, err = vm.Destroy(ctx)
	default:
		return badRequest("%q is none of poweron, poweroff, reset, destroy", action)
	}
	if err != nil {
		return err
	}
	return task.Wait(ctx)
}
