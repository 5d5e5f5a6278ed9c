package admission

import (
	"context"
	"fmt"
	"time"

	"portcullis/api/store"
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

// ReferencesOf gives the sets of one class, the oldest first.
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

// Boots holds, by host id, the last boot that a host's TPM proved and that no
// set of its class has: to learn from, and to tell how it differs.
func Boots() store.Collection[MeasuredBoot] { return store.NewCollection[MeasuredBoot]("boots", 1) }

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

func keepBoot(b *reference.Boot, class string, at time.Time) MeasuredBoot {
	out := MeasuredBoot{Time: at, Class: class, Locality: b.Log.Locality, Quoted: b.Quoted, Events: make([]MeasuredEvent, 0, len(b.Log.Events))}
	for i := range b.Log.Events {
		e := &b.Log.Events[i]
		out.Events = append(out.Events, MeasuredEvent{PCR: e.PCR, Type: e.Type, Digest: e.Digest, Data: e.Brief()})
	}
	return out
}

// Boot gives the boot as Judge takes it.
func (m *MeasuredBoot) Boot() reference.Boot {
	l := &eventlog.Log{Locality: m.Locality, Events: make([]eventlog.Event, 0, len(m.Events))}
	for _, e := range m.Events {
		l.Events = append(l.Events, eventlog.Event{PCR: e.PCR, Type: e.Type, Digest: e.Digest, Data: e.Data})
	}
	return reference.Boot{Log: l, Quoted: m.Quoted}
}
