// Package readiness collects whether each part of the service does its job, for /readyz, systemd and metrics.
package readiness

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"

	v1 "portcullis/api/v1"
)

// Parts of the service that /readyz lists. A process has those of its roles.
const (
	API       = "api"       // its certificate is valid
	Store     = "store"     // the store answers
	SM        = "sm"        // the fabric of this instance is managed
	SA        = "sa"        // subnet administration answers hosts
	Audit     = "audit"     // the audit log is what was written
	Admission = "admission" // hosts can be admitted, and automatic withdrawals are not stopped
)

// Status collects whether each part of the service does its job.
type Status struct {
	changed func(string) // called with a line for people after each change

	mu    sync.Mutex
	parts map[string]map[string]string // what is wrong, "" for nothing, by part and by aspect of it
}

// New returns a status without parts. It calls changed with a line for people after each change.
func New(changed func(string)) *Status {
	return &Status{changed: changed, parts: map[string]map[string]string{}}
}

// Set says how a part is; detail "" means well. It reports a change.
func (s *Status) Set(part, detail string) bool { return s.SetAspect(part, "", detail) }

// SetAspect says how a part is in one aspect. The part is well if it is in each. It reports a change.
func (s *Status) SetAspect(part, aspect, detail string) bool {
	s.mu.Lock()
	if s.parts[part] == nil {
		s.parts[part] = map[string]string{}
	}
	old, known := s.parts[part][aspect]
	s.parts[part][aspect] = detail
	line := s.line()
	s.mu.Unlock()
	if known && old == detail {
		return false
	}
	s.changed(line)
	return true
}

// Conditions returns every part, sorted by name.
func (s *Status) Conditions(context.Context) []v1.Condition {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.all()
}

// all is conditions with mu held.
func (s *Status) all() []v1.Condition {
	var all []v1.Condition
	for _, name := range slices.Sorted(maps.Keys(s.parts)) {
		var details []string
		for _, aspect := range slices.Sorted(maps.Keys(s.parts[name])) {
			if d := s.parts[name][aspect]; d != "" {
				details = append(details, d)
			}
		}
		all = append(all, v1.Condition{Name: name, OK: len(details) == 0, Detail: strings.Join(details, "; ")})
	}
	return all
}

// line says in one line what does not work.
func (s *Status) line() string {
	var bad []string
	for _, c := range s.all() {
		if !c.OK {
			bad = append(bad, c.Name+": "+c.Detail)
		}
	}
	if len(bad) == 0 {
		return "serving"
	}
	return "serving, but " + strings.Join(bad, "; ")
}

// Sight is the aspect of the part sm that says whether it sees what it knows.
const Sight = "sight"
