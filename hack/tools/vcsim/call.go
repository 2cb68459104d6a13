package main

import (
	"bytes"
	"encoding/xml"
	"io"
	"net/http"
	"regexp"
	"strings"

	"github.com/vmware/govmomi/vim25/types"
)

const (
	soapAPI = "soap"
	restAPI = "rest"
)

// call is one request as the proxy understands it.
type call struct {
	callKey
	this types.ManagedObjectReference // the object a SOAP method is called on
	body []byte
	http *http.Request
}

var restID = regexp.MustCompile(`/(id:)?urn:vmomi:[^/?]+`)

func readCall(r *http.Request) (*call, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	c := &call{body: body, http: r, callKey: callKey{Client: r.UserAgent()}}
	if r.Method == http.MethodPost && !strings.HasPrefix(r.URL.Path, "/rest") && !strings.HasPrefix(r.URL.Path, "/api") {
		c.API = soapAPI
		c.Method, c.this = soapMethod(body)
		return c, nil
	}
	c.API = restAPI
	// Identifiers would make every object a method of its own.
	c.Method = r.Method + " " + restID.ReplaceAllString(r.URL.Path, "/{id}")
	if action := r.URL.Query().Get("~action"); action != "" {
		c.Method += "?~action=" + action
	}
	return c, nil
}

// soapMethod reads no further than it must: the method's name and the object it is called on come first.
func soapMethod(body []byte) (string, types.ManagedObjectReference) {
	var this types.ManagedObjectReference
	decoder := xml.NewDecoder(bytes.NewReader(body))
	method, inBody := "", false
	for {
		token, err := decoder.Token()
		if err != nil {
			return method, this
		}
		start, ok := token.(xml.StartElement)
		switch {
		case !ok:
		case start.Name.Local == "Body":
			inBody = true
		case inBody && method == "":
			method = start.Name.Local
		case method != "" && start.Name.Local == "_this":
			for _, attribute := range start.Attr {
				if attribute.Name.Local == "type" && attribute.Name.Space == "" {
					this.Type = attribute.Value
				}
			}
			if text, err := decoder.Token(); err == nil {
				if value, ok := text.(xml.CharData); ok {
					this.Value = string(value)
				}
			}
			return method, this
		case method != "":
			return method, this
		}
	}
}

func (c *call) isLogin() bool {
	return c.Method == "Login" || c.isRESTLogin()
}

func (c *call) isRESTLogin() bool {
	return c.Method == "POST "+restSession
}
