package admission

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"portcullis/api/attestation"
	"portcullis/api/audit"
	"portcullis/api/events"
	"portcullis/api/hostrecord"
	"portcullis/api/store"
	v1 "portcullis/api/v1"
	"portcullis/attest"
	"portcullis/attest/attesttest"
	"portcullis/attest/reference"
	"portcullis/attest/result"
)

// told returns the events of a type, as host and cause.
func (l *lab) told(kind string) (out []string) {
	l.t.Helper()
	all, err := events.Book{Store: l.store.Twin()}.List(l.ctx(), v1.EventQuery{Type: kind})
	if err != nil {
		l.t.Fatal(err)
	}
	for _, e := range all.Items {
		out = append(out, e.Host+" "+e.Cause)
	}
	slices.Sort(out)
	return out
}

func (l *lab) facts(host string) attest.Facts {
	l.t.Helper()
	v, err := hostrecord.Verdicts().Get(l.ctx(), l.store.Twin(), host)
	if err != nil {
		l.t.Fatal(err)
	}
	return v.Value.Facts
}

func ended(s reference.Set) reference.Set {
	s.State = reference.Ended
	return s
}

// allAdmitted is a site whose host was admitted; k knows its locks.
func allAdmitted(t *testing.T, hosts int, k *keeper) *lab {
	t.Helper()
	l := newLab(t, member.Open(t))
	l.options = func(o *Options) {
		o.Results = &signer{t: t, now: func() time.Time { return l.clock }}
		if k != nil {
			o.Locks = k
		}
	}
	l.restart()
	l.addHosts(hosts)
	l.tenantWithClusters("train")
	if k != nil {
		k.epoch = l.hosts["host-1"].Statement.HCAs[0].Lock.Epoch
	}
	for id := range l.hosts {
		l.admit(id, "train")
	}
	return l
}

// T107: each change of what evidence was judged by makes a lapse of evidence that was accepted. The lapse is reported and
// shown. A host that was admitted stays so, unless its EK is denied. The end of a lapse is reported too.
func TestAcceptedEvidenceIsJudgedAgain(t *testing.T) {
	for _, tt := range []struct {
		cause  string
		change func(*lab, *keeper)
		undo   func(*lab, *keeper)
		cut    bool
	}{
		{attest.LapseEK, func(l *lab, _ *keeper) { l.policy.Denied = map[string]bool{l.hosts["host-1"].EKDigest(): true} }, func(l *lab, _ *keeper) { l.policy.Denied = nil }, true},
		{attest.LapseCA, func(l *lab, _ *keeper) {
			l.policy.Denied = map[string]bool{l.facts("host-1").EKIssuers[0]: true}
		}, func(l *lab, _ *keeper) { l.policy.Denied = nil }, false},
		{attest.LapseTPM, func(l *lab, _ *keeper) {
			tpm := l.facts("host-1").TPM
			l.policy.TPMFirmware = []attest.TPMFirmware{{Maker: tpm.Maker, Model: tpm.Name, Allow: []string{"ffffffffffffffff"}}}
		}, func(l *lab, _ *keeper) { l.policy.TPMFirmware = nil }, false},
		{attest.LapseFirmware, func(l *lab, _ *keeper) {
			l.policy.FirmwareFloors = []attest.FirmwareFloor{{PSID: l.facts("host-1").Statement.HCAs[0].PSID, Min: "99.1.1"}}
		}, func(l *lab, _ *keeper) { l.policy.FirmwareFloors = nil }, false},
		{attest.LapseAdapter, func(l *lab, _ *keeper) { l.policy.Assurance = attest.G3 }, func(l *lab, _ *keeper) { l.policy.Assurance = attest.G1 }, false},
		{attest.LapseImage, func(l *lab, _ *keeper) { l.policy.Starts = []attest.Start{{Agent: "9.9.9", Image: "next"}} }, func(l *lab, _ *keeper) { l.policy.Starts = nil }, false},
		{attest.LapseReference, func(l *lab, _ *keeper) { l.trust(ended(attesttest.References()[0])) }, func(l *lab, _ *keeper) { l.trust(attesttest.References()...) }, false},
		{attest.LapseLockProfile, func(_ *lab, k *keeper) {
			k.version, k.judge = "next", &attest.Refusal{Code: attest.ReasonLock, Detail: "HOST_PRIV_NIC_RESET is on"}
		}, func(_ *lab, k *keeper) { k.version, k.judge = "", nil }, false},
	} {
		t.Run(tt.cause, func(t *testing.T) {
			k := &keeper{}
			l := allAdmitted(t, 1, k)
			if got := l.host("host-1").Status; len(got.Outdated) != 0 || len(l.told(events.EvidenceOutdated)) != 0 {
				t.Fatalf("before anything changed: %+v", got.Outdated)
			}
			tt.change(l, k)
			l.clock = l.clock.Add(48 * time.Hour)
			l.restart()
			l.settle()
			got := l.host("host-1").Status
			if len(got.Outdated) != 1 || got.Outdated[0].Cause != tt.cause || !got.Outdated[0].Since.Equal(l.clock) || got.Outdated[0].Detail == "" || got.Outdated[0].Withdraws != tt.cut {
				t.Fatalf("outdated: %+v", got.Outdated)
			}
			if cut := got.Phase != v1.PhaseAdmitted; cut != tt.cut {
				t.Errorf("the host is %s, want it cut off: %t", got.Phase, tt.cut)
			}
			if told := l.told(events.EvidenceOutdated); !slices.Equal(told, []string{"host-1 " + tt.cause}) {
				t.Errorf("told %q", told)
			}
			if c := l.result("host-1"); c.Status == result.Affirming {
				t.Errorf("its result is %v, want nothing affirmed", c.Status)
			}
			l.settlesNothing()
			tt.undo(l, k)
			l.restart()
			l.settle()
			l.fabric.program(t)
			l.settle()
			if got := l.host("host-1").Status; len(got.Outdated) != 0 || got.Phase != v1.PhaseAdmitted {
				t.Errorf("after it was taken back: %s, %+v", got.Phase, got.Outdated)
			}
			if told := l.told(events.EvidenceCurrent); !slices.Equal(told, []string{"host-1 " + tt.cause}) {
				t.Errorf("told of its end: %q", told)
			}
			if _, err := audit.Verify(l.ctx(), l.store.Twin()); err != nil {
				t.Error(err)
			}
		})
	}
}

