package main

import (
	"net/netip"

	"github.com/vmware/govmomi/vim25/types"
)

// addressPool keeps one address per virtual machine for its life.
type addressPool struct {
	network netip.Prefix
	next    netip.Addr
	owners  map[netip.Addr]types.ManagedObjectReference
	taken   map[types.ManagedObjectReference]netip.Addr
}

// The first addresses of a network belong to gateways and load balancers.
const reservedAddresses = 10

func newAddressPool(network netip.Prefix) *addressPool {
	p := &addressPool{
		network: network.Masked(),
		owners:  map[netip.Addr]types.ManagedObjectReference{},
		taken:   map[types.ManagedObjectReference]netip.Addr{},
	}
	p.rewind()
	return p
}

func (p *addressPool) rewind() {
	p.next = p.network.Addr()
	for range reservedAddresses {
		p.next = p.next.Next()
	}
}

// take returns the machine's address, or "" when the network has none left.
func (p *addressPool) take(vm types.ManagedObjectReference) string {
	if address, ok := p.taken[vm]; ok {
		return address.String()
	}
	for rounds := 0; rounds < 2; p.next = p.next.Next() {
		if !p.network.Contains(p.next) {
			p.rewind()
			rounds++
		}
		if _, used := p.owners[p.next]; !used && p.network.Contains(p.next) {
			p.owners[p.next], p.taken[vm] = vm, p.next
			return p.taken[vm].String()
		}
	}
	return ""
}

func (p *addressPool) release(vm types.ManagedObjectReference) {
	if p == nil {
		return
	}
	delete(p.owners, p.taken[vm])
	delete(p.taken, vm)
}
