package lifecycle

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the generated page and table")

const (
	page  = "../../docs/understand/life-cycle.md"
	table = "../../packaging/model/lifecycle.pml"
)

// step is one command in one state, and the state after it.
type step struct {
	from State
	by   Command
	to   State
}

// outcome is what came of commands in a state, over all facts of that state.
type outcome struct {
	to      map[State]bool
	refused map[Guard]bool
}

// asked are all commands.
func asked() (all []Asked) {
	for c := range commands {
		for _, late := range []bool{false, true} {
			all = append(all, Asked{Command: c, Late: late})
		}
	}
	return append(all, Asked{Command: Assign, Other: true})
}

// starts are the facts of a host that inventory never had, in each kind of site.
func starts() []Facts {
	return []Facts{{}, {CutOff: true}}
}

// reachable calls visit for each command in each of the facts that any order of commands leads to.
func reachable(visit func(before Facts, a Asked, after Facts, refused Guard)) (facts int) {
	seen, next := map[Facts]bool{}, starts()
	for len(next) > 0 {
		f := next[len(next)-1]
		next = next[:len(next)-1]
		if seen[f] {
			continue
		}
		seen[f] = true
		for _, a := range asked() {
			after, _, refused := Next(f, a)
			visit(f, a, after, refused)
			next = append(next, after)
		}
	}
	return len(seen)
}

// outcomes returns what comes of each command in each state. Late commands are left out.
func outcomes() map[State]map[Command]outcome {
	all := map[State]map[Command]outcome{}
	reachable(func(before Facts, a Asked, after Facts, refused Guard) {
		if a.Late {
			return
		}
		s := Of(before)
		if all[s] == nil {
			all[s] = map[Command]outcome{}
		}
		o, there := all[s][a.Command]
		if !there {
			o = outcome{map[State]bool{}, map[Guard]bool{}}
			all[s][a.Command] = o
		}
		if refused != "" {
			o.refused[refused] = true
		} else {
			o.to[Of(after)] = true
		}
	})
	return all
}

// steps returns the steps that the rules allow, in order, those without a change of the state included.
func steps() (all []step) {
	for from, by := range outcomes() {
		for c, o := range by {
			for to := range o.to {
				all = append(all, step{from, c, to})
			}
		}
	}
	slices.SortFunc(all, func(a, b step) int {
		return (int(a.from)-int(b.from))*1000000 + (int(a.by)-int(b.by))*1000 + int(a.to) - int(b.to)
	})
	return all
}

func names[T interface {
	comparable
	fmt.Stringer
}](of map[T]bool, in func(a, b T) int) string {
	var out []string
	for _, v := range slices.SortedFunc(maps.Keys(of), in) {
		out = append(out, v.String())
	}
	return strings.Join(out, ", ")
}

// makePage returns the page about the life cycle.
func makePage() string {
	var b strings.Builder
	b.WriteString(`# The life of a host

This page is made of the rules in ` + "`api/lifecycle`" + ` by its test (` + "`go test ./api/lifecycle -update`" + `). A state is not stored: it
follows from what is on record of a host, and from what the fabric shows. ` + "`portcullis host show`" + ` prints it, and each condition that
is not met. [security.md](security.md) says what the conditions stop.

## States

| State | Meaning |
|---|---|
`)
	for s := range states {
		fmt.Fprintf(&b, "| %v | %s |\n", s, stateMeanings[s])
	}
	b.WriteString(`
## Commands

A command is carried out if all its conditions are met, asked in this order; otherwise it changes nothing. A command with an epoch can
name the assignment that it means (` + "`If-Match`, `--epoch`" + `; sessions and seals always do), and is refused (` + "`changed`" + `) when another
assignment came since. Each command that is carried out then adds or withdraws grants: a host has them only while it is
assigned, its evidence counts and it was handed over; new ones only while inventory, fabric and review have nothing against it.

| Command | By | Epoch | Conditions (code of the refusal) | Does |
|---|---|---|---|---|
`)
	for i := range rules {
		r := &rules[i]
		epoch, conditions, effects := "", []string{}, []string{}
		if r.Epoch {
			epoch = "yes"
		}
		for _, g := range r.Guards {
			text := string(g)
			if g.Code() != "" {
				text += " (`" + g.Code() + "`)"
			}
			conditions = append(conditions, text)
		}
		for _, e := range r.Effects {
			effects = append(effects, string(e))
		}
		fmt.Fprintf(&b, "| %v | %s | %s | %s | %s |\n", r.Command, r.By, epoch, strings.Join(conditions, "; "), strings.Join(effects, "; "))
	}
	b.WriteString("\n## Transitions\n\nWhere a command can lead to several states, facts of the host or the fabric decide. A command that leaves the state as it is has no row.\n\n| State | Command | State after it |\n|---|---|---|\n")
	all := outcomes()
	for s := range states {
		for c := range commands {
			to := maps.Clone(all[s][c].to)
			delete(to, s)
			if len(to) > 0 {
				fmt.Fprintf(&b, "| %v | %v | %s |\n", s, c, names(to, func(a, b State) int { return int(a) - int(b) }))
			}
		}
	}
	b.WriteString("\n```mermaid\nstateDiagram-v2\n    direction LR\n")
	for s := range states {
		fmt.Fprintf(&b, "    %s: %v\n", id(s), s)
	}
	arrows := map[[2]State]map[Command]bool{}
	for _, st := range steps() {
		if st.from != st.to {
			k := [2]State{st.from, st.to}
			if arrows[k] == nil {
				arrows[k] = map[Command]bool{}
			}
			arrows[k][st.by] = true
		}
	}
	for _, k := range slices.SortedFunc(maps.Keys(arrows), func(a, b [2]State) int { return (int(a[0])-int(b[0]))*100 + int(a[1]) - int(b[1]) }) {
		fmt.Fprintf(&b, "    %s --> %s: %s\n", id(k[0]), id(k[1]), names(arrows[k], func(a, b Command) int { return int(a) - int(b) }))
	}
	b.WriteString("```\n")
	return b.String()
}

// id returns the name of a state as diagrams and models take it.
func id(s fmt.Stringer) string { return strings.ReplaceAll(s.String(), "-", "_") }

// makeTable returns the steps as the model in Promela reads them.
func makeTable() string {
	var b strings.Builder
	b.WriteString("/* Made of the rules in api/lifecycle by its test. The model asserts that each of its steps is one of these. */\n\n")
	for s := range states {
		fmt.Fprintf(&b, "#define IN_%s %d\n", strings.ToUpper(id(s)), s)
	}
	b.WriteString("\n")
	for c := range commands {
		var pairs []string
		for _, st := range steps() {
			if st.by == c && st.from != st.to {
				pairs = append(pairs, fmt.Sprintf("(from) == %d && (to) == %d", st.from, st.to))
			}
		}
		if len(pairs) == 0 {
			pairs = []string{"false"}
		}
		fmt.Fprintf(&b, "#define MAY_%s(from, to) ((from) == (to) || %s)\n", strings.ToUpper(id(c)), strings.Join(pairs, " || "))
	}
	return b.String()
}

// TestGenerated compares the page, and the table of the model, with the rules.
func TestGenerated(t *testing.T) {
	for file, want := range map[string]string{page: makePage(), table: makeTable()} {
		if *update {
			if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		got, err := os.ReadFile(file)
		if err != nil {
			t.Fatalf("%v: run go test ./api/lifecycle -update", err)
		}
		if diff := cmp.Diff(want, string(got)); diff != "" {
			t.Errorf("%s is not what the rules say; run go test ./api/lifecycle -update (-want +got):\n%s", file, diff)
		}
	}
}
