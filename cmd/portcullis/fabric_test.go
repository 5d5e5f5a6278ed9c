package main

import (
	"context"
	"flag"
	"log/slog"
	"net"
	"os"
	"regexp"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rogpeppe/go-internal/testscript"

	"portcullis/api"
	"portcullis/api/apitest"
	"portcullis/api/fabric/query"
	"portcullis/api/fabric/query/seentest"
	v1 "portcullis/api/v1"
	"portcullis/cmd/portcullis/cli"
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/perfmgr"
	"portcullis/fabricsm/sim"
	"portcullis/fabricsm/sm"
	"portcullis/fabricsm/sm/health"
)

var update = flag.Bool("update", false, "rewrite what the scripts of fabric expect")

// TestFabricScripts asks the real API over what a real subnet manager shows of
// a simulated fabric. Scripts change what it shows with:
//
//	fabric settled|unsettled|silent|none   a state of seentest.Tree; silent: h3 does not answer
//	fabric registered                      hosts have registered with subnet administration
//	steady                                 puts standard output without times into the file "got"
func TestFabricScripts(t *testing.T) {
	show := seentest.Run(t, seentest.Tree, seentest.Grants(), nil)
	silent := seentest.Run(t, seentest.Tree, seentest.Grants(), map[string]sim.Fault{"h3": {Silent: true}})
	registered, status := seentest.Registered(t)
	unsettled := show.Unsettled(t)
	testscript.Run(t, testscript.Params{
		Dir:                "testdata/fabric",
		RequireUniqueNames: true,
		UpdateScripts:      *update,
		Setup: func(e *testscript.Env) error {
			options := seentest.Owners()
			options.Hosts, options.Counters = hostNames(), loads{}
			o := query.New(options)
			for _, event := range show.Events {
				o.OnEvent(event)
			}
			o.OnView(show.Settled())
			s := apitest.Start(t, apitest.NewSite(t), func(o2 *api.Options) { o2.Fabric, o2.Past = o, changed{} })
			e.Values["observer"] = o
			e.Setenv("HOME", e.WorkDir)
			e.Setenv(cli.EnvService, s.URL)
			e.Setenv(cli.EnvCA, s.CAFile)
			e.Setenv(cli.EnvTokenFile, s.ViewerFile)
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits":  exits,
			"steady": steady,
			"fabric": func(ts *testscript.TestScript, _ bool, args []string) {
				o := ts.Value("observer").(*query.Observer)
				switch args[0] {
				case "settled":
					o.OnView(show.Settled())
				case "unsettled":
					o.OnView(unsettled)
				case "silent":
					o.OnView(silent.Settled())
				case "registered":
					o.OnView(registered)
					o.OnSA(status)
				case "none":
					o.Gone()
				default:
					ts.Fatalf("fabric %s: there is no such state", args[0])
				}
			},
		},
	})
}

func hostNames() func() map[ib.GUID]string {
	names := seentest.Hosts()
	return func() map[ib.GUID]string { return names }
}

// loads are the rates of links of seentest.Tree.
type loads struct{}

func (loads) Append(to []perfmgr.Reading) []perfmgr.Reading { return to }
func (loads) Stats() perfmgr.Stats                          { return perfmgr.Stats{} }

func (loads) Rates(of []ib.Place, to []perfmgr.Rate) []perfmgr.Rate {
	rate := func(xmit, rcv uint64) perfmgr.Rate {
		return perfmgr.Rate{State: perfmgr.Rated, Xmit: xmit, Rcv: rcv, Span: 30 * time.Second, Age: 4 * time.Second}
	}
	waits := rate(2_500_000_000, 11_250_000_000)
	waits.Waits, waits.Wait = true, 1234
	known := map[ib.Place]perfmgr.Rate{
		{Switch: 0x0010000100000001, Port: 1}: rate(0, 0), {Switch: 0x0010000100000001, Port: 2}: rate(125_000_000, 0),
		{Switch: 0x0010000100000001, Port: 7}: waits, {Switch: 0x0010000100000002, Port: 2}: {State: perfmgr.Narrow},
		{Switch: 0x0010000100000002, Port: 3}: rate(0, 1_000_000_000),
	}
	for _, pl := range of {
		to = append(to, known[pl])
	}
	return to
}

// changed is a past in which h1 was admitted, and a link of spine1 went down and away, with an hour between of which nothing is known.
type changed struct{ api.Historian }

func changedAt(minute int) time.Time {
	return time.Date(2026, 3, 1, 12, minute, 0, 0, time.UTC)
}

