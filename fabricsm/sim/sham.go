package sim

import (
	"errors"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sim/sham"
)

// Pretend has a channel adapter show a fabric behind its ports in its own place, until
// it is asked to show another; nil: itself again. It is seen when the link was down.
func (f *Fabric) Pretend(node string, s *sham.Sham) error {
	return f.change("pretend", func() error {
		n, err := f.find(node)
		switch {
		case err != nil:
			return err
		case s == nil:
			n.sham = nil
			return nil
		case n.sw != nil:
			return errors.New("a switch pretends nothing")
		case s.Ports < 2 || s.Ports == 0xFF:
			return errors.New("switches that are made up have 2 to 254 ports")
		}
		n.sham = sham.New(*s)
		return nil
	})
}

// Pretended counts the requests that the made-up fabric of a node was asked.
func (f *Fabric) Pretended(node string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	if n, err := f.find(node); err == nil && n.sham != nil {
		return n.sham.Asked
	}
	return 0
}

// pretend answers a request that came to the port of a node with a sham over so many
// hops of its path.
func (f *network) pretend(fl *flight, at *port, hop uint8) {
	m, s := &fl.mad, at.node.sham
	if m.IsResponse() || m.Method() != mad.MethodGet && m.Method() != mad.MethodSet || at.node.off {
		f.undelivered(fl)
		return
	}
	s.Asked++
	if s.Delay == 0 {
		f.answerSham(fl, at, hop)
		return
	}
	one := *fl
	f.later.add(f.now+s.Delay, func() { f.answerSham(&one, at, hop) })
}

func (f *network) answerSham(fl *flight, at *port, hop uint8) {
	s := at.node.sham
	if s == nil {
		f.undelivered(fl) // it is over
		return
	}
	m := &fl.mad
	path := make([]ib.PortNum, 0, int(m.HopCount()-hop))
	for i := hop + 1; i <= m.HopCount(); i++ {
		path = append(path, ib.PortNum(m.InitialPath()[i]))
	}
	status := s.Answer(path, m)
	m.Respond(status)
	f.stats.Answered++
	fl.from = at
	f.walkBackFrom(fl, hop)
}