// settlesNothing requires a site of which nothing changed to write nothing.
// What accepted evidence lacked is over once that evidence counts no more: the alert of it has an end.
func TestLapseEndsWithItsEvidence(t *testing.T) {
	for name, drop := range map[string]func(l *lab){
		"assigned again": func(l *lab) {
			l.release("host-1")
			l.settle()
			l.fabric.program(l.t)
			l.settle()
			l.assign("host-1", "train")
		},
		"void": func(l *lab) {
			l.change(func(tx *store.Tx) error { return l.svc.voidEvidence(l.ctx(), tx, "host-1") })
		},
		"another TPM": func(l *lab) {
			l.change(func(tx *store.Tx) error { return l.svc.forget(l.ctx(), tx, "host-1") })
		},
		"newer evidence": func(l *lab) {
			l.change(func(tx *store.Tx) error {
				rec, err := hostrecord.Records().Get(l.ctx(), tx, "host-1")
				rec.Value.Window, rec.Value.Admitted = l.clock.Add(time.Hour), false
				return errors.Join(err, hostrecord.Records().Put(tx, "host-1", rec.Value))
			})
			l.policy.Starts = nil
			l.restart()
			if _, err := l.attest("host-1"); err != nil {
				l.t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := allAdmitted(t, 1, nil)
			l.policy.Starts = []attest.Start{{Agent: "9.9.9", Image: "next"}}
			l.restart()
			l.settle()
			if told := l.told(events.EvidenceOutdated); !slices.Equal(told, []string{"host-1 image"}) {
				t.Fatalf("told %q", told)
			}
			drop(l)
			if told := l.told(events.EvidenceCurrent); !slices.Equal(told, []string{"host-1 image"}) {
				t.Errorf("told of its end: %q", told)
			}
		})
	}
}

func (l *lab) settlesNothing() {
	l.t.Helper()
	was, err := l.store.Twin().Snapshot(l.ctx())
	if err != nil {
		l.t.Fatal(err)
	}
	l.settle()
	now, err := l.store.Twin().Snapshot(l.ctx())
	if err != nil || now.Revision != was.Revision {
		l.t.Errorf("settled without a change, and the store went from revision %d to %d: %v", was.Revision, now.Revision, err)
	}
}