func (changed) Known(context.Context, bool) (*v1.FabricHistory, error) {
	return &v1.FabricHistory{
		From: changedAt(0), Until: changedAt(300), Short: true, Marks: []v1.FabricMark{},
		Gaps: []v1.FabricGap{{From: changedAt(60), Until: changedAt(120), Why: "this instance did not lead"}},
	}, nil
}

// Changes has one change a page.
func (changed) Changes(_ context.Context, q v1.PastChangeQuery, _ bool) (*v1.PastChanges, error) {
	all := []v1.PastChange{
		{Time: changedAt(10), Kind: "host", Object: "h1", What: "changed", Fields: []v1.PastField{{Field: "phase", Was: "granting", Now: "admitted"}, {Field: "tenant", Now: "acme"}}},
		{Time: changedAt(20), Kind: "link", Object: "0x0010000100000001/7", Name: "leaf1/7 to spine1/1", What: "changed", Fields: []v1.PastField{{Field: "state", Was: "Active", Now: "Down"}}},
		{Time: changedAt(130), Kind: "link", Object: "0x0010000100000001/7", Name: "leaf1/7 to spine1/1", What: "gone", Fields: []v1.PastField{{Field: "state", Was: "Down"}}},
		{Time: changedAt(140), Kind: "port", Object: "0x0010000100000002/3", Name: "h3", What: "appeared", Fields: []v1.PastField{{Field: "state", Now: "Init"}}},
	}
	out := &v1.PastChanges{Items: []v1.PastChange{}, Gaps: []v1.FabricGap{}}
	for _, c := range all {
		if c.Time.Before(q.From) || !q.Until.IsZero() && c.Time.After(q.Until) || c.Time.Format(time.RFC3339) <= q.After {
			continue
		}
		if len(out.Items) == 1 {
			out.Next = out.Items[0].Time.Format(time.RFC3339)
			return out, nil
		}
		out.Items = append(out.Items, c)
	}
	return out, nil
}

// changing is what differs from run to run, or with the default engine.
var changing = regexp.MustCompile(`\d{4}-\d\d-\d\d \d\d:\d\d:\d\dZ|\b[0-9.]+ (us|ms|s)\b`)

// steady leaves what does not change of standard output in a file.
func steady(ts *testscript.TestScript, _ bool, _ []string) {
	got := changing.ReplaceAllString(ts.ReadFile("stdout"), "TIME")
	ts.Check(os.WriteFile(ts.MkAbs("got"), []byte(got), 0o600))
}

// TestLoneSubnetManagerIsAsked: --socket, the environment and the file lead to
// a subnet manager on this machine, without a service or a token.
func TestLoneSubnetManagerIsAsked(t *testing.T) {
	o, show := query.New(query.Options{}), seentest.Run(t, seentest.Tree, seentest.Grants(), nil).Settled()
	o.OnView(show)
	testscript.Run(t, testscript.Params{
		Dir: "testdata/lone",
		Setup: func(e *testscript.Env) error {
			e.Setenv("HOME", e.WorkDir)
			l, err := net.Listen("unix", e.WorkDir+"/sm.sock")
			if err != nil {
				return err
			}
			s := api.NewLocal(api.LocalOptions{Fabric: o, Operator: &marker{seen: o, view: show}, Version: "v0", Log: slog.New(slog.DiscardHandler), Registry: prometheus.NewRegistry()})
			serveLocal(t, e, s, l)
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"exits": exits},
	})
}

// marker keeps and shows one mark, as a subnet manager does.
type marker struct {
	api.KeyOperator
	seen *query.Observer
	view *sm.View
}

func (k *marker) MarkHealth(_ context.Context, _ string, m v1.HealthMark) (*v1.FabricHealth, error) {
	pl, err := k.seen.PlaceOf(m.Place)
	if err != nil {
		return nil, err
	}
	v := *k.view
	s := health.State{Place: pl, Reason: m.Reason, Since: v.Time}
	switch m.Mark {
	case v1.MarkUnhealthy:
		s.Mark, s.Unhealthy, s.Condition, s.Action = health.MarkUnhealthy, true, health.Marked, health.Isolate
	case v1.MarkHealthy:
		s.Mark = health.MarkHealthy
	}
	if v.Health = nil; s.Mark != health.MarkNone {
		v.Health = []health.State{s}
	}
	k.seen.OnView(&v)
	row, _, err := k.seen.HealthAt(pl)
	return &row, err
}

// serveLocal has a server answer on l until the script ends.
func serveLocal(t *testing.T, e *testscript.Env, s *api.Server, l net.Listener) {
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.ServeLocal(ctx, l) }()
	e.Defer(func() {
		stop()
		if err := <-ended; err != nil {
			t.Errorf("serve: %v", err)
		}
	})
}
