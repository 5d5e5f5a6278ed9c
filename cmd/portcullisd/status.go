package main

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"

	v1 "portcullis/api/v1"
)

// status collects whether each part of the service does its job.
type status struct {
	changed func(string) // told a line for people after each change

	mu    sync.Mutex
	parts map[string]v1.Condition
}

func newStatus(changed func(string)) *status {
	return &status{changed: changed, parts: map[string]v1.Condition{}}
}

// set says how part name is; detail "" means well. It reports a change.
func (s *status) set(name, detail string) bool {
	c := v1.Condition{Name: name, OK: detail == "", Detail: detail}
	s.mu.Lock()
	old, known := s.parts[name]
	s.parts[name] = c
	line := s.line()
	s.mu.Unlock()
	if known && old == c {
		return false
	}
	s.changed(line)
	return true
}

// conditions gives every part, sorted by name.
func (s *status) conditions(context.Context) []v1.Condition {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []v1.Condition
	for _, name := range slices.Sorted(maps.Keys(s.parts)) {
		all = append(all, s.parts[name])
	}
	return all
}

// line says in one line what does not work.
func (s *status) line() string {
	var bad []string
	for _, name := range slices.Sorted(maps.Keys(s.parts)) {
		if c := s.parts[name]; !c.OK {
			bad = append(bad, name+": "+c.Detail)
		}
	}
	if len(bad) == 0 {
		return "serving"
	}
	return "serving, but " + strings.Join(bad, "; ")
}
