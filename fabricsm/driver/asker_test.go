package driver

import (
	"errors"
	"testing"

	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/transport"
)

// TestAskerRefuses: questions are refused where no host would be answered, and nothing is sent for them. What answers them in a running driver
// is compared with hosts in package satest.
func TestAskerRefuses(t *testing.T) {
	t.Parallel()
	var ask transport.Packet
	ask.QP, ask.LID = 1, 2
	ask.MAD.SetHeader(mad.Header{Class: mad.ClassSubnAdm, ClassVersion: mad.SAClassVersion, Method: mad.MethodGet, Attr: mad.AttrClassPortInfo})
	q := &Asker{}
	if heard, err := q.Ask(t.Context(), []transport.Packet{ask}); !errors.Is(err, ErrNoAdministration) || heard != nil {
		t.Errorf("no driver runs: %v, %v", heard, err)
	}
	l := &fullLane{room: 9}
	a := newAdministration(t, l)
	q.at.Store(a)
	if heard, err := q.Ask(t.Context(), []transport.Packet{ask}); !errors.Is(err, ErrNotAnswering) || heard != nil {
		t.Errorf("it knows of no fabric: %v, %v", heard, err)
	}
	set := ask
	set.MAD.SetMethod(mad.MethodSet)
	if heard, err := q.Ask(t.Context(), []transport.Packet{set}); err == nil || errors.Is(err, ErrNotAnswering) || heard != nil {
		t.Errorf("a Set: %v, %v", heard, err)
	}
	if heard, err := q.Ask(t.Context(), nil); err != nil || len(heard) != 0 {
		t.Errorf("no question: %v, %v", heard, err)
	}
	if a.agent.Stats().Packets != 0 || len(l.took) != 0 {
		t.Errorf("%d packets counted, %d sent", a.agent.Stats().Packets, len(l.took))
	}
}
