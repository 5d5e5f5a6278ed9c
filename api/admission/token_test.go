package admission

import (
	"testing"
	"time"

	"portcullis/api/hostrecord"
	"portcullis/api/refusal"
	"portcullis/api/store"
	v1 "portcullis/api/v1"
	"portcullis/attest"
	"portcullis/attest/attesttest"
)

// TestStatusTokenEnds: with whatever it was given for. Each time the old entry that leads
// from the token to its host is put back, as one that was left behind: the host's record
// alone counts.
func TestStatusTokenEnds(t *testing.T) {
	for _, c := range []struct {
		name string
		do   func(l *lab)
		want bool // it still reads
	}{
		{"with the release", func(l *lab) { l.must(l.svc.Release(l.ctx(), "alice", "host-1")) }, false},
		{"with a new assignment", func(l *lab) {
			l.must(l.svc.Assign(l.ctx(), "alice", "host-1", v1.Assignment{Cluster: "c1"}))
		}, false},
		{"when the host was released and provisioned again", func(l *lab) {
			l.must(l.svc.Release(l.ctx(), "alice", "host-1"))
			l.fabric.program(l.t)
			l.settle()
			l.must(l.svc.Assign(l.ctx(), "alice", "host-1", v1.Assignment{Cluster: "c1"}))
			l.accepted("host-1")
		}, false},
		{"with newer evidence", func(l *lab) { l.accepted("host-1") }, false},
		{"with another EK", func(l *lab) {
			l.must(nil, l.svc.update(l.ctx(), func(tx *store.Tx) error { return l.svc.forget(l.ctx(), tx, "host-1") }))
		}, false},
		{"when the EK is denied", func(l *lab) {
			l.policy.Denied = map[string]bool{l.hosts["host-1"].EKDigest(): true}
		}, false},
		{"when its evidence is spent by adapters that are not so any more", func(l *lab) {
			unlocked(l.hosts["host-1"])
			_, err := l.attest("host-1")
			wantCode(l, err, attest.ReasonLock)
		}, false},

		{"not when somebody else is refused in its name", func(l *lab) {
			s := l.open("host-1")
			ev := l.answer("host-1", s)
			ev.Proof[0] ^= 1
			_, err := l.svc.SubmitEvidence(l.ctx(), s.ID, l.channel, ev)
			wantCode(l, err, attest.ReasonProof)
		}, true},
		{"not when its evidence is too old, which it is told", func(l *lab) { l.clock = l.clock.Add(time.Hour + time.Second) }, true},
		{"not when its evidence does not meet policy any more, which it is told", func(l *lab) {
			for _, s := range attesttest.References() {
				l.trust(ended(s))
			}
			l.settle()
		}, true},
		{"not with another service over the same store", func(l *lab) { l.restart() }, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := awaiting(t)
			r, _ := l.accepted("host-1")
			if h, err := l.svc.HostStatusByToken(t.Context(), r.StatusToken); err != nil || h.ID != "host-1" {
				t.Fatalf("before: %+v, %v", h, err)
			}
			c.do(l)
			for _, left := range []bool{false, true} {
				if left {
					l.must(nil, l.svc.update(t.Context(), func(tx *store.Tx) error {
						return hostrecord.Tokens().Put(tx, hashOf(r.StatusToken), hostrecord.TokenRef{Host: "host-1"})
					}))
				}
				h, err := l.svc.HostStatusByToken(t.Context(), r.StatusToken)
				if c.want && (err != nil || h.ID != "host-1") {
					t.Errorf("got %+v, %v; want the status of host-1", h, err)
				}
				if !c.want && !refusal.IsKind(err, refusal.Refused) {
					t.Errorf("its entry left behind: %t: got %+v, %v; want it refused", left, h, err)
				}
			}
		})
	}
}

// TestStatusTokenIsOneHosts: an entry that leads to another host, or to one that is not in
// inventory, reads nothing.
func TestStatusTokenIsOneHosts(t *testing.T) {
	l := awaiting(t)
	r, _ := l.accepted("host-1")
	l.accepted("host-2")
	for _, host := range []string{"host-2", "host-9"} {
		l.must(nil, l.svc.update(t.Context(), func(tx *store.Tx) error {
			return hostrecord.Tokens().Put(tx, hashOf(r.StatusToken), hostrecord.TokenRef{Host: host})
		}))
		if h, err := l.svc.HostStatusByToken(t.Context(), r.StatusToken); !refusal.IsKind(err, refusal.Refused) {
			t.Errorf("as %s: got %+v, %v; want it refused", host, h, err)
		}
	}
}
