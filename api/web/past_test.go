package web_test

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"portcullis/api"
	"portcullis/api/fabric/past"
	"portcullis/api/fabric/timeline/spool"
	v1 "portcullis/api/v1"
	"portcullis/api/web/webtest"
	"portcullis/fabricsm/ib"
)

// moving is a leaf whose last port may be gone.
type moving struct {
	leaf
	mu      sync.Mutex
	version int
	gone    bool
}

func (m *moving) Ports(ctx context.Context, q v1.PortQuery) (*v1.Page[v1.FabricPort], error) {
	all, err := m.leaf.Ports(ctx, q)
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.gone && err == nil {
		all.Items = all.Items[:5]
	}
	return all, err
}

func (m *moving) sight() past.Sight {
	m.mu.Lock()
	defer m.mu.Unlock()
	return past.Sight{Version: m.version, Settled: true}
}

func (m *moving) lose() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.gone, m.version = true, m.version+1
}

// TestPast: the page shows the fabric as it was before a host was admitted, says that it does, and comes back.
func TestPast(t *testing.T) {
	t.Parallel()
	files, err := spool.Open(spool.Options{Dir: t.TempDir(), Keep: 24 * time.Hour, Size: 8 << 20, Class: past.Class}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	is, hosts := &moving{}, past.NewHosts()
	safe := past.Proof{Begun: time.Now(), MaxAge: time.Hour, Ports: []v1.IsolationPortVerdict{{Host: "h1", Verdict: v1.Isolated, Held: "each", Place: ib.Place{Switch: 0x1000, Port: 1}}}}
	recorder := past.NewRecorder(past.Options{
		Spool: files, Fabric: is, Sight: is.sight, Hosts: hosts, Proof: func() past.Proof { return safe }, Now: time.Now, Log: slog.New(slog.DiscardHandler),
	})
	reads := &past.Reader{Spool: func() *spool.Spool { return files }, Every: recorder.Every, Keep: 24 * time.Hour, Why: func() string { return "" }, Now: time.Now}
	site, server := served(t, func(o *api.Options) {
		o.Fabric, o.Past = is, reads
		o.Isolation = &proven{now: v1.IsolationPorts{Begun: time.Now(), Age: 1, MaxAge: 3600, Current: true, Items: safe.Ports}}
	}, "h1", "h2")
	ctx, cancel := context.WithCancel(context.Background())
	var both sync.WaitGroup
	t.Cleanup(func() { cancel(); both.Wait() })
	both.Go(func() { hosts.Follow(ctx, site.Store, slog.New(slog.DiscardHandler)) })
	both.Go(func() { recorder.Run(ctx) })
	await := func(what string, holds func(*v1.FabricHistory, []v1.PastChange) bool) {
		t.Helper()
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		late := time.After(2 * time.Minute)
		for {
			known, err := reads.Known(ctx, true)
			if err != nil {
				t.Fatal(err)
			}
			list, err := reads.Changes(ctx, v1.PastChangeQuery{}, true)
			if err != nil {
				t.Fatal(err)
			}
			if holds(known, list.Items) {
				return
			}
			select {
			case <-tick.C:
			case <-late:
				t.Fatalf("%s is not recorded: %+v, %+v", what, known, list.Items)
			}
		}
	}
	await("the beginning", func(k *v1.FabricHistory, _ []v1.PastChange) bool { return !k.From.IsZero() })
	// Records of hosts that were read after the beginning are no change of one.
	isGone := func(c v1.PastChange) bool { return c.Kind == "port" && c.What == "gone" }
	is.lose()
	await("the port that is gone", func(_ *v1.FabricHistory, all []v1.PastChange) bool { return slices.ContainsFunc(all, isGone) })
	site.Admit("h1")
	phase := func(all []v1.PastChange) (n int) {
		for _, c := range all {
			for _, f := range c.Fields {
				if c.Kind == "host" && c.Object == "h1" && f.Now == "admitted" {
					n++
				}
			}
		}
		return n
	}
	await("the admission", func(_ *v1.FabricHistory, all []v1.PastChange) bool { return phase(all) == 1 })

	p := webtest.Open(t, server.URL+"/ui/#/fabric", "/v1/verify/ports")
	p.SignIn(reader(t, server, "auditor", ""))
	p.AwaitText("1 switches, 5 ports of hosts")
	p.AwaitText("admitted: 1")
	p.Click(".past summary")
	p.Await(`!document.querySelector('#past').disabled && document.querySelector('#past').getAttribute('aria-valuetext') === 'now'`)
	p.Await(`document.querySelector('.strip .mark').getAttribute('d').startsWith('M')`)
	p.Look("past open")

	legend := `[...document.querySelectorAll('.legend li')].map((l) => l.textContent.trim()).join(', ')`
	press := func(name string) {
		t.Helper()
		p.Await(fmt.Sprintf(`(() => { const b = [...document.querySelectorAll('.past button')].find((b) => b.textContent === %q && !b.disabled); b?.click(); return Boolean(b); })()`, name))
	}
	press("Previous change")
	p.AwaitText("The map shows the past: ")
	p.AwaitText("admitted: 1")
	p.Await(`[...document.querySelectorAll('form[aria-label=Path] input, form[aria-label=Path] button')].every((e) => e.disabled)`)
	p.Await(`[...document.querySelectorAll('form[aria-label=Map] option')].filter((o) => o.disabled).map((o) => o.value).join() === 'load,declared'`)
	// Back from change to change until the port was there, which was before the admission.
	p.Await(`(() => {
		if (document.body.textContent.includes('1 switches, 6 ports of hosts')) return true;
		[...document.querySelectorAll('.past button')].find((b) => b.textContent === 'Previous change' && !b.disabled)?.click();
		const s = document.querySelector('#past');
		if (s.value !== s.min && document.body.textContent.includes('5 ports') && [...document.querySelectorAll('.past button')].find((b) => b.textContent === 'Previous change').disabled) {
			s.value = s.min;
			s.dispatchEvent(new Event('input'));
		}
		return false;
	})()`)
	p.Await(`!(` + legend + `).includes('admitted: 1')`)
	if got := webtest.Value[string](p, `document.querySelector('canvas').getAttribute('aria-label')`); !strings.HasPrefix(got, "Map of the fabric, as it was at 20") {
		t.Errorf("the map is called %q", got)
	}
	p.Type(`input[type=search]`, "h6\r")
	p.AwaitText("h6, port 1, at leaf1/6")
	webtest.Value[bool](p, `(() => { const s = document.querySelector('form[aria-label=Map] select'); s.value = 'proof'; return s.dispatchEvent(new Event('change')); })()`)
	p.AwaitText("isolated: 1")
	p.AwaitText("It counts for 1 h.")
	p.Look("past")

	press("Next change")
	press("Now")
	p.Await(`!document.querySelector('.mapbox.was') && document.querySelector('.time').textContent === ''`)
	p.AwaitText("1 switches, 5 ports of hosts")
	p.Await(`[...document.querySelectorAll('form[aria-label=Path] input')].every((e) => !e.disabled)`)

	// The keyboard moves the slider, and a time before all that is known shows nothing.
	webtest.Value[bool](p, `(() => { const s = document.querySelector('#past'); s.focus(); s.min = String(Number(s.min) - 3600); s.value = s.min; return s.dispatchEvent(new Event('input')); })()`)
	p.AwaitText("nothing is known of this time: nothing was recorded so early")
	p.AwaitText("Nothing is known of this time.")
	p.Look("past unknown")
	p.Click(".past summary")
	p.Await(`!document.querySelector('.mapbox.was') && document.querySelector('.time').textContent === ''`)
	p.AwaitText("1 switches, 5 ports of hosts")
	p.Quiet()
}

// TestPastDenied: a reader who may not see proofs is shown none of the past, and which credential may.
func TestPastDenied(t *testing.T) {
	t.Parallel()
	files, err := spool.Open(spool.Options{Dir: t.TempDir(), Keep: 24 * time.Hour, Size: 8 << 20, Class: past.Class}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	is := &moving{}
	safe := past.Proof{Begun: time.Now(), MaxAge: time.Hour, Ports: []v1.IsolationPortVerdict{{Host: "h1", Verdict: v1.Leaks, Other: "blue", Place: ib.Place{Switch: 0x1000, Port: 1}}}}
	recorder := past.NewRecorder(past.Options{
		Spool: files, Fabric: is, Sight: is.sight, Hosts: past.NewHosts(), Proof: func() past.Proof { return safe }, Now: time.Now, Log: slog.New(slog.DiscardHandler),
	})
	reads := &past.Reader{Spool: func() *spool.Spool { return files }, Every: recorder.Every, Keep: 24 * time.Hour, Why: func() string { return "" }, Now: time.Now}
	_, server := served(t, func(o *api.Options) { o.Fabric, o.Past = is, reads }, "h1")
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { recorder.Run(ctx); close(done) }()
	t.Cleanup(func() { cancel(); <-done })
	p := webtest.Open(t, server.URL+"/ui/#/fabric", "/v1/verify/ports")
	p.SignIn(reader(t, server, "viewer", ""))
	p.AwaitText("6 ports of hosts")
	p.Click(".past summary")
	p.Await(`(() => {
		const s = document.querySelector('#past');
		if (s.disabled) return false;
		s.value = s.min;
		return s.dispatchEvent(new Event('input'));
	})()`)
	p.Await(`document.querySelector('.time').textContent.startsWith('past') || document.querySelector('.time').textContent.startsWith('not known')`)
	webtest.Value[bool](p, `(() => { const s = document.querySelector('form[aria-label=Map] select'); s.value = 'proof'; return s.dispatchEvent(new Event('change')); })()`)
	p.Await(`document.body.textContent.includes('No proof is shown: ') && !document.body.textContent.includes('blue')`)
	p.Quiet()
}
