package main

import (
	"bytes"
	"io"
	"log"
	"net/http"
	"strconv"
)

// quietLog swallows what clients cause on purpose: broken handshakes and dropped connections.
var quietLog = log.New(io.Discard, "", 0)

// answer is a whole response, kept until it is known whether a fault changes it.
type answer struct {
	status int
	header http.Header
	body   bytes.Buffer
}

func newAnswer() *answer { return &answer{status: http.StatusOK, header: http.Header{}} }

func (a *answer) Header() http.Header         { return a.header }
func (a *answer) WriteHeader(status int)      { a.status = status }
func (a *answer) Write(b []byte) (int, error) { return a.body.Write(b) }

func (v *vcenter) proxy(w http.ResponseWriter, r *http.Request) {
	c, err := readCall(r)
	if err != nil {
		return // the client went away in the middle of its request
	}
	hits := v.faults.matching(c)
	a := v.answerTo(c, hits)
	if v.sessions.note(c, a) {
		v.faults.refused()
	}
	body := v.ready(w.Header(), a, hits)
	// Before the answer goes out: who has it may ask for the count at once.
	v.calls.add(c.callKey, len(c.body), len(body))
	w.WriteHeader(a.status)
	w.Write(body)
	if hits.has("drop") {
		http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler) // net/http's way to cut a connection
	}
}

func (v *vcenter) answerTo(c *call, hits faults) *answer {
	for _, f := range hits {
		if a := v.injected(c, f); a != nil {
			return a
		}
	}
	if a := v.refusedREST(c); a != nil {
		return a
	}
	if c.Method == "CloneVM_Task" {
		if a := v.ownTask(c, &fault{}); a != nil {
			return a
		}
	}
	a := newAnswer()
	v.mux.ServeHTTP(a, c.http)
	if c.Method == bulkDetach && a.status == http.StatusOK {
		return v.detachMany(c)
	}
	if c.API == soapAPI {
		speakLikeVCenter(a)
	}
	return a
}

// ready fills in the headers and returns the body to send, whole or as a fault leaves it.
func (v *vcenter) ready(header http.Header, a *answer, hits faults) []byte {
	for key, values := range a.header {
		header[key] = values
	}
	body := a.body.Bytes()
	if f := hits.first("truncate"); f != nil && f.Bytes < len(body) {
		body = body[:f.Bytes]
		header.Set("Connection", "close")
	}
	if hits.has("drop") {
		// One more than there is: an answer without a body breaks off too.
		header.Set("Content-Length", strconv.Itoa(len(body)+1))
		return body[:len(body)/2]
	}
	header.Set("Content-Length", strconv.Itoa(len(body)))
	return body
}
