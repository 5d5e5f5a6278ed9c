package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"portcullis/fabricsm/transport/ibsim/ibsimtest"
)

// Each way in which a leader of ours ends has another one take over on a small fabric, with
// no LID, route or P_Key written, no client asked to register again and no packet lost; nor
// does a restart of one service.
func TestFailover(t *testing.T) {
	f, err := newFabric(18)
	if err != nil {
		t.Fatal(err)
	}
	var said bytes.Buffer
	r := &failoverResult{fabric: f, simulator: ownSimulator, serve: f.serveOwn}
	all := rivals()
	last := len(all) - 1
	for range all {
		r.takeovers = append(r.takeovers, map[string][]takeover{})
	}
	err = r.measure(t.Context(), &options{runs: 1, program: portcullisd(t)}, last, all[last], &said)
	if err != nil {
		t.Fatalf("%v, after\n%s", err, &said)
	}
	t.Logf("\n%s", &said)
	for _, how := range []string{killed, paused, planned, stopped} {
		if len(r.takeovers[last][how]) != 1 {
			t.Fatalf("%s: %d takeovers, want 1", how, len(r.takeovers[last][how]))
		}
		x := r.takeovers[last][how][0]
		if x.none || x.sa <= 0 || x.silent < 0 || x.sent == 0 || x.lost > 0 || x.changed > 0 {
			t.Errorf("%s: %+v", how, x)
		}
		if w := x.wrote; w.lids+w.renewals+w.routes+w.groups+w.pkeys > 0 || w.portInfo == 0 {
			t.Errorf("%s: wrote %+v", how, w)
		}
		if n := x.woken.all(); n > 0 {
			t.Errorf("%s: the old leader wrote %+v", how, x.woken)
		}
	}
	if len(r.restarts) != 1 {
		t.Fatalf("%d restarts, want 1", len(r.restarts))
	}
	if x := r.restarts[0]; x.sm <= 0 || x.ready < x.sm || x.sa <= 0 || x.sent == 0 || x.lost > 0 || x.changed > 0 || x.wrote.pkeys+x.wrote.lids > 0 {
		t.Errorf("restart: %+v", x)
	}
}

// The second of two OpenSMs takes over from the first, and the Sets that it writes count.
func TestFailoverOpenSM(t *testing.T) {
	ibsimtest.Need(t, "opensm")
	t.Parallel()
	f, err := newFabric(18)
	if err != nil {
		t.Fatal(err)
	}
	g, err := f.serveOwn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := g.stop(); err != nil {
			t.Error(err)
		}
	}()
	s, err := rivals()[1].start(t.Context(), nil, g)
	if err != nil {
		t.Fatal(err)
	}
	defer s.stop()
	if err := g.judgeTenants(); err != nil {
		t.Error(err)
	}
	asker, err := g.ask(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := asker.stop(); err != nil {
			t.Error(err)
		}
	}()
	// Now and then OpenSM hangs when its master ends, as it does in the benchmark.
	x, err := g.repeated(t.Context(), s, asker, killed, false, t.Output())
	if err != nil {
		t.Fatal(err)
	}
	if x.none || x.sa <= 1 || x.wrote.routes == 0 || x.wrote.renewals == 0 {
		t.Errorf("%+v: want the second OpenSM to write routes and to have clients register again", x)
	}
}

func TestFailoverTable(t *testing.T) {
	f, err := newFabric(18)
	if err != nil {
		t.Fatal(err)
	}
	r := &failoverResult{fabric: f, simulator: ownSimulator, restarts: []restart{{sm: 1, ready: 2, sa: 1.5, sent: 40}}}
	for k := range rivals() {
		x := takeover{sa: 8 / float64(1+k), silent: 6 / float64(1+k), sent: 100, lost: uint64(2 - k), wrote: written{portInfo: uint64(30 - k), routes: 7}}
		r.takeovers = append(r.takeovers, map[string][]takeover{killed: {x}, paused: {{none: k < 2, sa: 3, silent: 60}}})
	}
	other := &failoverResult{fabric: f, simulator: "ibsim", takeovers: []map[string][]takeover{{killed: {{sa: 4, silent: 4}}}}}
	o := &options{runs: 1, sizes: []int{18}, out: filepath.Join(t.TempDir(), "failover.md")}
	if err := writeFailover(o, []string{"a machine"}, []*failoverResult{r, other}); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(o.out)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"failover --runs 1 --sizes 18\n", "- a machine\n",
		"| 18 | portcullis-sim | killed | OpenSM | 1 | 8.000 / 8.000 / 8.000 | 6.000 / 6.000 / 6.000 | 0.00 | 2 | 100 | 0 | 7 | 0 | 0 | 30 | 0 | 0 | 0 | | 0.0 |\n",
		"| 18 | portcullis-sim | paused | OpenSM, polled | 1 | none in 60 | 60 |", "| 18 | portcullis-sim | paused | Portcullis | 1 | 3.000 / 3.000 / 3.000 |",
		"| 18 | portcullis-sim | killed | OpenSM | 3.0 | 35 | 37 |\n", "| 18 | ibsim | killed | OpenSM | 1 | 4.000 / 4.000 / 4.000 | 4.000 / 4.000 / 4.000 | 0.00 | – |",
		"| 18 | 15 | portcullis-sim | 1 | 1.000 / 1.000 / 1.000 | 2.000 / 2.000 / 2.000 | 1.500 / 1.500 / 1.500 | 0.00 | 0 | 0 | 0 | 40 | 0 | 0.0 |\n",
	} {
		if !strings.Contains(string(text), want) {
			t.Errorf("the table lacks %q:\n%s", want, text)
		}
	}
}