// The end of a set takes no membership from admitted hosts, however many there are, and admits no new host. A site may
// decide otherwise.
func TestEndOfReferencesIsNoOutage(t *testing.T) {
	l := allAdmitted(t, 3, nil)
	set := attesttest.References()[0]
	set.Expires = l.clock.Add(time.Hour)
	l.trust(set)
	l.settle()
	l.clock = set.Expires.Add(time.Second)
	l.settle()
	for id := range l.hosts {
		if s := l.host(id).Status; s.Phase != v1.PhaseAdmitted || len(s.Outdated) != 1 || !strings.Contains(s.Outdated[0].Detail, set.Name()) {
			t.Errorf("host %s is %s, outdated %+v", id, s.Phase, s.Outdated)
		}
	}
	if got := l.told(events.EvidenceOutdated); len(got) != 3 {
		t.Errorf("told %q", got)
	}
	l.options = func(o *Options) {
		o.Withdraw, o.Brake = []string{attest.LapseReference}, BrakeLimits{Hosts: 3, Share: 1}
	}
	l.restart()
	l.settle()
	if s := l.host("host-1").Status; s.Phase != v1.PhaseAwaiting || !strings.Contains(s.Guards[1].Detail, "release the host and assign it again") {
		t.Errorf("where the site wants memberships withdrawn: %s, %q", s.Phase, s.Guards[1].Detail)
	}
}

// The references that the service has followed can be older than evidence. A set that it does not know, or knows as a
// draft, makes no lapse of a host.
func TestReferencesYoungerThanFollowed(t *testing.T) {
	l := allAdmitted(t, 2, nil)
	name := attesttest.References()[0].Name()
	for _, refs := range []attestation.Trust{{}, {name: "it is a draft"}} {
		o := newOwners()
		o.refs = refs
		if err := l.svc.settleSome(l.ctx(), o, []string{"host-1", "host-2"}); err != nil {
			t.Fatal(err)
		}
		if s := l.host("host-1").Status; s.Phase != v1.PhaseAdmitted || len(s.Outdated) != 0 {
			t.Errorf("followed %v: host is %s, outdated %+v", refs, s.Phase, s.Outdated)
		}
	}
	if told := l.told(events.EvidenceOutdated); len(told) != 0 {
		t.Errorf("told %q", told)
	}
	l.trust(ended(attesttest.References()[0]))
	o := newOwners()
	if err := l.svc.settleSome(l.ctx(), o, []string{"host-1"}); err != nil {
		t.Fatal(err)
	}
	if s := l.host("host-1").Status; len(s.Outdated) != 1 || !strings.Contains(s.Outdated[0].Detail, "ended") {
		t.Errorf("the set ended: outdated %+v", s.Outdated)
	}
}

// A set of which another in force has all boots ends without a word.
func TestReferencesAreReplaced(t *testing.T) {
	l := allAdmitted(t, 1, nil)
	next := attesttest.References()[0]
	next.Version++
	l.trust(next)
	l.trust(ended(attesttest.References()[0]))
	l.settle()
	if s := l.host("host-1").Status; s.Phase != v1.PhaseAdmitted || len(s.Outdated) != 0 {
		t.Errorf("host is %s, outdated %+v", s.Phase, s.Outdated)
	}
}

// Evidence that was accepted, and whose reference values ended before a grant, leads to none, also where the service has
// not noticed the end yet.
func TestNothingIsGrantedOnEndedReferences(t *testing.T) {
	for _, noticed := range []bool{true, false} {
		l := assigned(t)
		if _, err := l.attest("host-1"); err != nil {
			t.Fatal(err)
		}
		l.settle()
		o := newOwners()
		o.refs = attestation.Trust{attesttest.References()[0].Name(): ""}
		l.trust(ended(attesttest.References()[0]))
		if noticed {
			l.settle()
		}
		l.fabric.place(t, l.ports("host-1")...)
		if err := l.svc.settleSome(t.Context(), o, []string{"host-1"}); err != nil {
			t.Fatal(err)
		}
		l.settle()
		s := l.host("host-1").Status
		if s.Phase != v1.PhaseAwaiting || s.PKey != 0 || len(s.Outdated) != 1 || !s.Outdated[0].Withdraws || !strings.Contains(s.Guards[1].Detail, "attest again") {
			t.Errorf("noticed %t: %s, outdated %+v, guard %q", noticed, s.Phase, s.Outdated, s.Guards[1].Detail)
		}
		if _, err := l.attest("host-1"); err == nil {
			t.Error("and new evidence is accepted")
		}
	}
}

