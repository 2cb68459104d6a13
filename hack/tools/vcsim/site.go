package main

import (
	"fmt"
	"net"
	"net/http"
	"os"
)

// site is everything one process serves: some vCenters and the control API.
type site struct {
	vcenters []*vcenter
	control  *http.Server
	socket   string
}

type readyLine struct {
	Ready    bool           `json:"ready"`
	VCenters []readyVCenter `json:"vcenters"`
}

type readyVCenter struct {
	Name        string `json:"name"`
	Address     string `json:"address"`
	URL         string `json:"url"`
	Certificate string `json:"certificate"`
}

func startSite(config *siteConfig) (*site, error) {
	s := &site{socket: config.Control}
	for i := range config.VCenters {
		// One after the other: the simulator's builders share templates of hosts.
		vcenter, err := startVCenter(&config.VCenters[i])
		if err != nil {
			s.stop()
			return nil, fmt.Errorf("vCenter %q: %w", config.VCenters[i].Name, err)
		}
		s.vcenters = append(s.vcenters, vcenter)
	}

	listener, err := net.Listen("unix", config.Control)
	if err != nil {
		s.stop()
		return nil, fmt.Errorf("control socket: %w", err)
	}
	s.control = &http.Server{Handler: s.routes()}
	go s.control.Serve(listener)
	return s, nil
}

func (s *site) stop() {
	if s.control != nil {
		s.control.Close()
		os.Remove(s.socket)
	}
	for _, vcenter := range s.vcenters {
		vcenter.stop()
	}
}

func (s *site) ready() readyLine {
	line := readyLine{Ready: true}
	for _, v := range s.vcenters {
		line.VCenters = append(line.VCenters, readyVCenter{
			Name:        v.config.Name,
			Address:     v.address,
			URL:         "https://" + v.address + "/sdk",
			Certificate: certificatePEM(v.certificate()),
		})
	}
	return line
}

func (s *site) vcenter(name string) (*vcenter, error) {
	for _, v := range s.vcenters {
		if v.config.Name == name {
			return v, nil
		}
	}
	return nil, notFound("vCenter %q", name)
}
