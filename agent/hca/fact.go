package hca

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"portcullis/agent/hca/register"
)

// Source is where a fact was read.
type Source string

// Sources.
const (
	FromFWCTL   Source = "fwctl"  // registers and commands of the firmware, through the kernel
	FromCard    Source = "card"   // the same, of a simulated adapter
	FromMSTReg  Source = "mstreg" // registers, through the vendor's tool
	FromFlint   Source = "mstflint"
	FromDevlink Source = "devlink" // the driver, asked over netlink
	FromVPD     Source = "vpd"     // what the maker wrote into the card
	FromSysfs   Source = "sysfs"   // the driver's files
)

// Reason says why a fact is not known. It is a reason not to comply.
type Reason string

// Reasons.
const (
	ReasonNoAccess     Reason = "no-access"     // no way to the firmware on this host
	ReasonLockdown     Reason = "lockdown"      // the kernel is locked down, which blinds the tools
	ReasonBlind        Reason = "blind"         // the tools can open no adapter at all
	ReasonNoPrivilege  Reason = "no-privilege"  // not root
	ReasonNoDriver     Reason = "no-driver"     // no RDMA device belongs to the function
	ReasonNotSupported Reason = "not-supported" // the firmware does not have it
	ReasonLocked       Reason = "locked"        // MLOCK hides it
	ReasonRefused      Reason = "refused"       // the firmware's answer is not ok
	ReasonBusy         Reason = "busy"
	ReasonTimeout      Reason = "timeout"
	ReasonUnreadable   Reason = "unreadable" // the answer did not come, or is none
	ReasonNotTold      Reason = "not-told"   // every source that was asked leaves it out
	ReasonDisagree     Reason = "disagree"   // sources contradict each other
)

// reasonOf returns the reason that an error stands for.
func reasonOf(err error) Reason {
	switch {
	case errors.Is(err, register.ErrNotSupported):
		return ReasonNotSupported
	case errors.Is(err, register.ErrBusy):
		return ReasonBusy
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, unix.ETIMEDOUT):
		return ReasonTimeout
	case errors.Is(err, os.ErrPermission):
		return ReasonNoPrivilege
	}
	if _, refused := errors.AsType[*register.Error](err); refused {
		return ReasonRefused
	}
	return ReasonUnreadable
}

// Reading is what one source says.
type Reading[T comparable] struct {
	From  Source
	Value T
}

// Fact is one fact about an adapter, as far as it is known: the value that each source reported, and the reason of the last
// source that reported none. The zero Fact is one for which no source was asked.
type Fact[T comparable] struct {
	Readings []Reading[T]
	Reason   Reason
	Detail   string
	spoiled  bool // a source said something that cannot be understood
}

// Value returns the fact if a source knows it and none contradicts.
func (f *Fact[T]) Value() (v T, ok bool) {
	if len(f.Readings) == 0 || f.spoiled || f.contradicted() {
		return v, false
	}
	return f.Readings[0].Value, true
}

func (f *Fact[T]) contradicted() bool {
	return slices.ContainsFunc(f.Readings, func(r Reading[T]) bool { return r.Value != f.Readings[0].Value })
}

// is reports that the fact is known and has this value.
func (f *Fact[T]) is(want T) bool { v, ok := f.Value(); return ok && v == want }

func (f *Fact[T]) add(from Source, v T) {
	f.Readings = append(f.Readings, Reading[T]{from, v})
}

// told adds a value if the source has one.
func (f *Fact[T]) told(from Source, v T) {
	var none T
	if v != none {
		f.add(from, v)
	}
}

func (f *Fact[T]) miss(r Reason, detail string) { f.Reason, f.Detail = r, detail }

func (f *Fact[T]) fail(err error) { f.miss(reasonOf(err), err.Error()) }

// spoil notes that a source said what cannot be understood: the fact is not
// known, whatever others say.
func (f *Fact[T]) spoil(detail string) {
	f.spoiled = true
	f.miss(ReasonUnreadable, detail)
}

// Why returns the reason why the fact is not known, and "" if it is.
func (f *Fact[T]) Why() (Reason, string) {
	switch {
	case f.spoiled:
		return ReasonUnreadable, f.Detail
	case f.contradicted():
		var said []string
		for _, r := range f.Readings {
			said = append(said, fmt.Sprintf("%s says %v", r.From, r.Value))
		}
		return ReasonDisagree, strings.Join(said, ", ")
	case len(f.Readings) > 0:
		return "", ""
	case f.Reason == "":
		return ReasonNotTold, "no source reports it"
	}
	return f.Reason, f.Detail
}

// line returns the fact as text.
func (f *Fact[T]) line(name string) Line {
	l := Line{Fact: name}
	for _, r := range f.Readings {
		if !slices.Contains(l.From, r.From) {
			l.From = append(l.From, r.From)
		}
	}
	if v, ok := f.Value(); ok {
		l.Value = fmt.Sprint(v)
	}
	l.Reason, l.Detail = f.Why()
	return l
}

// Line is a fact as text, for people and JSON. Either Value or Reason is there.
type Line struct {
	Fact   string   `json:"fact"`
	Value  string   `json:"value,omitempty"`
	From   []Source `json:"from,omitempty"`
	Reason Reason   `json:"unknown,omitempty"`
	Detail string   `json:"detail,omitempty"`
}
