// Command bench does with govmomi the work that hack/bench times our own client at, and prints one line of JSON:
// {"seconds","requests","bytesIn","bytesOut","peakMb"}. The measure begins before the first connection and ends after
// the logout; bytes are those of bodies, as the client sees them; the peak is the process's own resident memory.
//
//	bench inventory [--vms finder|view]              with virtual machines, by the finder or by one view
//	bench uuids --file UUIDS [--parallel 4]           one BIOS UUID per line
//	bench tags --file OBJECTS [--tags 20]             one managed object per line, as Type:value
//	bench calls [--count 1000]
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"time"
)

type options struct {
	url, username, password, ca string
	insecure                    bool
	file, vms                   string
	parallel, tags, count       int
}

type result struct {
	Seconds  float64 `json:"seconds"`
	Requests int64   `json:"requests"`
	BytesIn  int64   `json:"bytesIn"`
	BytesOut int64   `json:"bytesOut"`
	PeakMB   float64 `json:"peakMb"`
}

var works = map[string]func(context.Context, *peer, *options) error{
	"inventory": inventory,
	"uuids":     lookups,
	"tags":      tagging,
	"calls":     smallCalls,
}

func main() {
	done, err := measure(os.Args[1:])
	if err != nil {
		fmt.Fprintf(os.Stderr, "bench: %v\n", err)
		os.Exit(1)
	}
	json.NewEncoder(os.Stdout).Encode(done)
}

func measure(arguments []string) (*result, error) {
	if len(arguments) == 0 || works[arguments[0]] == nil {
		return nil, errors.New("name the work: inventory, uuids, tags or calls")
	}
	o := new(options)
	flags := flag.NewFlagSet(arguments[0], flag.ContinueOnError)
	flags.StringVar(&o.url, "url", "", "vCenter's `address`, such as https://10.0.0.1/sdk")
	flags.StringVar(&o.username, "username", "", "")
	flags.StringVar(&o.password, "password", "", "")
	flags.StringVar(&o.ca, "ca", "", "PEM `file` of the trusted CA")
	flags.BoolVar(&o.insecure, "insecure", false, "trust any certificate")
	flags.StringVar(&o.vms, "vms", "", "inventory with virtual machines, by `finder` or view")
	flags.StringVar(&o.file, "file", "", "`file` with one UUID or object per line")
	flags.IntVar(&o.parallel, "parallel", 4, "lookups at a time")
	flags.IntVar(&o.tags, "tags", 20, "tags to ensure and attach")
	flags.IntVar(&o.count, "count", 1000, "small calls")
	if err := flags.Parse(arguments[1:]); err != nil {
		return nil, err
	}
	if o.vms != "" && o.vms != "finder" && o.vms != "view" {
		return nil, fmt.Errorf("--vms %q is neither finder nor view", o.vms)
	}

	start := time.Now()
	ctx := context.Background()
	p, err := connect(ctx, o)
	if err != nil {
		return nil, err
	}
	if err := works[arguments[0]](ctx, p, o); err != nil {
		return nil, err
	}
	if err := p.logout(ctx); err != nil {
		return nil, err
	}
	done := &result{Seconds: time.Since(start).Seconds()}
	done.Requests, done.BytesIn, done.BytesOut = p.wire.requests.Load(), p.wire.in.Load(), p.wire.out.Load()
	done.PeakMB, err = peakMB()
	return done, err
}
