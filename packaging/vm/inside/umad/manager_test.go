//go:build vm

package umad_test

import (
	"encoding/json"
	"strings"
	"testing"

	"portcullis/packaging/vm/inside/guest"
)

// manager is "portcullisd sm" on an adapter, and the events that it tells.
type manager struct {
	*daemon
	socket string // for "portcullis ... --socket"
}

// event is one line that "portcullisd sm --json" prints.
type event struct {
	Event, Level, Text, Cause string
	Seconds                   float64
	SMPs                      uint64
	Fields                    map[string]string
}

// manage starts our Subnet Manager on an adapter, and waits until the fabric is settled.
func manage(t testing.TB, device string, args ...string) *manager {
	t.Helper()
	m := begin(t, device, args...)
	m.settled(0)
	return m
}

// begin starts our Subnet Manager on an adapter.
func begin(t testing.TB, device string, args ...string) *manager {
	t.Helper()
	socket := t.TempDir() + "/sm.sock"
	all := []string{"sm", "--json", "--port", "umad:" + device, "--socket", socket}
	return &manager{program(t, "portcullisd", append(all, args...)...), socket}
}

// events returns what was told behind a place.
func events(text string) []event {
	var out []event
	for line := range strings.Lines(text) {
		var e event
		if strings.HasPrefix(line, "{") && json.Unmarshal([]byte(line), &e) == nil && e.Event != "" {
			out = append(out, e)
		}
	}
	return out
}

// tells waits for an event behind a place that satisfies a condition, and returns it.
func (m *manager) tells(from mark, what string, is func(event) bool) (found event) {
	m.t.Helper()
	m.until(from, what, func(out string) bool {
		for _, e := range events(out) {
			if is(e) {
				found = e
				return true
			}
		}
		return false
	})
	return found
}

// settled waits until the fabric is settled.
func (m *manager) settled(from mark) event {
	m.t.Helper()
	return m.tells(from, "a settled fabric", func(e event) bool { return e.Event == "settled" })
}

// once has our Subnet Manager bring the fabric up and end, and returns its report as JSON.
func once(t testing.TB, device string, args ...string) string {
	t.Helper()
	return guest.Do(t, "portcullisd", append([]string{"sm", "--once", "--json", "--port", "umad:" + device}, args...)...)
}
