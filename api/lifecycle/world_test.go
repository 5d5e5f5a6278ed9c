package lifecycle_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"testing"
	"time"

	"portcullis/api/apitest"
	"portcullis/api/fabric/records"
	"portcullis/api/hostrecord"
	"portcullis/api/ifmatch"
	"portcullis/api/inventory"
	"portcullis/api/lifecycle"
	"portcullis/api/refusal"
	"portcullis/api/store"
	v1 "portcullis/api/v1"
	"portcullis/attest"
	"portcullis/attest/attesttest"
	"portcullis/fabricsm/ib"
)

const (
	host    = "h1"
	source  = "192.0.2.200"
	foreign = "h2"
)

// attempt is an attestation that began in one assignment.
type attempt struct {
	epoch    int64
	session  *attest.Session
	evidence *attest.Evidence
	sent     bool                 // the evidence was
	seal     *attest.SealEvidence // nil: the evidence was not accepted
	sealed   bool                 // the seal was sent
}

// world is the real services with one host, and what its actors hold in their hands.
type world struct {
	*apitest.Site
	t *testing.T

	shown   int64    // assignment that the operator has read
	now     *attempt // of provisioning; nil: none
	old     *attempt // the attempt before it, which the host can send again
	machine *attesttest.Host
	channel []byte
}

// newWorld makes a site whose host is in inventory, seen and never assigned.
func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{Site: apitest.NewSite(t), t: t, channel: make([]byte, attest.ExporterSize)}
	w.Register(host)
	w.Join()
	w.Place(host)
	return w
}

