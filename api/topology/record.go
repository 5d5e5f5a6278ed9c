package topology

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"time"

	"portcullis/api/store"
	"portcullis/fabricsm/sm/declared"
	"portcullis/fabricsm/topospec"
	"portcullis/fabricsm/topospec/history"
	"portcullis/fabricsm/topospec/native"
)

// Bounds of what is kept.
const (
	// MaxContent bounds the native form of a revision in bytes: some 200,000 devices
	// with their links.
	MaxContent = 64 << 20
	// maxStored bounds a content as it is stored, compressed.
	maxStored = 16 << 20
	// keep is how many revisions are kept; the oldest are forgotten, except for the audit log.
	keep = 200
	// maxKept bounds the compressed contents of all revisions that are kept.
	maxKept = 512 << 20
)

// Head is what is wanted in force. The zero Head is that of a fabric without a
// declared topology.
type Head struct {
	Revision uint64          `json:"revision"` // 0: nothing
	Digest   topospec.Digest `json:"digest"`
	Mode     topospec.Mode   `json:"mode"`
	By       string          `json:"by,omitempty"`
	Why      string          `json:"why,omitempty"`
	Since    time.Time       `json:"since,omitzero"`
	Back     bool            `json:"back,omitempty"` // it was in force before
	Watch    *Watch          `json:"watch,omitempty"`
}

// Watch is the time after an activation, in which it is taken back if it makes things
// worse. Under Enforce a way back may open what is closed, so that there only links count
// of which no tenant has an end: he could unplug his own until it is taken back.
type Watch struct {
	Until     time.Time     `json:"until"`
	Back      uint64        `json:"back_to"`
	BackMode  topospec.Mode `json:"back_to_mode"`
	Foretold  int           `json:"foretold"`           // verified links that count
	Backbone  bool          `json:"backbone,omitempty"` // only those count of which no tenant has an end
	Allowance int           `json:"allowance"`
}

// least returns how many links must be verified.
func (w *Watch) least() int { return max(0, w.Foretold-w.Allowance) }

// counts returns how many links are verified of those that count.
func (w *Watch) counts(v *declared.TopologyView) int {
	if w.Backbone {
		return v.Backbone
	}
	return v.Verified
}

// what names the links that count.
func (w *Watch) what() string {
	if w.Backbone {
		return "links that no tenant has an end of"
	}
	return "links"
}

// Entry is a revision as it is kept, except for its content.
type Entry struct {
	history.Entry
	Fabric    string           `json:"fabric"`
	Source    string           `json:"source"` // name of the file
	Reason    string           `json:"reason"` // why it was drafted
	Devices   int              `json:"devices"`
	Links     int              `json:"links"`
	Expected  int              `json:"active_links"`
	Stored    int              `json:"stored"` // bytes of the content as it is stored
	Needed    int              `json:"needed"` // approvals
	Touches   []topospec.Touch `json:"touches,omitempty"`
	Checked   *Note            `json:"checked,omitempty"`
	Simulated *Note            `json:"simulated,omitempty"`
}

// Note is when an actor had a revision checked, and the result.
type Note struct {
	By      string    `json:"by"`
	At      time.Time `json:"at"`
	Outcome string    `json:"outcome"`
}

// Content is what a revision says: its native form, sealed and compressed.
type Content struct {
	Gzip []byte `json:"gzip"`
}

const headKey = "head"

// Heads holds the Head under its one key.
func Heads() store.Collection[Head] { return store.NewCollection[Head]("topospec/head", 1) }

// Entries holds revisions by their number, in ten digits.
func Entries() store.Collection[Entry] { return store.NewCollection[Entry]("topospec/revisions", 1) }

// Contents holds what revisions say by their number, as Entries.
func Contents() store.Collection[Content] {
	return store.NewCollection[Content]("topospec/contents", 1)
}

func key(number uint64) string { return fmt.Sprintf("%010d", number) }

// pack makes a content of a revision.
func pack(s *topospec.Spec) (*Content, error) {
	text := native.AppendTo(nil, s.Revision(), native.JSON)
	if len(text) > MaxContent {
		return nil, fmt.Errorf("revision %d is %d MiB in native form, at most %d are kept: leave out what is not of this fabric",
			s.Revision().Number, len(text)>>20, MaxContent>>20)
	}
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if _, err := z.Write(text); err != nil {
		return nil, fmt.Errorf("compress revision %d: %w", s.Revision().Number, err)
	}
	if err := z.Close(); err != nil {
		return nil, fmt.Errorf("compress revision %d: %w", s.Revision().Number, err)
	}
	if b.Len() > maxStored {
		return nil, fmt.Errorf("revision %d is %d MiB compressed, at most %d are kept: leave out what is not of this fabric", s.Revision().Number, b.Len()>>20, maxStored>>20)
	}
	return &Content{Gzip: b.Bytes()}, nil
}

// unpack reads a content, and refuses one that is not what the entry says.
func unpack(c *Content, e *history.Entry) (*topospec.Spec, error) {
	name := fmt.Sprintf("revision %d in the store", e.Number)
	z, err := gzip.NewReader(bytes.NewReader(c.Gzip))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	text, err := io.ReadAll(io.LimitReader(z, MaxContent+1))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if len(text) > MaxContent {
		return nil, fmt.Errorf("%s: more than %d MiB", name, MaxContent>>20)
	}
	r, err := native.Parse(name, text)
	if err != nil {
		return nil, err
	}
	s, err := topospec.Compile(name, r)
	if err != nil {
		return nil, err
	}
	return s, e.Check(s)
}
