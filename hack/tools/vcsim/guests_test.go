package main

import (
	"bufio"
	"encoding/json"
	"net/http"
	"testing"

	"github.com/vmware/govmomi/vim25/mo"
)

// guestStream reads GET /guests.
type guestStream struct {
	*testSite
	lines *bufio.Scanner
}

func (s *testSite) guestStream() *guestStream {
	s.Helper()
	request, err := http.NewRequestWithContext(s.context(), "GET", "http://control/guests", nil)
	s.must(err)
	response, err := s.control.Do(request)
	s.must(err)
	s.Cleanup(func() { response.Body.Close() })
	return &guestStream{s, bufio.NewScanner(response.Body)}
}

// next returns nil at the end of the first listing.
func (g *guestStream) next() *guest {
	g.Helper()
	if !g.lines.Scan() {
		g.Fatalf("the stream ended: %v", g.lines.Err())
	}
	if g.lines.Text() == "{}" {
		return nil
	}
	seen := new(guest)
	g.must(json.Unmarshal(g.lines.Bytes(), seen))
	return seen
}

func (g *guestStream) until(what string, reached func(*guest) bool) *guest {
	g.Helper()
	g.Logf("waiting until %s", what)
	for {
		if seen := g.next(); seen != nil && reached(seen) {
			return seen
		}
	}
}

func TestTheGuestStreamFirstListsAllAndMarksTheEnd(t *testing.T) {
	stream := startTest(t).guestStream()
	names := map[string]bool{}
	for seen := stream.next(); seen != nil; seen = stream.next() {
		names[seen.VCenter+"/"+seen.Name] = seen.Template
	}
	if len(names) != 2 || !names["a/rhcos-a"] || !names["b/rhcos-b"] {
		t.Fatalf("the first listing was %v", names)
	}
}

func TestTheLifeOfAMachineIsSeenInTheGuestStream(t *testing.T) {
	s := startTest(t)
	stream := s.guestStream()
	client := s.login("a")
	vm, err := s.clone(client, "a", "worker-0", nil)
	s.must(err)
	made := stream.until("it is made", func(g *guest) bool { return g.Name == "worker-0" })
	if made.Power != "poweredOff" || made.IP != "" || made.Template {
		t.Errorf("made: %+v", made)
	}

	task, err := vm.PowerOn(s.context())
	s.must(err)
	s.must(task.Wait(s.context()))
	on := stream.until("it runs with an address", func(g *guest) bool { return g.Power == "poweredOn" && g.IP != "" })
	if on.HostName != "worker-0" || on.Boots != 1 || on.IP != "10.31.0.10" || on.UUID == "" {
		t.Errorf("on: %+v", on)
	}
	var seen mo.VirtualMachine
	s.must(vm.Properties(s.context(), vm.Reference(), []string{"guest", "summary.guest"}, &seen))
	if seen.Guest.IpAddress != on.IP || len(seen.Guest.Net) != 1 || seen.Guest.Net[0].IpAddress[0] != on.IP || seen.Guest.Net[0].Network != "network-a" {
		t.Errorf("guest as clients see it: %+v", seen.Guest)
	}

	s.ask("POST", "/vms/a/worker-0/reset", nil, nil, http.StatusOK)
	again := stream.until("it runs again", func(g *guest) bool { return g.Boots == 2 && g.IP != "" })
	if again.IP != on.IP {
		t.Errorf("the address changed from %s to %s", on.IP, again.IP)
	}
	s.ask("POST", "/vms/a/worker-0/destroy", nil, nil, http.StatusOK)
	stream.until("it is off without an address", func(g *guest) bool { return g.Power == "poweredOff" && g.IP == "" && !g.Deleted })
	stream.until("it is gone", func(g *guest) bool { return g.Deleted && g.Name == "worker-0" })
}

func TestAMachineThatIsNotThereIsNotActedOn(t *testing.T) {
	s := startTest(t)
	s.ask("POST", "/vms/a/nobody/poweron", nil, nil, http.StatusNotFound)
	s.ask("POST", "/vms/nowhere/rhcos-a/poweron", nil, nil, http.StatusNotFound)
	s.ask("POST", "/vms/a/rhcos-a/explode", nil, nil, http.StatusBadRequest)
}

func TestAddressesAreReusedOnlyWhenTheNetworkIsFull(t *testing.T) {
	s := startTest(t, func(c *siteConfig) { c.VCenters[0].Guests = "10.9.0.0/28" })
	v := s.vc("a")
	pool := v.guests.addresses
	refs := v.registry.All("") // any objects do: the pool only tells them apart
	var given []string
	for _, e := range refs[:6] {
		given = append(given, pool.take(e.Reference()))
	}
	if given[0] != "10.9.0.10" || given[5] != "10.9.0.15" {
		t.Fatalf("addresses: %v", given)
	}
	if more := pool.take(refs[6].Reference()); more != "" {
		t.Fatalf("a full network still gave %s", more)
	}
	pool.release(refs[2].Reference())
	if again := pool.take(refs[6].Reference()); again != given[2] {
		t.Fatalf("the released address %s was not given, but %q", given[2], again)
	}
}