// Run notices the end of a set by itself, and judges only hosts whose evidence rests on it.
func TestRunNoticesTheEndOfReferences(t *testing.T) {
	l := allAdmitted(t, 2, nil)
	l.write(func(tx *store.Tx) error { // host-2 rests on another set
		other := attesttest.References()[0]
		other.Version = 7
		if err := attestation.References().Put(tx, attestation.ReferenceKey(other.Class, other.Version), other); err != nil {
			return err
		}
		rec, err := hostrecord.Records().Get(l.ctx(), tx, "host-2")
		if err != nil {
			return err
		}
		rec.Value.Evidence.Reference = other.Name()
		return hostrecord.Records().Put(tx, "host-2", rec.Value)
	})
	l.settle()
	l.running()
	other := attesttest.References()[0]
	other.Version, other.Registers = 7, nil
	l.trust(other) // covers nothing
	l.trust(ended(attesttest.References()[0]))
	ctx, cancel := context.WithTimeout(l.ctx(), 20*time.Second)
	defer cancel()
	hosts, err := l.svc.Watch(ctx, "host-1")
	if err != nil {
		t.Fatal(err)
	}
	for h := range hosts {
		if len(h.Status.Outdated) == 1 {
			if got := l.told(events.EvidenceOutdated); !slices.Equal(got, []string{"host-1 reference"}) {
				t.Errorf("told %q", got)
			}
			return
		}
	}
	t.Error("nobody noticed")
}

// Evidence whose verdict is gone, or is of other evidence, is not judged by a new policy. Its lapses stay and no host is
// admitted with it. It is judged once the verdict is there again.
func TestVerdictThatIsGoneClearsNothing(t *testing.T) {
	for name, lose := range map[string]func(*lab, *store.Tx, attest.Verdict) error{
		"gone": func(_ *lab, tx *store.Tx, _ attest.Verdict) error {
			hostrecord.Verdicts().Delete(tx, "host-1")
			return nil
		},
		"of other evidence": func(_ *lab, tx *store.Tx, v attest.Verdict) error {
			v.Facts.Session = "another"
			return hostrecord.Verdicts().Put(tx, "host-1", v)
		},
		"not accepted": func(_ *lab, tx *store.Tx, v attest.Verdict) error {
			v.OK = false
			return hostrecord.Verdicts().Put(tx, "host-1", v)
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := allAdmitted(t, 1, nil)
			kept, err := hostrecord.Verdicts().Get(l.ctx(), l.store.Twin(), "host-1")
			if err != nil {
				t.Fatal(err)
			}
			causes := func() (out []string) {
				t.Helper()
				l.restart()
				l.settle()
				l.settlesNothing()
				for _, o := range l.host("host-1").Status.Outdated {
					out = append(out, o.Cause)
				}
				slices.Sort(out)
				return out
			}
			l.policy.Denied = map[string]bool{kept.Value.Facts.EKIssuers[0]: true}
			if got := causes(); !slices.Equal(got, []string{attest.LapseCA}) {
				t.Fatalf("outdated by %q", got)
			}
			l.write(func(tx *store.Tx) error { return lose(l, tx, kept.Value) })
			l.policy.TPMFirmware = []attest.TPMFirmware{{Maker: kept.Value.Facts.TPM.Maker, Model: kept.Value.Facts.TPM.Name, Allow: []string{"ffffffffffffffff"}}}
			if got := causes(); !slices.Equal(got, []string{attest.LapseAdapter, attest.LapseCA}) {
				t.Errorf("without a verdict: outdated by %q", got)
			}
			l.policy.Denied, l.policy.TPMFirmware = nil, nil
			if got := causes(); !slices.Equal(got, []string{attest.LapseAdapter, attest.LapseCA}) {
				t.Errorf("without a verdict, under the first policy: outdated by %q", got)
			}
			l.write(func(tx *store.Tx) error { return hostrecord.Verdicts().Put(tx, "host-1", kept.Value) })
			if got := causes(); len(got) != 0 {
				t.Errorf("when it is there again: outdated by %q", got)
			}
		})
	}
}
