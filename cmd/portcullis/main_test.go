package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"portcullis/api"
	"portcullis/api/apitest"
	"portcullis/api/audit"
	"portcullis/api/store"
	"portcullis/api/store/memory"
	v1 "portcullis/api/v1"
	"portcullis/cmd/portcullis/cli"
	"portcullis/fabricsm/ib"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"portcullis": main})
}

// TestScripts runs the real main against the real API over a backend that
// plays the service. Scripts change what the service knows with:
//
//	phase HOST PHASE [GUARD DETAIL]   put a host into a phase, with one unmet guard
//	claimed HOST OTHER                have another host claim a GUID of a host
//	admit-on-assign, release-at-once  let the fabric follow at once
//	admit-after N [HOST...]           let the fabric follow when N hosts are assigned, of these hosts alone
//	hosts N                           add hosts n01 and so on
//	uses TENANT HOSTS RELEASING       have a tenant have so many hosts, of which so many are being released
//	logs ACTOR ACTION OBJECT [DETAIL [REASON]]   append an entry to the audit log; \e in DETAIL is an escape
//	awaits FILE TEXT                  wait until a file has a text
//	made-again-after-look             delete and create each tenant and cluster again, by another caller, once it was shown
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata",
		RequireExplicitExec: false,
		RequireUniqueNames:  true,
		Setup:               setup(t),
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"phase":                 phase,
			"claimed":               claimed,
			"admit-on-assign":       func(ts *testscript.TestScript, _ bool, _ []string) { backend(ts).OnAssign(admit(ts)) },
			"release-at-once":       func(ts *testscript.TestScript, _ bool, _ []string) { backend(ts).OnRelease(release(ts)) },
			"admit-after":           admitAfter,
			"hosts":                 hosts,
			"exits":                 exits,
			"uses":                  uses,
			"logs":                  logs,
			"awaits":                awaits,
			"made-again-after-look": func(ts *testscript.TestScript, not bool, _ []string) { backend(ts).RenewAfterLook(!not) },
		},
	})
}

func setup(t *testing.T) func(*testscript.Env) error {
	return func(e *testscript.Env) error {
		b := apitest.NewBackend()
		st := store.New(memory.New(time.Now), "")
		s := apitest.Start(t, b, func(o *api.Options) { o.Audit = audit.Book{Store: st} })
		fill(b)
		e.Values["backend"], e.Values["log"] = b, st
		e.Setenv("HOME", e.WorkDir)
		e.Setenv("XDG_CONFIG_HOME", e.WorkDir+"/.config")
		e.Setenv("URL", s.URL)
		e.Setenv("CAFILE", s.CAFile)
		e.Setenv("OPERATOR", s.OperatorFile)
		e.Setenv("VIEWER", s.ViewerFile)
		e.Setenv(cli.EnvService, s.URL)
		e.Setenv(cli.EnvCA, s.CAFile)
		e.Setenv(cli.EnvTokenFile, s.OperatorFile)
		return nil
	}
}

func backend(ts *testscript.TestScript) *apitest.Backend {
	return ts.Value("backend").(*apitest.Backend)
}

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// fill adds two hosts and a fabric to the backend.
func fill(b *apitest.Backend) {
	for i, id := range []string{"compute-1", "compute-2"} {
		port := v1.HCAPort{Num: 1, GUID: ib.GUID(0x10 + i), Cabled: ib.Place{Switch: 0x100, Port: ib.PortNum(1 + i)}}
		b.SetHost(v1.Host{
			ID: id, EK: strings.Repeat("ab", 32),
			HCAs: []v1.HCA{{NodeGUID: ib.GUID(0x20 + i), Ports: []v1.HCAPort{port}}},
			Status: v1.HostStatus{Phase: v1.PhaseQuarantined, Since: noon, Guards: []v1.Guard{
				{Name: "assigned", Detail: "no cluster"}, {Name: "attested", Detail: "no evidence yet"},
			}},
		})
	}
	b.SetFabric(v1.Fabric{
		Observed: noon, Summary: v1.FabricCounts{Switches: 1, CAs: 1, Links: 1, ActivePorts: 2},
		Nodes: []v1.Node{
			{GUID: 0x20, Type: "CA", Description: "evil\x1b[2J\nname", Host: "compute-1", Ports: []v1.Port{
				{Num: 1, GUID: 0x10, LID: 2, State: "Active", Peer: "0x0000000000000100/1", PKeys: []ib.PKey{0x7fff, 0x8001}},
			}},
			{GUID: 0x100, Type: "switch", Description: "leaf-1", Ports: []v1.Port{
				{Num: 1, State: "Active", Peer: "0x0000000000000020/1"},
			}},
		},
	})
	b.SetSM(v1.SM{
		State: "Master", GUID: 0x1, LID: 1, Priority: 15, Settled: true, Revision: 42, Updated: noon,
		SMPs: map[string]int{"Set PKeyTable": 4, "Get NodeInfo": 9}, Problems: []string{"switch 0x100 does not keep enforcement bits"},
		Mute: []ib.GUID{0x100},
	})
	b.SetQuarantined(v1.QuarantinedPKey{PKey: 0x0007, Since: noon, Waiting: []string{"HCA 0x20 port 1 is unreachable"}})
}

