package rma

import (
	"time"

	"portcullis/api/store"
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/topospec/rma"
)

// maxRecords bounds the flows that are kept; those that are over are dropped first.
const maxRecords = 1000

// Record is a replacement as it is kept. One of Adapter and Switch is there.
type Record struct {
	Adapter *rma.Adapter `json:"adapter,omitempty"`
	Switch  *rma.Switch  `json:"switch,omitempty"`
	Reason  string       `json:"reason"`

	// Revisions of the flow, 0: not drafted yet. Window puts the place under maintenance, Replace assigns it to the new
	// device, Open is that in which the hosts of a new switch are let in, Close ends maintenance without a replacement.
	Window  uint64 `json:"window,omitempty"`
	Replace uint64 `json:"replace,omitempty"`
	Open    uint64 `json:"open,omitempty"`
	Close   uint64 `json:"close,omitempty"`
	// Recabled: inventory's cables were moved to the new switch.
	Recabled bool `json:"recabled,omitempty"`

	Steps []Step `json:"steps"`
}

// Step is one step of a replacement, and the actor who took it.
type Step struct {
	At       time.Time `json:"at"`
	By       string    `json:"by"`
	What     string    `json:"what"`
	Revision uint64    `json:"revision,omitempty"`
}

// Records holds replacements by their tickets.
func Records() store.Collection[Record] { return store.NewCollection[Record]("topospec/rma", 1) }

func (r *Record) old() ib.GUID {
	if r.Switch != nil {
		return r.Switch.Old
	}
	return r.Adapter.Old
}

func (r *Record) ticket() string {
	if r.Switch != nil {
		return r.Switch.Ticket
	}
	return r.Adapter.Ticket
}

// by returns the operator who opened the window.
func (r *Record) by() string {
	if r.Switch != nil {
		return r.Switch.By
	}
	return r.Adapter.By
}

func (r *Record) state() rma.State {
	if r.Switch != nil {
		return r.Switch.State
	}
	return r.Adapter.State
}

func (r *Record) setState(st rma.State) {
	if r.Switch != nil {
		r.Switch.State = st
		return
	}
	r.Adapter.State = st
}

// tick lets time pass, and reports whether the window expired now.
func (r *Record) tick(now time.Time) bool {
	if r.Switch != nil {
		return r.Switch.Tick(now)
	}
	return r.Adapter.Tick(now)
}

// clone returns a record that can be changed.
func (r *Record) clone() *Record {
	c := *r
	if r.Adapter != nil {
		a := *r.Adapter
		c.Adapter = &a
	}
	if r.Switch != nil {
		w := *r.Switch
		c.Switch = &w
	}
	c.Steps = append([]Step(nil), r.Steps...)
	return &c
}
