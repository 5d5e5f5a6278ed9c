package sim

import (
	"fmt"

	"portcullis/fabricsm/mad"
)

// VirtualFunction puts a program into a guest, at a virtual function of the adapter
// of a host: 1 to hca.Config.VFs. It shares port 1, its LID and its switch port with
// the host, as vPorts do. Its SMPs stay inside the adapter unless
// hca.Config.VFSMPs says otherwise, and it cannot be a subnet manager.
func (f *Fabric) VirtualFunction(host string, number uint8) (*Station, error) {
	current, _ := f.HCA(host)
	if number == 0 || number > current.VFs {
		return nil, fmt.Errorf("attach to virtual function %d of %q: its adapter has %d", number, host, current.VFs)
	}
	s, err := f.Station(host, false)
	if err != nil {
		return nil, err
	}
	s.vf = number
	return s, nil
}

// bars reports whether a program may not send or receive a MAD.
func (s *Station) bars(m *mad.MAD) bool {
	n := s.at.node
	return n.bars(m) || s.vf > 0 && m.IsSMP() && !n.hca.Current.VFSMPs
}