// phase HOST PHASE [GUARD DETAIL...]
func phase(ts *testscript.TestScript, _ bool, args []string) {
	h, err := backend(ts).Host(context.Background(), args[0])
	ts.Check(err)
	h.Status.Phase = v1.Phase(args[1])
	if len(args) > 2 {
		h.Status.Guards = []v1.Guard{{Name: args[2], Detail: strings.Join(args[3:], " ")}}
		h.Status.LastDenial = &v1.Denial{Time: noon, Code: "pcr-digest", Detail: "the values are not those quoted"}
	}
	backend(ts).SetHost(*h)
}

// claimed HOST OTHER
func claimed(ts *testscript.TestScript, _ bool, args []string) {
	h, err := backend(ts).Host(context.Background(), args[0])
	ts.Check(err)
	h.Status.Conflicts = append(h.Status.Conflicts, v1.Conflict{Time: noon, GUID: 0x10, With: args[1]})
	backend(ts).SetHost(*h)
}

func admit(ts *testscript.TestScript) func(*v1.Host) {
	b := backend(ts)
	return func(h *v1.Host) {
		next := *h
		next.Status.Phase, next.Status.PKey = v1.PhaseAdmitted, 0x0001
		next.Status.Guards = []v1.Guard{{Name: "assigned", Met: true}, {Name: "programmed", Met: true}}
		b.SetHost(next)
	}
}

// hosts N
func hosts(ts *testscript.TestScript, _ bool, args []string) {
	n, err := strconv.Atoi(args[0])
	ts.Check(err)
	for i := range n {
		backend(ts).SetHost(v1.Host{
			ID: fmt.Sprintf("n%02d", i+1), EK: strings.Repeat("ab", 32), HCAs: []v1.HCA{},
			Status: v1.HostStatus{Phase: v1.PhaseQuarantined, Since: noon, Guards: []v1.Guard{}},
		})
	}
}

// admitAfter N [HOST...]
func admitAfter(ts *testscript.TestScript, _ bool, args []string) {
	n, err := strconv.Atoi(args[0])
	ts.Check(err)
	var mu sync.Mutex
	var assigned []v1.Host
	follow := admit(ts)
	backend(ts).OnAssign(func(h *v1.Host) {
		mu.Lock()
		defer mu.Unlock()
		if assigned = append(assigned, *h); len(assigned) < n {
			return
		}
		for i := range assigned {
			if len(args) == 1 || slices.Contains(args[1:], assigned[i].ID) {
				follow(&assigned[i])
			}
		}
	})
}

func release(ts *testscript.TestScript) func(*v1.Host) {
	b := backend(ts)
	return func(h *v1.Host) {
		next := *h
		next.Cluster, next.Tenant = "", ""
		next.Status = v1.HostStatus{Phase: v1.PhaseQuarantined, Since: noon, Guards: []v1.Guard{}}
		b.SetHost(next)
	}
}

// uses TENANT HOSTS RELEASING
func uses(ts *testscript.TestScript, _ bool, args []string) {
	hosts, err := strconv.Atoi(args[1])
	ts.Check(err)
	releasing, err := strconv.Atoi(args[2])
	ts.Check(err)
	backend(ts).SetUse(args[0], v1.TenantUse{Hosts: hosts, Releasing: releasing})
}

// logs ACTOR ACTION OBJECT [DETAIL [REASON]]
func logs(ts *testscript.TestScript, _ bool, args []string) {
	st := ts.Value("log").(*store.Store)
	args = append(args, "", "")
	e := audit.Entry{Time: noon, Actor: args[0], Action: args[1], Object: args[2], Detail: strings.ReplaceAll(args[3], `\e`, "\x1b"), Reason: args[4], After: "5eed"}
	_, err := st.Update(context.Background(), func(tx *store.Tx) error { return audit.Append(context.Background(), tx, e) })
	ts.Check(err)
}

// awaits FILE TEXT
func awaits(ts *testscript.TestScript, _ bool, args []string) {
	late := time.After(time.Minute)
	for {
		text, err := os.ReadFile(ts.MkAbs(args[0]))
		if err == nil && strings.Contains(string(text), args[1]) {
			return
		}
		select {
		case <-late:
			ts.Fatalf("%s does not have %q: %s, %v", args[0], args[1], text, err)
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// exits CODE COMMAND... runs a command that must end with CODE.
func exits(ts *testscript.TestScript, _ bool, args []string) {
	err := ts.Exec(args[1], args[2:]...)
	got := "0"
	if err != nil {
		var code int
		if _, scanErr := fmt.Sscanf(err.Error(), "exit status %d", &code); scanErr != nil {
			ts.Fatalf("%s: %v", args[1], err)
		}
		got = fmt.Sprint(code)
	}
	if got != args[0] {
		ts.Fatalf("%s: exit code %s, want %s", strings.Join(args[1:], " "), got, args[0])
	}
}

func TestDocumentedExitCodes(t *testing.T) {
	help := root(cli.New(nil, nil, nil)).Long
	for _, code := range []int{cli.ExitOK, cli.ExitError, cli.ExitUsage, cli.ExitRefused, cli.ExitNotConverged, cli.ExitOtherwise} {
		if !strings.Contains(help, fmt.Sprintf("%d ", code)) {
			t.Errorf("portcullis --help does not explain exit code %d", code)
		}
	}
}
