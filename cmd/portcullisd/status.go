package main

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"portcullis/api/review"
	v1 "portcullis/api/v1"
)

// Parts of the service that /readyz lists. A process has those of its roles.
const (
	partAPI       = "api"       // its certificate is valid
	partStore     = "store"     // the store answers
	partSM        = "sm"        // the fabric of this instance is managed
	partSA        = "sa"        // subnet administration answers hosts
	partAudit     = "audit"     // the audit log is what was written
	partAdmission = "admission" // hosts can be admitted, and automatic withdrawals are not stopped
)

// status collects whether each part of the service does its job.
type status struct {
	changed func(string) // called with a line for people after each change

	mu    sync.Mutex
	parts map[string]map[string]string // what is wrong, "" for nothing, by part and by aspect of it
}

func newStatus(changed func(string)) *status {
	return &status{changed: changed, parts: map[string]map[string]string{}}
}

// set says how a part is; detail "" means well. It reports a change.
func (s *status) set(part, detail string) bool { return s.setAspect(part, "", detail) }

// setAspect says how a part is in one aspect. The part is well if it is in each. It reports a change.
func (s *status) setAspect(part, aspect, detail string) bool {
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

// conditions returns every part, sorted by name.
func (s *status) conditions(context.Context) []v1.Condition {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.all()
}

// all is conditions with mu held.
func (s *status) all() []v1.Condition {
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
func (s *status) line() string {
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

// conditions returns every part, and whether a restored state is in review, which is no failure.
func (s *service) conditions(ctx context.Context) []v1.Condition {
	all := append(warned(s.status.conditions(ctx), s.storeHealth.now().Warning), s.clockCondition())
	mark, err := review.Current(ctx, s.store)
	switch {
	case err != nil:
		all = append(all, v1.Condition{Name: "review", Detail: "not known: " + err.Error()})
	case mark != nil:
		all = append(all, v1.Condition{
			Name: "review", OK: true,
			Detail: reviewDetail(mark),
		})
	}
	return append(all, s.anchorsCondition(time.Now())...)
}
