package sim

import (
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/transport"
)

// Port is a station with a blocking Receive, for a driver that runs a subnet manager. It implements transport.Port.
type Port struct{ station *Station }

var _ transport.Port = Port{}

// Attach creates a station at a node and returns it as a transport.Port; see Station for the arguments.
func (f *Fabric) Attach(node string, asSM bool) (Port, error) {
	s, err := f.Station(node, asSM)
	if err != nil {
		return Port{}, err
	}
	return s.Port(), nil
}

// Port returns the station as a transport.Port.
func (s *Station) Port() Port { return Port{s} }

// Send implements transport.Port.
func (p Port) Send(packets []transport.Packet) (int, error) {
	s := p.station
	s.fabric.mu.Lock()
	defer s.fabric.mu.Unlock()
	if s.closed {
		return 0, transport.ErrClosed
	}
	s.send(packets)
	s.fabric.settle()
	return len(packets), nil
}

// Receive implements transport.Port.
func (p Port) Receive(packets []transport.Packet) (int, error) {
	s := p.station
	s.fabric.mu.Lock()
	defer s.fabric.mu.Unlock()
	for len(s.inbox.packets) == 0 && !s.closed && len(packets) > 0 {
		s.inbox.more.Wait()
	}
	if s.closed {
		return 0, transport.ErrClosed
	}
	n := s.inbox.move(packets)
	if len(s.inbox.packets) > 0 {
		s.inbox.more.Signal()
	}
	return n, nil
}

// SetIsSM implements transport.Port.
func (p Port) SetIsSM(on bool) error {
	p.station.SetIsSM(on)
	return nil
}

// GUID implements transport.Port.
func (p Port) GUID() ib.GUID { return p.station.GUID() }

// Close implements transport.Port.
func (p Port) Close() error {
	p.station.Close()
	return nil
}
