package keyfile

import (
	"fmt"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/keys"
)

// Migration is the known state of the keys on a fabric that another subnet manager ran. Weak keys are in it as well: they
// are on the devices.
type Migration struct {
	held   map[keys.Kind]map[ib.GUID]keys.Held
	single keys.Held
}

// NewMigration puts files together. The single M_Key of the options counts for
// devices that no file names. now is when the keys are taken over.
func NewMigration(files map[keys.Kind][]Entry, o Options, now time.Time) (*Migration, error) {
	m := &Migration{held: make(map[keys.Kind]map[ib.GUID]keys.Held)}
	imported := func(k keys.Key) keys.Held {
		return keys.Held{Key: k, Origin: keys.OriginImported, Since: now}
	}
	for kind, entries := range files {
		if !kind.OfDevice() {
			return nil, fmt.Errorf("%v is not the key of a device", kind)
		}
		m.held[kind] = make(map[ib.GUID]keys.Held, len(entries))
		for _, e := range entries {
			m.held[kind][e.GUID] = imported(e.Key)
		}
	}
	if key, ok := o.Single(); ok {
		m.single = imported(key)
	}
	return m, nil
}

// Key returns the key of a device according to the files, for Ring.Adopt; false if none is known.
func (m *Migration) Key(kind keys.Kind, guid ib.GUID) (keys.Held, bool) {
	if h, listed := m.held[kind][guid]; listed {
		return h, !h.IsZero()
	}
	if kind != keys.MKey {
		return keys.Held{}, false
	}
	return m.single, !m.single.IsZero()
}

// Records returns the records of all devices that the files name and that have a key, not bound to a place: the first one
// that is verified becomes theirs by Book.Move.
func (m *Migration) Records() []keys.Record {
	var out []keys.Record
	for kind, held := range m.held {
		for guid, h := range held {
			if !h.IsZero() {
				out = append(out, keys.Record{Kind: kind, GUID: guid, Current: h})
			}
		}
	}
	keys.SortRecords(out)
	return out
}

// Weak counts the devices of a kind whose key can be guessed; they are the first
// to need another.
func (m *Migration) Weak(kind keys.Kind) (n int) {
	for _, h := range m.held[kind] {
		if !h.IsZero() && keys.Check(h.Key) != nil {
			n++
		}
	}
	return n
}
