package outsiders_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"portcullis/api/fabric/records"
	"portcullis/api/isolation/outsiders"
	"portcullis/api/refusal"
	"portcullis/api/store"
	"portcullis/api/store/memory"
	v1 "portcullis/api/v1"
	"portcullis/fabricsm/ib"
)

var begun = time.Date(2026, 11, 30, 1, 2, 3, 0, time.UTC)

// at returns a port of a switch.
func at(num ib.PortNum) ib.Place { return ib.Place{Switch: 0x5000, Port: num} }

func outsider(num ib.PortNum, keys ...ib.PKey) outsiders.Outsider {
	return outsiders.Outsider{Port: outsiders.Port{Place: at(num), GUID: 0x700 + ib.GUID(num), Name: "h9", Party: "tenant blue"}, PKeys: keys}
}

type site struct {
	t *testing.T
	s *store.Store
}

func newSite(t *testing.T) site { return site{t, store.New(memory.New(time.Now), "")} }

func (s site) record(list ...outsiders.Outsider) {
	s.t.Helper()
	if err := outsiders.Record(s.t.Context(), s.s, &outsiders.Found{Begun: begun, Outsiders: list}); err != nil {
		s.t.Fatal(err)
	}
}

// check returns why a host with some ports does not become a member; nil: it may.
func (s site) check(key ib.PKey, own ...ib.Place) *refusal.Error {
	s.t.Helper()
	_, err := s.s.Update(s.t.Context(), func(tx *store.Tx) error {
		return outsiders.Check(s.t.Context(), tx, outsiders.Asked{Key: key, Subject: "host h1", Own: own})
	})
	no, ok := errors.AsType[*refusal.Error](err)
	if err != nil && (!ok || no.Code != v1.CodeOpensPath || no.Status != refusal.Conflict || no.Hint == "") {
		s.t.Fatalf("%+v", err)
	}
	return no
}

func TestCheck(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	if err := s.check(0x8012); err != nil {
		t.Errorf("before the first examination: %v", err)
	}
	s.record(outsider(3, 0x8012, 0x8013))
	err := s.check(0x8012, at(1))
	if err == nil {
		t.Fatal("not refused")
	}
	for _, part := range []string{"host h1", "0x8012", ib.GUID(0x5000).String() + " port 3", "h9", ib.GUID(0x703).String(), "tenant blue", "2026-11-30T01:02:03Z"} {
		if !strings.Contains(err.Detail, part) {
			t.Errorf("%q does not name %q", err.Detail, part)
		}
	}
	if s.check(0x0013) == nil {
		t.Error("the second P_Key of the port, as limited member, is not refused")
	}
	if err := s.check(0x8014); err != nil {
		t.Errorf("another P_Key: %v", err)
	}
	if err := s.check(0x8012, at(1), at(3)); err != nil {
		t.Errorf("of its own port: %v", err)
	}
	s.record(outsider(4, 0x8013))
	if err := s.check(0x8012); err != nil {
		t.Errorf("after an examination that found none: %v", err)
	}
	if err := s.check(0x8013); err == nil || !strings.Contains(err.Detail, "port 4") {
		t.Errorf("after an examination that found another port: %v", err)
	}
}

// Two limited members exchange no packets: a host that becomes one is not refused for another.
func TestLimited(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.record(outsider(3, 0x0012))
	if err := s.check(0x0012); err != nil {
		t.Errorf("a limited member beside a limited port: %v", err)
	}
	if s.check(0x8012) == nil {
		t.Error("a full member beside a limited port is not refused")
	}
	s.record(outsider(3, 0x0012), outsider(4, 0x8012))
	if err := s.check(0x0012); err == nil || !strings.Contains(err.Detail, "port 4") {
		t.Errorf("a limited member beside a full port: %v", err)
	}
}

// A port that became a member since it was found is none any more.
func TestExplainedSince(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.record(outsider(3, 0x8012), outsider(5, 0x8012))
	grant := func(num ib.PortNum, guid ib.GUID) {
		_, err := s.s.Update(t.Context(), func(tx *store.Tx) error {
			return records.Grants().Put(tx, records.Key{PKey: 0x12, GUID: guid, Place: at(num)}.String(), records.Grant{Host: "h9"})
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	grant(3, 0x703)
	grant(5, 0x999) // of another adapter
	if err := s.check(0x8012); err == nil || !strings.Contains(err.Detail, "port 5") {
		t.Errorf("one of two ports is a member: %v", err)
	}
	grant(5, 0x705)
	if err := s.check(0x8012); err != nil {
		t.Errorf("both are members: %v", err)
	}
}

// What is not recorded for want of room refuses.
func TestBounds(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	var many []outsiders.Outsider
	for num := range ib.PortNum(40) {
		many = append(many, outsider(num+1, 0x8012))
	}
	s.record(many...)
	var own []ib.Place
	for num := range ib.PortNum(16) {
		own = append(own, at(num+1))
	}
	if err := s.check(0x8012, own...); err == nil || !strings.Contains(err.Detail, "more than 16 ports") {
		t.Errorf("more ports than are recorded: %v", err)
	}

	many = nil
	for k := range ib.PKey(1100) {
		many = append(many, outsider(3, 0x8000|(k+1)))
	}
	s.record(many...)
	for _, k := range []ib.PKey{0x8001, 0x8000 + 1024, 0x8000 + 1100, 0xF000} {
		if s.check(k) == nil {
			t.Errorf("%v is not refused", k)
		}
	}
	s.record()
	for _, k := range []ib.PKey{0x8001, 0x8000 + 1024, 0x8000 + 1100, 0xF000} {
		if err := s.check(k); err != nil {
			t.Errorf("after an examination that found nothing: %v", err)
		}
	}
}

// An examination that is recorded while a change commits is a condition of the change.
func TestRecordedMeanwhile(t *testing.T) {
	t.Parallel()
	backend := memory.New(time.Now)
	s, leader := site{t, store.New(backend, "")}, site{t, store.New(backend, "")}
	tries := 0
	_, err := s.s.Update(t.Context(), func(tx *store.Tx) error {
		tries++
		err := outsiders.Check(t.Context(), tx, outsiders.Asked{Key: 0x8012, Subject: "host h1"})
		if tries == 1 {
			leader.record(outsider(3, 0x8012))
		}
		return errors.Join(err, records.Grants().Put(tx, records.Key{PKey: 0x12, GUID: 1, Place: at(1)}.String(), records.Grant{Host: "h1"}))
	})
	if no, ok := errors.AsType[*refusal.Error](err); !ok || no.Code != v1.CodeOpensPath || tries != 2 {
		t.Errorf("%v after %d tries", err, tries)
	}
}

// A store that fails is no permission.
func TestStoreFails(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.record(outsider(3, 0x8012))
	ctx, cancel := context.WithCancel(t.Context())
	_, err := s.s.Update(t.Context(), func(tx *store.Tx) error {
		cancel()
		return outsiders.Check(ctx, tx, outsiders.Asked{Key: 0x8012, Subject: "host h1"})
	})
	if err == nil {
		t.Error("no error")
	}
	if err := outsiders.Record(ctx, s.s, &outsiders.Found{Begun: begun}); err == nil {
		t.Error("no error of Record")
	}
}
