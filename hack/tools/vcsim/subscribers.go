package main

import "sync"

// subscriber queues without bound, so that a slow reader never holds up the simulator.
type subscriber struct {
	mu      sync.Mutex
	pending []guest
	wake    chan struct{}
}

func newSubscriber() *subscriber { return &subscriber{wake: make(chan struct{}, 1)} }

func (s *subscriber) put(g guest) {
	s.mu.Lock()
	s.pending = append(s.pending, g)
	s.mu.Unlock()
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

func (s *subscriber) take() []guest {
	s.mu.Lock()
	defer s.mu.Unlock()
	taken := s.pending
	s.pending = nil
	return taken
}

// tell needs the watch's lock.
func (w *guestWatch) tell(g guest) {
	for s := range w.subscribers {
		s.put(g)
	}
}

// subscribe queues every guest there is; changes follow without a gap.
func (w *guestWatch) subscribe(s *subscriber) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, g := range w.guests {
		s.put(g)
	}
	w.subscribers[s] = true
}

func (w *guestWatch) unsubscribe(s *subscriber) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.subscribers, s)
}
