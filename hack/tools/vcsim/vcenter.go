package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"sync"

	"github.com/google/uuid"
	_ "github.com/vmware/govmomi/cns/simulator"
	_ "github.com/vmware/govmomi/pbm/simulator"
	"github.com/vmware/govmomi/simulator"
	_ "github.com/vmware/govmomi/vapi/cluster/simulator"
	_ "github.com/vmware/govmomi/vapi/simulator"
	"github.com/vmware/govmomi/vim25"
	"github.com/vmware/govmomi/vim25/types"
)

// vcenter is one simulated vCenter with the proxy before it.
type vcenter struct {
	config   *vcenterConfig
	address  string
	model    *simulator.Model
	registry *simulator.Registry
	client   *vim25.Client // in memory, past the proxy: never counted, never faulted
	mux      http.Handler
	home     string
	own      *tls.Certificate

	faults   faultList
	calls    callCounter
	sessions sessionBook
	guests   *guestWatch

	authorization *authorization

	server      *http.Server
	connections sync.Map // net.Conn: closed when the certificate changes
}

func startVCenter(config *vcenterConfig) (*vcenter, error) {
	listener, err := net.Listen("tcp", config.Listen)
	if err != nil {
		return nil, fmt.Errorf("cannot listen: %w", err)
	}
	v := &vcenter{config: config, address: listener.Addr().String()}
	if err := v.prepare(); err != nil {
		listener.Close()
		v.stop()
		return nil, err
	}
	v.serve(listener)
	return v, nil
}

func (v *vcenter) prepare() error {
	var err error
	if v.config.Certificate == "" {
		v.own, err = selfSigned(v.address)
	} else {
		v.own, err = loadCertificate(v.config.Certificate, v.config.Key)
	}
	if err != nil {
		return err
	}
	if v.home, err = os.MkdirTemp("", "vcsim-"); err != nil {
		return err
	}
	if err := v.createModel(); err != nil {
		return fmt.Errorf("cannot build the inventory: %w", err)
	}
	v.openServices()
	if err := v.buildInventory(); err != nil {
		return fmt.Errorf("cannot build the inventory: %w", err)
	}
	v.guests, err = watchGuests(v)
	return err
}

// createModel starts with an empty vCenter: the inventory comes from the configuration.
func (v *vcenter) createModel() error {
	v.model = simulator.VPX()
	v.model.Datacenter = 0
	about := &v.model.ServiceContent.About
	about.Version = v.config.Version
	about.ApiVersion = v.config.Version + ".0"
	about.Build = "24022515"
	about.FullName = fmt.Sprintf("%s %s build-%s", about.Name, about.Version, about.Build)
	about.InstanceUuid = v.config.InstanceUUID
	if about.InstanceUuid == "" {
		about.InstanceUuid = uuid.NewString()
	}
	return v.model.Create()
}

// openServices registers SOAP and REST in the simulator's mux, which the proxy then calls without a network between.
func (v *vcenter) openServices() {
	service := v.model.Service
	service.RegisterEndpoints = true
	service.ServeMux = http.NewServeMux()
	// Any user information makes the simulator ask ValidLogin; without it every login passes.
	service.Listen = &url.URL{User: url.User(v.config.Username)}
	service.NewServer().Close()

	v.mux = service.ServeMux
	v.registry = v.model.Map()
	v.registry.SessionManager().ValidLogin = v.validLogin
	v.registry.Handler = v.intercept
	v.client, _ = vim25.NewClient(context.Background(), service)
	v.guardPrivileges()
}

func (v *vcenter) validLogin(login *types.Login) bool {
	return login.UserName == v.config.Username && login.Password == v.password()
}

func (v *vcenter) password() string {
	if f := v.faults.last("password"); f != nil {
		return f.Password
	}
	return v.config.Password
}

func (v *vcenter) certificate() *tls.Certificate {
	if f := v.faults.last("certificate"); f != nil {
		return f.pair
	}
	return v.own
}

func (v *vcenter) serve(listener net.Listener) {
	config := &tls.Config{
		NextProtos:             []string{"http/1.1"},
		SessionTicketsDisabled: true, // a resumed session would not show a changed certificate
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
			return v.certificate(), nil
		},
	}
	v.server = &http.Server{
		Handler:  http.HandlerFunc(v.proxy),
		ErrorLog: quietLog,
		ConnState: func(c net.Conn, state http.ConnState) {
			switch state {
			case http.StateNew:
				v.connections.Store(c, nil)
			case http.StateClosed, http.StateHijacked:
				v.connections.Delete(c)
			}
		},
	}
	go v.server.Serve(tls.NewListener(listener, config))
}

func (v *vcenter) closeConnections() {
	v.connections.Range(func(c, _ any) bool {
		c.(net.Conn).Close()
		return true
	})
}

func (v *vcenter) stop() {
	if v.server != nil {
		v.server.Close()
	}
	if v.model != nil && v.model.Service != nil {
		v.model.Remove()
	}
	if v.home != "" {
		os.RemoveAll(v.home)
	}
}

// context is what the simulator's own methods want when they are called past its HTTP handler.
func (v *vcenter) context() *simulator.Context {
	return &simulator.Context{
		Context: context.Background(),
		Map:     v.registry,
		Session: &simulator.Session{
			UserSession: types.UserSession{Key: uuid.NewString(), UserName: v.config.Username},
			Registry:    simulator.NewRegistry(),
			Map:         v.registry,
		},
	}
}