func (w *world) fatal(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// record returns what is on record of the host.
func (w *world) record() hostrecord.Record {
	w.t.Helper()
	rec, err := store.Optional(hostrecord.Records().Get(w.t.Context(), w.Store, host))
	w.fatal(err)
	return rec
}

// facts returns the facts of the host's life, from the records of the store and the guards of decisions.
func (w *world) facts() lifecycle.Facts {
	w.t.Helper()
	rec := w.record()
	f := rec.Life(time.Now())
	f.Left, f.Applied = false, true
	keys, err := rec.Keys()
	w.fatal(err)
	for _, k := range keys {
		s, err := records.StandingOf(w.t.Context(), w.Store, k)
		w.fatal(err)
		f.Given = f.Given || !s.Grant.Withdrawn
		f.Left = f.Left || s.Grant.Withdrawn && !s.Absent()
		f.Applied = f.Applied && s.Applied()
	}
	f.Applied = f.Applied && f.Given
	f.Ready = true
	for _, g := range w.Host(host).Status.Guards {
		switch g.Name {
		case v1.GuardCabled, v1.GuardSeen, v1.GuardCapacity:
			f.Ready = f.Ready && g.Met
		}
	}
	w.eachPort(func(p inventory.Port, _ inventory.HCA) {
		shown, err := store.Optional(records.Ports().Get(w.t.Context(), w.Store, p.GUID.String()))
		w.fatal(err)
		f.Shut = f.Shut || shown.Shut != ""
	})
	return f
}

func (w *world) eachPort(do func(inventory.Port, inventory.HCA)) {
	w.t.Helper()
	h, err := inventory.Hosts().Get(w.t.Context(), w.Store, host)
	w.fatal(err)
	for _, a := range h.Value.HCAs {
		for _, p := range a.Ports {
			do(p, a)
		}
	}
}

// meant returns a context for a command about the assignment that the operator has read.
func (w *world) meant() context.Context {
	return ifmatch.With(w.t.Context(), []string{strconv.FormatInt(w.shown, 10)})
}

// late reports whether that is another one by now.
func (w *world) late() bool { return w.shown != w.record().Epoch }

// shut shows the ports of the host as shut, or as they are cabled.
func (w *world) shut(closed bool) {
	w.t.Helper()
	_, err := w.Store.Update(w.t.Context(), func(tx *store.Tx) error {
		var errs []error
		w.eachPort(func(p inventory.Port, a inventory.HCA) {
			shown := records.Port{NodeGUID: a.NodeGUID, Place: p.Cable, HCACap: 32, SwitchCap: 32, State: "Active", Time: time.Now()}
			if closed {
				shown.Place, shown.Shut = ib.Place{}, "an operator has fenced the host"
			}
			errs = append(errs, records.Ports().Put(tx, p.GUID.String(), shown))
		})
		return errors.Join(errs...)
	})
	w.fatal(err)
	w.fatal(w.Service().Settle(w.t.Context()))
}

// move is one step of one actor. It returns the command that it was, nil for none, and what the service said.
type move struct {
	name string
	may  func(*world) bool // nil: always
	do   func(*world) (*lifecycle.Asked, error)
}

// moves are all steps of all actors.
var moves = []move{
	{"operator reads", func(w *world) bool { return w.late() }, func(w *world) (*lifecycle.Asked, error) {
		w.shown = w.record().Epoch
		return nil, nil
	}},
	{"operator assigns", func(w *world) bool { return w.record().Epoch < maxEpoch }, func(w *world) (*lifecycle.Asked, error) {
		asked := &lifecycle.Asked{Command: lifecycle.Assign, Late: w.late()}
		_, err := w.Service().Assign(w.meant(), "alice", host, v1.Assignment{Cluster: apitest.Cluster})
		return asked, err
	}},
	{"operator releases", nil, func(w *world) (*lifecycle.Asked, error) {
		asked := &lifecycle.Asked{Command: lifecycle.Release, Late: w.late()}
		_, err := w.Service().Release(w.meant(), "alice", host)
		return asked, err
	}},
	{"operator fences", nil, func(w *world) (*lifecycle.Asked, error) {
		asked := &lifecycle.Asked{Command: lifecycle.Fence, Late: w.late()}
		_, err := w.Service().Release(w.meant(), "alice", host)
		if no, ok := errors.AsType[*refusal.Error](err); ok && no.Code == "host_not_assigned" {
			err = nil
		}
		if err == nil {
			w.shut(true)
		}
		return asked, err
	}},
	{"operator reopens", func(w *world) bool { return w.facts().Shut }, func(w *world) (*lifecycle.Asked, error) {
		w.shut(false)
		return nil, nil // the ports are opened, and seen: two commands
	}},
	{"operator resolves", func(w *world) bool { return w.facts().Held }, func(w *world) (*lifecycle.Asked, error) {
		_, err := w.Service().ResolveGUID(w.t.Context(), "alice", host, v1.GUIDResolved{Reason: "looked at the adapters"})
		return &lifecycle.Asked{Command: lifecycle.Resolve}, err
	}},
	{"provisioning begins", func(w *world) bool { f := w.facts(); return f.Assigned && f.Window && !f.Admitted }, func(w *world) (*lifecycle.Asked, error) {
		w.machine = w.Boot(host)
		a := &attempt{epoch: w.record().Epoch}
		var err error
		a.session, err = w.Service().Attestation().OpenSession(w.t.Context(), w.machine.Request(), source)
		w.fatal(err)
		a.evidence, err = w.machine.Answer(a.session, w.channel)
		w.fatal(err)
		w.old, w.now = cmp.Or(w.now, w.old), a
		return nil, nil
	}},
	{"provisioning sends evidence", func(w *world) bool { return w.now != nil && !w.now.sent }, func(w *world) (*lifecycle.Asked, error) {
		asked := &lifecycle.Asked{Command: lifecycle.Attest, Late: w.now.epoch != w.record().Epoch}
		result, err := w.send(w.now)
		if err == nil {
			w.now.seal, err = w.machine.Seal(w.now.session, result.Seal, w.channel)
			w.fatal(err)
		}
		return asked, err
	}},
	{"provisioning seals", func(w *world) bool { return w.now != nil && w.now.seal != nil }, func(w *world) (*lifecycle.Asked, error) {
		asked := &lifecycle.Asked{Command: lifecycle.Seal, Late: w.now.epoch != w.record().Epoch}
		_, err := w.Service().Attestation().SubmitSeal(w.t.Context(), w.now.session.ID, w.channel, source, w.now.seal)
		w.now.sealed = true
		w.old, w.now = w.now, nil
		return asked, err
	}},
	{"host repeats evidence", func(w *world) bool { return w.old != nil && w.old.sent }, func(w *world) (*lifecycle.Asked, error) {
		_, err := w.send(w.old)
		return &lifecycle.Asked{Command: lifecycle.Attest, Late: true}, err
	}},
	{"host repeats a seal", func(w *world) bool { return w.old != nil && w.old.sealed }, func(w *world) (*lifecycle.Asked, error) {
		_, err := w.Service().Attestation().SubmitSeal(w.t.Context(), w.old.session.ID, w.channel, source, w.old.seal)
		return &lifecycle.Asked{Command: lifecycle.Seal, Late: true}, err
	}},
	{"another host claims", func(w *world) bool { return !w.facts().Held }, func(w *world) (*lifecycle.Asked, error) {
		w.Edit(host, func(r *hostrecord.Record) {
			r.Phase = hostrecord.PhaseOf(*r)
			r.Conflicts = []hostrecord.Dispute{{Time: time.Now(), GUID: w.Host(host).HCAs[0].Ports[0].GUID, With: foreign}}
		})
		w.fatal(w.Service().Settle(w.t.Context()))
		return &lifecycle.Asked{Command: lifecycle.Claim}, nil
	}},
	{"manager reads back", func(w *world) bool { f := w.facts(); return f.Left || f.Given && !f.Applied }, func(w *world) (*lifecycle.Asked, error) {
		w.Program()
		return &lifecycle.Asked{Command: lifecycle.ReadBack}, nil
	}},
}

func (w *world) send(a *attempt) (*v1.AttestResult, error) {
	a.sent = true
	return w.Service().Attestation().SubmitEvidence(w.t.Context(), a.session.ID, w.channel, a.evidence)
}

// key names what the actors and the service can do from here on: worlds with one key are the same.
func (w *world) key() string {
	epoch := w.record().Epoch
	of := func(a *attempt) string {
		if a == nil {
			return "-"
		}
		return fmt.Sprintf("%v,%v,%v,%v", a.epoch == epoch, a.sent, a.seal != nil, a.sealed)
	}
	return fmt.Sprintf("%d %v %s %s %+v", epoch, w.late(), of(w.now), of(w.old), w.facts())
}
