package main

import (
	"net/netip"
	"sync"

	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/types"
)

// guest is what a lab needs to know to play the operating system inside a virtual machine.
type guest struct {
	VCenter      string `json:"vcenter"`
	Name         string `json:"name"`
	UUID         string `json:"uuid"`
	InstanceUUID string `json:"instanceUuid"`
	Power        string `json:"power"`
	IP           string `json:"ip"`
	HostName     string `json:"hostName"`
	Template     bool   `json:"template"`
	Boots        int    `json:"boots"`
	Deleted      bool   `json:"deleted"`
}

// guestWatch hears of every change from the simulator's registry, gives addresses to machines that are switched on, and
// tells subscribers.
type guestWatch struct {
	vcenter *vcenter
	self    types.ManagedObjectReference

	mu          sync.Mutex
	guests      map[types.ManagedObjectReference]guest
	addresses   *addressPool
	subscribers map[*subscriber]bool
}

func watchGuests(v *vcenter) (*guestWatch, error) {
	w := &guestWatch{
		vcenter:     v,
		self:        types.ManagedObjectReference{Type: "GuestWatch", Value: "guest-watch"},
		guests:      map[types.ManagedObjectReference]guest{},
		subscribers: map[*subscriber]bool{},
	}
	if v.config.Guests != "" {
		network, err := netip.ParsePrefix(v.config.Guests)
		if err != nil {
			return nil, err
		}
		w.addresses = newAddressPool(network)
	}
	for _, vm := range v.registry.All("VirtualMachine") {
		w.look(vm.(*simulator.VirtualMachine))
	}
	v.registry.AddHandler(w)
	return w, nil
}

func (w *guestWatch) Reference() types.ManagedObjectReference { return w.self }

// PutObject is called by the registry for every new object.
func (w *guestWatch) PutObject(_ *simulator.Context, object mo.Reference) {
	if vm, ok := object.(*simulator.VirtualMachine); ok {
		w.look(vm)
	}
}

// UpdateObject is called by the registry, with the object locked, for every change.
func (w *guestWatch) UpdateObject(ctx *simulator.Context, object mo.Reference, changes []types.PropertyChange) {
	if object.Reference().Type != "VirtualMachine" {
		return
	}
	vm, ok := w.vcenter.registry.Get(object.Reference()).(*simulator.VirtualMachine)
	if !ok {
		return
	}
	for _, change := range changes {
		if change.Name == "runtime.powerState" {
			w.setAddress(ctx, vm)
		}
	}
	w.look(vm)
}

// RemoveObject is called by the registry before an object goes.
func (w *guestWatch) RemoveObject(_ *simulator.Context, ref types.ManagedObjectReference) {
	w.mu.Lock()
	g, known := w.guests[ref]
	if known {
		delete(w.guests, ref)
		w.addresses.release(ref)
		g.Deleted = true
		w.tell(g)
	}
	w.mu.Unlock()
	if known {
		w.vcenter.forgetTags(ref)
	}
}

func (w *guestWatch) look(vm *simulator.VirtualMachine) {
	if vm.Config == nil || vm.Name == "" {
		return // still being made; an update follows
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	before, known := w.guests[vm.Self]
	now := guest{
		VCenter:      w.vcenter.config.Name,
		Name:         vm.Name,
		UUID:         vm.Config.Uuid,
		InstanceUUID: vm.Config.InstanceUuid,
		Power:        string(vm.Runtime.PowerState),
		Template:     vm.Config.Template,
		Boots:        before.Boots,
	}
	if vm.Guest != nil {
		now.IP, now.HostName = vm.Guest.IpAddress, vm.Guest.HostName
	}
	if now.Power == poweredOn && before.Power != poweredOn {
		now.Boots++
	}
	if !known || now != before {
		w.guests[vm.Self] = now
		w.tell(now)
	}
}

const poweredOn = string(types.VirtualMachinePowerStatePoweredOn)

// setAddress plays VMware Tools: a running guest reports its name and addresses, a stopped one nothing.
func (w *guestWatch) setAddress(ctx *simulator.Context, vm *simulator.VirtualMachine) {
	if w.addresses == nil || vm.Guest == nil {
		return
	}
	ip, name, tools := "", "", types.VirtualMachineToolsRunningStatusGuestToolsNotRunning
	if vm.Runtime.PowerState == types.VirtualMachinePowerStatePoweredOn {
		w.mu.Lock()
		ip = w.addresses.take(vm.Self)
		w.mu.Unlock()
		name, tools = vm.Name, types.VirtualMachineToolsRunningStatusGuestToolsRunning
	}
	w.vcenter.registry.Update(ctx, vm, []types.PropertyChange{
		{Name: "guest.ipAddress", Val: ip},
		{Name: "guest.hostName", Val: name},
		{Name: "guest.toolsRunningStatus", Val: string(tools)},
		{Name: "summary.guest.ipAddress", Val: ip},
		{Name: "summary.guest.hostName", Val: name},
		{Name: "guest.net", Val: w.cards(vm, ip)},
	})
}

// cards puts the address on the first network card and the names of their networks on all.
func (w *guestWatch) cards(vm *simulator.VirtualMachine, ip string) []types.GuestNicInfo {
	cards := append([]types.GuestNicInfo(nil), vm.Guest.Net...)
	for i := range cards {
		cards[i].IpAddress = nil
		if cards[i].Network == "" && i < len(vm.Network) {
			cards[i].Network = w.vcenter.name(vm.Network[i])
		}
		if i == 0 && ip != "" {
			cards[i].IpAddress = []string{ip}
		}
	}
	return cards
}
