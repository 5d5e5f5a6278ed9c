package ib

import "testing"

func TestJoinState(t *testing.T) {
	for _, c := range []struct {
		s               JoinState
		name            string
		receives, sends bool
	}{
		{0, "none", false, false},
		{FullMember, "Full", true, true},
		{NonMember, "Non", true, true},
		{SendOnlyNonMember, "SendOnlyNon", false, true},
		{SendOnlyFullMember | FullMember, "Full|SendOnlyFull", true, true},
		{16, "0x10", false, false},
	} {
		if c.s.String() != c.name || c.s.Receives() != c.receives || c.s.Sends() != c.sends {
			t.Errorf("%d is %v, receives %v, sends %v", uint8(c.s), c.s, c.s.Receives(), c.s.Sends())
		}
	}
}
