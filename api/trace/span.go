// Package trace makes spans of the records of hosts: one trace for each assignment until the host is admitted, and one for each
// release until its P_Keys are proven absent. It follows the records that decisions leave, so it has no part in them. It has no
// clock and no I/O.
//
// Spans name hosts, clusters, tenants, port GUIDs, places and reason codes: what inventory, operators and this program chose, and
// nothing that a host sent. How many there are, and how long they are, does not depend on what hosts send.
package trace

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"time"

	"portcullis/api/tracecontext"
)

// Trace is the spans of one admission or release.
type Trace struct {
	ID     [16]byte            // made of what is traced: each instance makes the same. With a Parent that has a trace, it is not used
	Parent tracecontext.Parent // span of the request that an operator sent; zero: none
	Link   tracecontext.Parent // span that a host says is its own, and that nothing vouches for; zero: none
	Root   Span
}

// Span is one step, from Start to End, which is not before Start. Children lie within it.
type Span struct {
	Name       string
	Start, End time.Time
	Failed     string // why it failed: an Outcome; "": it did not
	Attributes []Attribute
	Events     []Event
	Children   []Span
}

// Event is a moment within a span.
type Event struct {
	Name       string
	Time       time.Time
	Attributes []Attribute
}

// Attribute is one fact: Text, or Number where Text is empty.
type Attribute struct {
	Key    string
	Text   string
	Number int64
}

// texts returns attributes of keys and their texts, without those that are empty.
func texts(pairs ...string) (out []Attribute) {
	for pair := range slices.Chunk(pairs, 2) {
		if pair[1] != "" {
			out = append(out, Attribute{Key: pair[0], Text: pair[1]})
		}
	}
	return out
}

// Bounds of a trace.
const (
	MaxPorts    = 64 // that have a span of their own
	MaxRefusals = 8  // that are events
)

// Outcome is how what is traced ended.
type Outcome string

// Outcomes.
const (
	Admitted   Outcome = "admitted"
	Released   Outcome = "released"   // an operator ended the assignment first; or, of a release, the P_Keys are proven absent
	Reassigned Outcome = "reassigned" // another assignment took its place
	Shut       Outcome = "window-shut"
	Removed    Outcome = "removed" // with the records of the host
)

// idOf returns the ID of what happened to a host.
func idOf(kind, host string, epoch int64, start time.Time) (id [16]byte) {
	sum := sha256.Sum256(fmt.Appendf(nil, "portcullis/trace/1 %s %q %d %d", kind, host, epoch, start.UnixNano()))
	copy(id[:], sum[:])
	return id
}

// course makes children of a span, one after another: each within the span, and none before the one that came before it. Instances
// write times of their own clocks.
type course struct {
	span *Span
	at   time.Time
}

func newCourse(s *Span) *course { return &course{span: s, at: s.Start} }

// within returns a time between the last step and the end of the span. Zero is the last step.
func (c *course) within(t time.Time) time.Time {
	switch {
	case t.Before(c.at):
		return c.at
	case t.After(c.span.End):
		return c.span.End
	default:
		return t
	}
}

// step adds a child from the end of the last one until a time, and returns it. The pointer is good until the next one is added.
func (c *course) step(name string, until time.Time) *Span {
	from := c.at
	c.at = c.within(until)
	c.span.Children = append(c.span.Children, Span{Name: name, Start: from, End: c.at})
	return &c.span.Children[len(c.span.Children)-1]
}
