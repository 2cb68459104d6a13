package main

import (
	"bytes"
	"fmt"
	"html"
	"net/http"
	"reflect"

	"github.com/vmware/govmomi/vim25/types"
	"github.com/vmware/govmomi/vim25/xml"
)

const (
	envelopeOpen = `<?xml version="1.0" encoding="UTF-8"?>` + "\n" +
		`<soapenv:Envelope xmlns:soapenc="http://schemas.xmlsoap.org/soap/encoding/"` +
		` xmlns:soapenv="http://schemas.xmlsoap.org/soap/envelope/" xmlns:xsd="http://www.w3.org/2001/XMLSchema"` +
		` xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"><soapenv:Body>`
	envelopeClose = `</soapenv:Body></soapenv:Envelope>`
)

// newMethodFault makes an empty fault of a vSphere type by name.
func newMethodFault(kind string) (types.BaseMethodFault, error) {
	if kind == "InUse" {
		kind = "ResourceInUse" // what people call it and what it is called
	}
	if t, ok := types.TypeFunc()(kind); ok {
		if fault, ok := reflect.New(t).Interface().(types.BaseMethodFault); ok {
			return fault, nil
		}
	}
	return nil, fmt.Errorf("vSphere has no fault type %q", kind)
}

// about fills in the fields that faults commonly carry.
func about(fault types.BaseMethodFault, object types.ManagedObjectReference, privilege string) {
	value := reflect.ValueOf(fault).Elem()
	for _, name := range []string{"Object", "Obj"} {
		switch field := value.FieldByName(name); {
		case !field.IsValid():
		case field.Type() == reflect.TypeOf(object):
			field.Set(reflect.ValueOf(object))
		case field.Type() == reflect.TypeOf(&object):
			field.Set(reflect.ValueOf(&object))
		}
	}
	if field := value.FieldByName("PrivilegeId"); field.IsValid() {
		field.SetString(privilege)
	}
}

func (v *vcenter) soapFault(c *call, f *fault) *answer {
	fault, err := newMethodFault(f.Type)
	if err != nil {
		return nil // a fault for both APIs whose type only REST knows
	}
	about(fault, c.this, f.Privilege)
	if name := reflect.ValueOf(fault).Elem().FieldByName("Name"); name.IsValid() && name.Kind() == reflect.String {
		name.SetString(v.name(c.this))
	}
	message := f.Message
	if message == "" {
		message = wordsFor(f.Type)
	}
	return faultAnswer(fault, message)
}

func faultAnswer(fault types.BaseMethodFault, message string) *answer {
	kind := reflect.TypeOf(fault).Elem().Name()
	var detail bytes.Buffer
	start := xml.StartElement{
		Name: xml.Name{Local: kind + "Fault"},
		Attr: []xml.Attr{
			{Name: xml.Name{Local: "xmlns"}, Value: "urn:vim25"},
			{Name: xml.Name{Local: "xsi:type"}, Value: kind},
		},
	}
	if err := xml.NewEncoder(&detail).EncodeElement(fault, start); err != nil {
		message, detail = err.Error(), bytes.Buffer{}
	}
	a := soapAnswer(`<soapenv:Fault><faultcode>ServerFaultCode</faultcode><faultstring>` + html.EscapeString(message) +
		`</faultstring><detail>` + detail.String() + `</detail></soapenv:Fault>`)
	a.status = http.StatusInternalServerError
	return a
}

func soapAnswer(body string) *answer {
	a := newAnswer()
	a.header.Set("Content-Type", "text/xml; charset=utf-8")
	a.body.WriteString(envelopeOpen + body + envelopeClose)
	return a
}
