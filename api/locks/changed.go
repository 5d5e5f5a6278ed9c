package locks

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"portcullis/api/events"
	"portcullis/api/store"
	v1 "portcullis/api/v1"
	"portcullis/attest"
)

// The remedies of events.
const (
	doChanged = "find out who had the adapter, its key, or another way to it (a management controller, a jumper, other firmware); the host is admitted only once it is locked again; portcullis lock show lists what is ordered"
	doSkipped = "if it goes on, see why the agent ends before its adapters are locked: portcullis-agent status on the host"
	doGiven   = "take the adapter out; if it stays, portcullis lock retain"
	doForeign = "find out who locked it: another site's agent, a management controller, or a store that was restored; portcullis lock rehearse tries the root, docs/understand/lock.md describes the ways back"
	doFailed  = "see the agent's journal on the host, and docs/understand/lock.md"
)

// Look records in tx what evidence that was not accepted shows of locks. It proves nothing, but differences from the last
// proof are reported.
func (s *Service) Look(ctx context.Context, tx *store.Tx, st *attest.Statement) error {
	for i := range st.HCAs {
		rec, err := optional(Records().Get(ctx, tx, st.HCAs[i].NodeGUID.String()))
		if err != nil {
			return err
		}
		if err := s.compare(ctx, tx, st.Host, &rec, &st.HCAs[i]); err != nil {
			return err
		}
	}
	return nil
}

// compare reports how an adapter's lock differs from its last proof. A change that an order since then may have made is not
// reported: the agent may have been interrupted.
func (s *Service) compare(ctx context.Context, tx *store.Tx, host string, rec *Record, h *attest.HCA) error {
	if rec.Proven == 0 {
		return nil
	}
	tell := func(cause, expected, seen string) error {
		return s.tell(ctx, tx, events.About(events.LockChanged, events.ByEvidence, cause, host, rec.GUID, expected, seen, doChanged))
	}
	l := &h.Lock
	if rec.settled() && !rec.Drawing && l.MLOCK == attest.MLOCKUnlocked {
		if err := tell("unlocked", fmt.Sprintf("locked under the key of epoch %d", rec.Proven), "MLOCK is unlocked"); err != nil {
			return err
		}
	}
	if l.MLOCK == attest.MLOCKLocked && l.Epoch != 0 && (l.Epoch < uint64(rec.Proven) || l.Epoch > uint64(rec.Epoch)) {
		if err := tell("epoch", fmt.Sprintf("epoch %d to %d", rec.Proven, rec.Epoch), fmt.Sprintf("epoch %d", l.Epoch)); err != nil {
			return err
		}
	}
	if rec.Held == nil {
		return nil
	}
	if rec.settled() && (l.Method == attest.LockSignedFile || l.Method == attest.LockWrites) && l.Method.String() != rec.Held.Method {
		if err := tell("method", rec.Held.Method, l.Method.String()); err != nil {
			return err
		}
	}
	if l.File != nil && rec.Held.File != "" && l.File.SHA256 != rec.Held.File && l.File.SHA256 != rec.File {
		if err := tell("file", "file with SHA-256 "+rec.Held.File, "file with SHA-256 "+l.File.SHA256); err != nil {
			return err
		}
	}
	if !rec.settled() {
		return nil
	}
	if expected, seen := rec.Held.differ(valuesOf(l.Items)); expected != "" {
		return tell("value", expected, seen)
	}
	return nil
}

// maxDiffering bounds the settings that one event names.
const maxDiffering = 8

// differ names settings whose value differs from the proven one, by address. A value that is not known now is no
// difference: a host that locks an adapter cannot read it.
func (h *Held) differ(now map[string]string) (expected, seen string) {
	var was, is []string
	more := 0
	for _, at := range slices.Sorted(maps.Keys(h.Items)) {
		got, known := now[at]
		switch {
		case !known || got == h.Items[at]:
		case len(was) == maxDiffering:
			more++
		default:
			was, is = append(was, at+" "+h.Items[at]), append(is, at+" "+got)
		}
	}
	expected, seen = strings.Join(was, ", "), strings.Join(is, ", ")
	if more > 0 {
		seen += fmt.Sprintf(", and %d more", more)
	}
	return expected, seen
}

func heldOf(l *attest.Lock) *Held {
	h := &Held{Method: l.Method.String(), Items: valuesOf(l.Items)}
	if l.File != nil {
		h.File = l.File.SHA256
	}
	return h
}

// valuesOf returns the values of settings that are known, by address. One that changes with the next reset has both.
func valuesOf(items []attest.Item) map[string]string {
	out := map[string]string{}
	for i := range items {
		it := &items[i]
		if it.Supported != attest.Yes || it.Current == "" {
			continue
		}
		value := it.Current
		if it.Next != "" && it.Next != it.Current {
			value += " then " + it.Next
		}
		out[addressOf(it).String()] = value
	}
	return out
}

// tellRelocked records an event that evidence shows a lock that follows one which was proven.
func (s *Service) tellRelocked(ctx context.Context, tx *store.Tx, host string, rec *Record, h *attest.HCA) error {
	if rec.Shown.IsZero() || rec.Proven == rec.Epoch {
		return nil
	}
	return s.tell(ctx, tx, events.About(events.LockRelocked, events.ByEvidence, "proven", host, rec.GUID,
		fmt.Sprintf("a lock under the key of epoch %d, as ordered", rec.Epoch),
		fmt.Sprintf("epoch %d by %v", h.Lock.Epoch, h.Lock.Method), ""))
}

// tellGiven records an event that the keys to open an adapter permanently leave the service.
func (s *Service) tellGiven(ctx context.Context, tx *store.Tx, rec *Record) error {
	return s.tell(ctx, tx, events.About(events.LockUnlockGiven, events.ByService, "release", rec.Host, rec.GUID,
		fmt.Sprintf("to leave, as %s decided: %s", rec.Open.By, rec.Open.Reason), fmt.Sprintf("keys given out, the newest of epoch %d", rec.Epoch), doGiven))
}

// tellSkipped records an event that the last key was issued and no evidence came, before the next one is issued.
func (s *Service) tellSkipped(ctx context.Context, tx *store.Tx, rec *Record) error {
	if rec.Epoch == 0 || rec.Opened || rec.settled() {
		return nil
	}
	cause, seen := "skipped", fmt.Sprintf("none; epoch %d is given out", rec.next())
	if rec.next() == rec.Epoch {
		cause, seen = "repeated", fmt.Sprintf("none, nor for %d epochs before: it is given out again", maxHeld-1)
	}
	return s.tell(ctx, tx, events.About(events.LockEpochSkipped, events.ByService, cause, rec.Host, rec.GUID,
		fmt.Sprintf("evidence of the lock under the key of epoch %d", rec.Epoch), seen, doSkipped))
}

func (s *Service) tell(ctx context.Context, tx *store.Tx, e v1.Event) error {
	return events.Record(ctx, tx, s.now(), e)
}
