package lifecycle_test

import (
	"encoding/json"
	"flag"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"portcullis/api/fabric/records"
	"portcullis/api/lifecycle"
)

// maxEpoch bounds the assignments of the host in an order.
const maxEpoch = 2

// maxSteps bounds the steps of an order.
var maxSteps = flag.Int("orders.steps", 6, "most steps of an order; each more takes three times as long")

// modelTable holds the steps that the model in packaging/model allows, by command and states.
type modelTable map[[3]int]bool

// readTable reads the table that the model in Promela includes.
func readTable(t *testing.T) modelTable {
	t.Helper()
	text, err := os.ReadFile("../../packaging/model/lifecycle.pml")
	if err != nil {
		t.Fatal(err)
	}
	table := modelTable{}
	macro := regexp.MustCompile(`(?m)^#define MAY_(\w+)\(from, to\) (.*)$`)
	pair := regexp.MustCompile(`\(from\) == (\d+) && \(to\) == (\d+)`)
	for _, r := range lifecycle.Rules() {
		name := strings.ToUpper(strings.ReplaceAll(r.Command.String(), "-", "_"))
		for _, m := range macro.FindAllStringSubmatch(string(text), -1) {
			if m[1] != name {
				continue
			}
			for _, p := range pair.FindAllStringSubmatch(m[2], -1) {
				from, _ := strconv.Atoi(p[1])
				to, _ := strconv.Atoi(p[2])
				table[[3]int{int(r.Command), from, to}] = true
			}
		}
	}
	if len(table) < 30 {
		t.Fatalf("the model's table has %d steps: it was not read", len(table))
	}
	return table
}

// accepts reports whether the model allows a step.
func (m modelTable) accepts(c lifecycle.Command, from, to lifecycle.State) bool {
	return from == to || m[[3]int{int(c), int(from), int(to)}]
}

// stored is what a refused command must not change: the record without its denial, and the grants.
func (w *world) stored() string {
	w.t.Helper()
	rec := w.record()
	rec.Denial, rec.DenialProof = nil, 0
	grants, _, err := records.Grants().List(w.t.Context(), w.Store, "")
	w.fatal(err)
	text, err := json.Marshal(rec)
	w.fatal(err)
	for _, g := range grants {
		one, err := json.Marshal(g.Value)
		w.fatal(err)
		text = append(append(append(text, g.Key...), '='), one...)
	}
	return string(text)
}

// outside are the states in which a host has no grant.
var outside = []lifecycle.State{
	lifecycle.Registered, lifecycle.Released, lifecycle.Fenced, lifecycle.Quarantined, lifecycle.Releasing, lifecycle.Suspended,
}

// step plays a move, and compares what the services did with the rules and with the model.
func (w *world) step(m *move, model modelTable) {
	w.t.Helper()
	before, stored := w.facts(), w.stored()
	asked, err := m.do(w)
	after := w.facts()
	from, to := lifecycle.Of(before), lifecycle.Of(after)
	if shown := w.Host(host).Status.State; string(shown) != to.String() {
		w.t.Errorf("%s: the service shows state %q, the facts say %v: %+v", m.name, shown, to, after)
	}
	if after.Given && slices.Contains(outside, to) {
		w.t.Errorf("%s: the host is %v and has a grant: %+v", m.name, to, after)
	}
	if asked == nil {
		return
	}
	if err != nil && w.stored() != stored {
		w.t.Errorf("%s was refused (%v), and changed\n%s\nto\n%s", m.name, err, stored, w.stored())
	}
	want, _, no := lifecycle.Next(before, *asked)
	if (no != "") != (err != nil) {
		w.t.Errorf("%s in %+v: refused by %q as the rules say, the service says: %v", m.name, before, no, err)
	}
	if want != after {
		w.t.Errorf("%s in %+v:\nwant %+v\ngot  %+v (%v)", m.name, before, want, after, err)
	}
	if !model.accepts(asked.Command, from, to) {
		w.t.Errorf("%s leads from %v to %v, which the model does not allow", m.name, from, to)
	}
}

// TestOrders plays the steps of operator, provisioning, host and Subnet Manager in every order against the real services,
// each with the assignment that its actor has read. An order ends where its world is the same as one that was seen.
func TestOrders(t *testing.T) {
	model := readTable(t)
	seen, steps, states := map[string]bool{}, 0, map[lifecycle.State]bool{}
	next := [][]int{nil}
	limit := *maxSteps
	if testing.Short() {
		limit = min(limit, 4)
	}
	for len(next) > 0 && !t.Failed() {
		order := next[0]
		next = next[1:]
		w := newWorld(t)
		for i, m := range order {
			if i == len(order)-1 {
				w.step(&moves[m], model)
				steps++
			} else if _, err := moves[m].do(w); err != nil {
				continue // the order goes on after a refusal
			}
		}
		if t.Failed() {
			for _, m := range order {
				t.Log(moves[m].name)
			}
		}
		k := w.key()
		if seen[k] || len(order) == limit {
			continue
		}
		seen[k] = true
		states[lifecycle.Of(w.facts())] = true
		for i := range moves {
			if moves[i].may == nil || moves[i].may(w) {
				next = append(next, append(order[:len(order):len(order)], i))
			}
		}
	}
	t.Logf("%d worlds, %d steps, %d states", len(seen), steps, len(states))
	if want := limit; len(states) < want && !t.Failed() {
		t.Errorf("%d states were reached, want %d at least: %v", len(states), want, states)
	}
}
