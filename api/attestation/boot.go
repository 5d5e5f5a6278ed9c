package attestation

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"portcullis/api/hostrecord"
	"portcullis/api/inventory"
	"portcullis/api/store"
	"portcullis/attest"
	"portcullis/attest/eventlog"
	"portcullis/attest/reference"
)

// References holds reference values of measured boots, by ReferenceKey.
func References() store.Collection[reference.Set] {
	return store.NewCollection[reference.Set]("references", 1)
}

// ReferenceKey is class and version, so that the sets of a class stand together
// in order of age.
func ReferenceKey(class string, version uint64) string {
	return fmt.Sprintf("%s/%010d", class, version)
}

// referenceKeyOf returns class and key of a set by its name.
func referenceKeyOf(name string) (class, key string, err error) {
	class, version, _ := strings.Cut(name, "/")
	n, err := strconv.ParseUint(version, 10, 64)
	return class, ReferenceKey(class, n), err
}

// ReferencesOf returns the sets of one class, the oldest first.
func ReferencesOf(ctx context.Context, r store.Reader, class string) ([]reference.Set, error) {
	list, _, err := References().List(ctx, r, class+"/")
	if err != nil {
		return nil, err
	}
	out := make([]reference.Set, 0, len(list))
	for i := range list {
		out = append(out, list[i].Value)
	}
	return out, nil
}

// MeasuredBoots holds, by host id, the last boot that a host's TPM proved and that no set of its class has: to learn from,
// and to show how it differs.
func MeasuredBoots() store.Collection[MeasuredBoot] {
	return store.NewCollection[MeasuredBoot]("measured-boots", 1)
}

// MeasuredBoot is a boot as it is kept: digests, and of the rest of the log what
// describes them.
type MeasuredBoot struct {
	Time     time.Time         `json:"time"`
	Class    string            `json:"class"`
	Locality byte              `json:"locality,omitempty"`
	Quoted   []eventlog.Quoted `json:"quoted"`
	Events   []MeasuredEvent   `json:"events"`
}

// MeasuredEvent is one event of a log.
type MeasuredEvent struct {
	PCR    int             `json:"pcr"`
	Type   eventlog.Type   `json:"type"`
	Digest eventlog.Digest `json:"digest"`
	Data   []byte          `json:"data,omitempty"` // as far as it describes the event
}

// keepBoot returns what is kept of a boot: events of registers that were not quoted prove nothing, and are left out.
func keepBoot(b *reference.Boot, class string, at time.Time) MeasuredBoot {
	out := MeasuredBoot{Time: at, Class: class, Locality: b.Log.Locality, Quoted: b.Quoted}
	for i := range b.Log.Events {
		e := &b.Log.Events[i]
		if !slices.ContainsFunc(b.Quoted, func(q eventlog.Quoted) bool { return q.PCR == e.PCR }) {
			continue
		}
		out.Events = append(out.Events, MeasuredEvent{PCR: e.PCR, Type: e.Type, Digest: e.Digest, Data: e.Brief()})
	}
	return out
}

// Boot returns the boot in the form that Judge takes.
func (m *MeasuredBoot) Boot() reference.Boot {
	l := &eventlog.Log{Locality: m.Locality, Events: make([]eventlog.Event, 0, len(m.Events))}
	for _, e := range m.Events {
		l.Events = append(l.Events, eventlog.Event{PCR: e.PCR, Type: e.Type, Digest: e.Digest, Data: e.Data})
	}
	return reference.Boot{Log: l, Quoted: m.Quoted}
}

// maxKeptBoot bounds a boot that is kept, in bytes. Those of machines have some ten thousand.
const maxKeptBoot = 256 << 10

// same reports whether another boot is the same except for its time, and how many bytes this one has.
func (m MeasuredBoot) same(as MeasuredBoot) (same bool, size int, _ error) {
	m.Time, as.Time = time.Time{}, time.Time{}
	mine, err := json.Marshal(m)
	if err != nil {
		return false, 0, err
	}
	other, err := json.Marshal(as)
	return bytes.Equal(mine, other), len(mine), err
}

// keepRefusedBoot keeps a boot for which a host was refused, once: the store is not written where it has that, and for each host
// takes a few others in a time alone, since a host boots what its tenant likes. That it cannot be
// kept does not make the answer a different one.
func (s *Service) keepRefusedBoot(ctx context.Context, h *inventory.Host, v *attest.Verdict) {
	if v.Code != attest.ReasonReference || v.Measured == nil {
		return
	}
	kept := keepBoot(v.Measured, h.ReferenceClass(), s.now())
	before, err := store.Optional(MeasuredBoots().Get(ctx, s.o.Store, h.ID))
	if err == nil {
		var same bool
		var size int
		if same, size, err = kept.same(before); same {
			return
		}
		if size > maxKeptBoot {
			err = fmt.Errorf("it has %d bytes, and at most %d are kept", size, maxKeptBoot)
		}
	}
	if err == nil {
		if !s.boots.Allow(h.ID, s.now()) {
			return
		}
		err = s.update(ctx, func(tx *store.Tx) error { return MeasuredBoots().Put(tx, h.ID, kept) })
	}
	if err != nil && s.lines.Allow(hostrecord.ProvenTPM, s.now()) {
		s.o.Log.Error("a measured boot could not be kept to learn from", "host", h.ID, "err", err)
	}
}

// acceptBoot makes sure that the reference values that trusted the boot still do, and keeps the boot if they are a waiver.
func (s *Service) acceptBoot(ctx context.Context, tx *store.Tx, judged, host *inventory.Host, v *attest.Verdict) error {
	if v.Facts.Reference == "" && !s.o.Judge.NeedsReference() {
		return nil
	}
	changed := &attest.Refusal{Code: ReasonChanged, Detail: "reference values of measured boots, or the class of the host, changed during the session"}
	class, key, err := referenceKeyOf(v.Facts.Reference)
	if err != nil || class != host.ReferenceClass() || class != judged.ReferenceClass() {
		return changed
	}
	set, err := References().Get(ctx, tx, key)
	if errors.Is(err, store.ErrNotFound) || err == nil && !set.Value.Valid(s.now()) {
		return changed
	}
	if err != nil {
		return err
	}
	if set.Value.Waiver {
		return MeasuredBoots().Put(tx, host.ID, keepBoot(v.Measured, class, s.now()))
	}
	MeasuredBoots().Delete(tx, host.ID)
	return nil
}
