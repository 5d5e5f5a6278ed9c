package attestation

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"portcullis/api/hostrecord"
	"portcullis/api/inventory"
	"portcullis/api/limit"
	"portcullis/api/store"
	"portcullis/api/store/memory"
	"portcullis/api/store/storetest"
	v1 "portcullis/api/v1"
	"portcullis/attest"
	"portcullis/attest/attesttest"
	"portcullis/attest/eventlog"
	"portcullis/attest/reference"
)

// bench is a Service without hosts, over a store in memory. Its admission settles nothing.
type bench struct {
	*Service
	t     *testing.T
	clock time.Time
}

func newBench(t *testing.T) *bench {
	b := &bench{t: t, clock: attesttest.Epoch}
	b.Service = New(Options{
		Store: store.New(memory.New(time.Now), ""), Policy: attest.DefaultPolicy(), Log: storetest.Quiet(), Admission: idle{}, Judge: strict{},
		Window: time.Hour, EvidenceAge: time.Hour, Now: func() time.Time { return b.clock },
	})
	return b
}

func (b *bench) trust(sets ...reference.Set) {
	b.t.Helper()
	if err := b.update(b.t.Context(), func(tx *store.Tx) (err error) {
		for i := range sets {
			err = errors.Join(err, References().Put(tx, ReferenceKey(sets[i].Class, sets[i].Version), sets[i]))
		}
		return err
	}); err != nil {
		b.t.Fatal(err)
	}
}

// idle is an Admission that decides nothing.
type idle struct{}

func (idle) Settle(context.Context, *store.Tx, string) (v1.Phase, error) { return "", nil }

func (idle) Look(context.Context, store.Reader, string) (*View, error) { return nil, store.ErrNotFound }

type strict struct{}

func (strict) Review(*attest.Verdict)     {}
func (strict) Matters(attest.Reason) bool { return true }
func (strict) NeedsReference() bool       { return true }

func TestDetailIsBounded(t *testing.T) {
	b := newBench(t)
	for _, long := range []string{strings.Repeat("x", 60_000), strings.Repeat("ü", 30_000)} {
		err := b.deny(t.Context(), denial{host: "host-1", source: "192.0.2.1", proven: hostrecord.ProvenTPM}, &attest.Refusal{Code: "statement", Detail: long})
		rec, e := hostrecord.Records().Get(t.Context(), b.o.Store, "host-1")
		if e != nil {
			t.Fatal(e)
		}
		var no *attest.Refusal
		d := rec.Value.LastDenial()
		if !errors.As(err, &no) || len(no.Detail) > maxDetail+3 || d == nil || d.Detail != no.Detail || strings.ContainsRune(d.Detail, '\uFFFD') {
			t.Errorf("got %v, status shows %+v, want both the first %d bytes", err, d, maxDetail)
		}
	}
	if n := b.Refused(hostrecord.ProvenTPM); n != 2 || b.Refused(hostrecord.ProvenEK) != 0 || b.Accepted() != 0 {
		t.Errorf("%d refusals of hosts whose TPM answered are counted, want 2, and nothing else", n)
	}
}

// TestStrangersTakeNoPlace: refusals of hosts that are not in inventory, under any number of names, take no place of the
// limiter of those that are.
func TestStrangersTakeNoPlace(t *testing.T) {
	b := newBench(t)
	for i := range limit.MaxKeys + 10 {
		name := fmt.Sprintf("zz%d", i)
		_ = b.deny(t.Context(), denial{host: name, source: "192.0.2.1", proven: hostrecord.ProvenNothing, stranger: true}, unknownHost(name))
	}
	if n := b.notes.Len(); n > 0 {
		t.Errorf("hosts that are not in inventory took %d places of the limiter", n)
	}
}

// TestBootThatIsKept: events of registers that were not quoted are left out, and a boot of too many bytes is not kept.
func TestBootThatIsKept(t *testing.T) {
	b := newBench(t)
	boot := reference.Boot{Log: &eventlog.Log{}, Quoted: []eventlog.Quoted{{PCR: 0}}}
	for range 4000 {
		boot.Log.Events = append(boot.Log.Events, eventlog.Event{PCR: 0, Digest: eventlog.Digest{1}}, eventlog.Event{PCR: 9})
	}
	if kept := keepBoot(&boot, "default", b.clock); len(kept.Events) != 4000 {
		t.Errorf("%d events are kept", len(kept.Events))
	}
	b.keepRefusedBoot(t.Context(), &inventory.Host{ID: "host-1"}, &attest.Verdict{Code: attest.ReasonReference, Measured: &boot})
	if _, err := MeasuredBoots().Get(t.Context(), b.o.Store, "host-1"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("a boot of more bytes than may be was kept: %v", err)
	}
	boot.Log.Events = boot.Log.Events[:2]
	b.keepRefusedBoot(t.Context(), &inventory.Host{ID: "host-1"}, &attest.Verdict{Code: attest.ReasonReference, Measured: &boot})
	if _, err := MeasuredBoots().Get(t.Context(), b.o.Store, "host-1"); err != nil {
		t.Errorf("a smaller one: %v", err)
	}
}

// TestReferencesEndDuringSession: the reference values that trusted a boot must still do so when the evidence is recorded.
func TestReferencesEndDuringSession(t *testing.T) {
	s := newBench(t)
	good := attesttest.References()[0]
	v := attest.Verdict{OK: true, Facts: attest.Facts{Reference: "default/1"}, Measured: &reference.Boot{Log: &eventlog.Log{}}}
	host := inventory.Host{ID: "host-1"}
	other := host
	other.Class = "gpu-node"
	for name, tc := range map[string]struct {
		set    func(*reference.Set)
		judged inventory.Host
		by     string
		want   bool
	}{
		"still in force":     {set: func(*reference.Set) {}, judged: host, by: "default/1", want: true},
		"ended":              {set: func(r *reference.Set) { r.State = reference.Ended }, judged: host, by: "default/1"},
		"expired":            {set: func(r *reference.Set) { r.Expires = s.clock }, judged: host, by: "default/1"},
		"gone":               {set: func(*reference.Set) {}, judged: host, by: "default/7"},
		"class changed":      {set: func(*reference.Set) {}, judged: other, by: "default/1"},
		"of another class":   {set: func(*reference.Set) {}, judged: host, by: "gpu-node/1"},
		"nothing trusted it": {set: func(*reference.Set) {}, judged: host},
	} {
		set := good
		tc.set(&set)
		s.trust(set)
		v.Facts.Reference = tc.by
		_, err := s.o.Store.Update(t.Context(), func(tx *store.Tx) error { return s.acceptBoot(t.Context(), tx, &tc.judged, &host, &v) })
		if tc.want {
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		if no, ok := errors.AsType[*attest.Refusal](err); !ok || no.Code != ReasonChanged {
			t.Errorf("%s: %v, want %s", name, err, ReasonChanged)
		}
	}
}
