package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/vmware/govmomi/session"
	"github.com/vmware/govmomi/vapi/rest"
	"github.com/vmware/govmomi/vim25"
	"github.com/vmware/govmomi/vim25/soap"
)

// peer is a govmomi client whose traffic is counted.
type peer struct {
	*vim25.Client
	wire    *wire
	session *session.Manager
	user    *url.Userinfo
	rest    *rest.Client
}

func connect(ctx context.Context, o *options) (*peer, error) {
	address, err := soap.ParseURL(o.url)
	if err != nil || address == nil {
		return nil, fmt.Errorf("--url %q is not an address: %w", o.url, err)
	}
	transport := soap.NewClient(address, o.insecure)
	transport.UserAgent = "govmomi-bench"
	if o.ca != "" {
		if err := transport.SetRootCAs(o.ca); err != nil {
			return nil, err
		}
	}
	p := &peer{wire: &wire{next: transport.Transport}, user: url.UserPassword(o.username, o.password)}
	transport.Transport = p.wire
	if p.Client, err = vim25.NewClient(ctx, transport); err != nil {
		return nil, err
	}
	p.session = session.NewManager(p.Client)
	return p, p.session.Login(ctx, p.user)
}

// withREST logs in to REST too, which only tagging needs.
func (p *peer) withREST(ctx context.Context) (*rest.Client, error) {
	p.rest = rest.NewClient(p.Client)
	p.rest.Transport = p.wire
	return p.rest, p.rest.Login(ctx, p.user)
}

func (p *peer) logout(ctx context.Context) error {
	if p.rest != nil {
		if err := p.rest.Logout(ctx); err != nil {
			return err
		}
	}
	return p.session.Logout(ctx)
}

// wire counts requests and the bytes of their bodies.
type wire struct {
	next              http.RoundTripper
	requests, in, out atomic.Int64
}

func (w *wire) RoundTrip(request *http.Request) (*http.Response, error) {
	w.requests.Add(1)
	if request.Body != nil {
		request.Body = counted{request.Body, &w.out}
	}
	response, err := w.next.RoundTrip(request)
	if err == nil {
		response.Body = counted{response.Body, &w.in}
	}
	return response, err
}

type counted struct {
	io.ReadCloser
	bytes *atomic.Int64
}

func (c counted) Read(buffer []byte) (int, error) {
	n, err := c.ReadCloser.Read(buffer)
	c.bytes.Add(int64(n))
	return n, err
}

// peakMB is the most memory this process ever held, as the kernel counts it.
func peakMB() (float64, error) {
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(text)) {
		if value, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			kilobytes, err := strconv.ParseFloat(strings.Fields(value)[0], 64)
			return kilobytes / 1024, err
		}
	}
	return 0, fmt.Errorf("/proc/self/status has no VmHWM")
}
