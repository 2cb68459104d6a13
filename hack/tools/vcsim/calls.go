package main

import (
	"cmp"
	"slices"
	"sync"
)

// callKey tells calls apart: who asked for what.
type callKey struct {
	Client string `json:"client"`
	API    string `json:"api"`
	Method string `json:"method"`
}

// callCount is seen from the vCenter: in is what clients sent.
type callCount struct {
	VCenter string `json:"vcenter"`
	callKey
	Count    int   `json:"count"`
	BytesIn  int64 `json:"bytesIn"`
	BytesOut int64 `json:"bytesOut"`
}

type callCounter struct {
	mu    sync.Mutex
	calls map[callKey]*callCount
}

func (c *callCounter) add(key callKey, in, out int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.calls == nil {
		c.calls = map[callKey]*callCount{}
	}
	count := c.calls[key]
	if count == nil {
		count = &callCount{callKey: key}
		c.calls[key] = count
	}
	count.Count++
	count.BytesIn += int64(in)
	count.BytesOut += int64(out)
}

func (c *callCounter) reset() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calls = nil
}

func (c *callCounter) list(vcenter string) []callCount {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := make([]callCount, 0, len(c.calls))
	for _, count := range c.calls {
		entry := *count
		entry.VCenter = vcenter
		all = append(all, entry)
	}
	slices.SortFunc(all, func(a, b callCount) int {
		return cmp.Or(cmp.Compare(a.Client, b.Client), cmp.Compare(a.API, b.API), cmp.Compare(a.Method, b.Method))
	})
	return all
}
