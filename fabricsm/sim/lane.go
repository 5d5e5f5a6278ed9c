package sim

import (
	"time"

	"portcullis/fabricsm/transport"
)

// maxSA bounds the packets that wait for the lane of subnet administration.
const maxSA = 4096

var _ transport.Laned = Port{}

// saLane is the lane of subnet administration of a station: an inbox of its own.
type saLane struct{ station *Station }

// SA implements transport.Laned.
func (p Port) SA() (transport.SALane, error) {
	s := p.station
	s.fabric.mu.Lock()
	defer s.fabric.mu.Unlock()
	if s.sa == nil {
		s.sa = newInbox(s.fabric, maxSA)
	}
	return saLane{s}, nil
}

// TrySend implements transport.Lane. There is always room.
func (l saLane) TrySend(packets []transport.Packet) (int, error) { return Port(l).Send(packets) }

// TryReceive implements transport.Lane.
func (l saLane) TryReceive(packets []transport.Packet) (int, error) {
	s := l.station
	s.fabric.mu.Lock()
	defer s.fabric.mu.Unlock()
	if s.closed {
		return 0, transport.ErrClosed
	}
	return s.sa.move(packets), nil
}

// Pause implements transport.Lane.
func (l saLane) Pause(d time.Duration) error { return l.wait(d) }

// Wait implements transport.Lane.
func (l saLane) Wait() error { return l.wait(-1) }

// wait blocks until something is there, at most d if that is not negative.
func (l saLane) wait(d time.Duration) error {
	s := l.station
	s.fabric.mu.Lock()
	defer s.fabric.mu.Unlock()
	late := false
	if d >= 0 {
		defer time.AfterFunc(d, func() {
			s.fabric.mu.Lock()
			defer s.fabric.mu.Unlock()
			late = true
			s.sa.more.Broadcast()
		}).Stop()
	}
	for len(s.sa.packets) == 0 && !s.closed && !late {
		s.sa.more.Wait()
	}
	if s.closed {
		return transport.ErrClosed
	}
	return nil
}

// Dropped implements transport.SALane.
func (l saLane) Dropped() uint64 {
	l.station.fabric.mu.Lock()
	defer l.station.fabric.mu.Unlock()
	return l.station.sa.dropped
}
