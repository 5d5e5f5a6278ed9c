package web_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"portcullis/api"
	"portcullis/api/events"
	"portcullis/api/events/feed"
	"portcullis/api/store"
	v1 "portcullis/api/v1"
	"portcullis/api/web/webtest"
	"portcullis/fabricsm/ib"
)

// attacked is a fabric of a spine and two leaves, of which something is reported.
type attacked struct {
	busy
	rows []v1.FabricViolation
	gone string // the host whose port is no more

	blind bool // the stream does not know whether rows changed
}

func (a *attacked) Overview(context.Context) (*v1.Overview, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return &v1.Overview{Settled: a.gone == ""}, nil
}

func (a *attacked) Ports(ctx context.Context, q v1.PortQuery) (*v1.Page[v1.FabricPort], error) {
	out, err := a.busy.Ports(ctx, q)
	a.mu.Lock()
	defer a.mu.Unlock()
	out.Items = slices.DeleteFunc(out.Items, func(p v1.FabricPort) bool { return p.Host == a.gone })
	return out, err
}

func (a *attacked) Violations(context.Context, v1.ViolationQuery) (*v1.Page[v1.FabricViolation], error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return &v1.Page[v1.FabricViolation]{Items: append([]v1.FabricViolation{}, a.rows...)}, nil
}

// sum is another one when the rows are others.
func (a *attacked) sum() (uint64, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.blind {
		return 0, errors.New("not seen")
	}
	return a.rows[0].Count, nil
}

func (*attacked) Health(context.Context, v1.PageQuery) (*v1.Page[v1.FabricHealth], error) {
	return &v1.Page[v1.FabricHealth]{Items: []v1.FabricHealth{}}, nil
}

// TestViolationsLive: the page follows violations and events; the button holds it, with what comes meanwhile in bounds; a stream that was cut
// goes on behind the last event; and a place leads to its switch port on the map, by the keyboard alone.
func TestViolationsLive(t *testing.T) {
	t.Parallel()
	row := v1.FabricViolation{
		ID: 1, Kind: "p-key", Verdict: "confirmed", At: "leaf2/3", Place: ib.Place{Switch: leafB, Port: 3}, Host: "h7", Tenant: "acme", ReporterAt: "leaf2",
		Count: 5, Repeats: 2, Counted: 40, First: time.Now(), Last: time.Now(), Text: hostile,
	}
	is := &attacked{rows: []v1.FabricViolation{row}}
	site, server := served(t, func(o *api.Options) {
		o.Fabric = is
		o.Events.(*feed.Service).Violations = is.sum
	}, "h1")
	happen := func(host string) {
		t.Helper()
		_, err := site.Store.Update(t.Context(), func(tx *store.Tx) error {
			return events.Record(t.Context(), tx, time.Now(), v1.Event{Type: events.LockChanged, By: events.ByEvidence, Cause: "unlocked", Host: host})
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	p := webtest.Open(t, server.URL+"/ui/#/hosts")
	p.SignIn(reader(t, server, "auditor", ""))
	// What the page asks for streams with is noted, and the first stream can be cut. The first request for events fails, and requests for
	// violations can be held.
	webtest.Value[bool](p, `(() => {
		const real = window.fetch;
		window.resumed = [];
		let failed = false;
		window.fetch = async (url, o) => {
			if (url.startsWith('/v1/events?') && !failed) {
				failed = true;
				return new Response('{"detail": "not now"}', {status: 503});
			}
			if (url.startsWith('/v1/fabric/violations') && window.until) {
				window.holding = true;
				await window.until;
			}
			const answer = await real(url, o);
			if (!url.startsWith('/v1/events/watch')) return answer;
			window.resumed.push(o.headers['Last-Event-ID'] || '');
			if (window.resumed.length > 1) return answer;
			const both = new TransformStream({start(c) { window.cut = () => c.error(new Error('cut')); }});
			return new Response(answer.body.pipeThrough(both), {status: answer.status, headers: answer.headers});
		};
		return true;
	})()`)
	p.Show("#/violations", "Violations")
	p.AwaitText("Events appear as they happen.") // though the first request was refused
	p.AwaitText("2 sent once more, not counted; 40 by the device's own counter")
	p.AwaitText(hostile)
	happen("first")
	p.AwaitText("first")
	p.Look("violations live")

	change := func(count uint64) {
		is.mu.Lock()
		defer is.mu.Unlock()
		is.rows[0].Count = count
	}
	count := func() string {
		return webtest.Value[string](p, `document.querySelector('tr[data-key="1"] td[data-label=Count]').textContent`)
	}
	p.AwaitText("Violations appear as they are reported.")
	// While the stream says when rows change, the page asks for them then and else not: it would every 3 s.
	const requests = `performance.getEntriesByType('resource').filter((e) => e.name.includes('/v1/fabric/violations')).length`
	quiet := webtest.Value[int](p, `performance.setResourceTimingBufferSize(5000), window.since = performance.now(), `+requests)
	p.Await(`performance.now() > window.since + 4000`)
	if n := webtest.Value[int](p, requests); n != quiet {
		t.Errorf("the page asked %d times for violations that did not change", n-quiet)
	}
	webtest.Value[bool](p, `(() => {
		const line = document.querySelector('[data-key=live]');
		window.lives = [];
		new MutationObserver(() => window.lives.push(line.textContent)).observe(line, {childList: true});
		return true;
	})()`)
	change(6)
	p.Await(`document.querySelector('tr[data-key="1"] td[data-label=Count]').textContent === '6'`)
	webtest.Value[bool](p, `window.until = new Promise((go) => { window.go = go; }), true`)
	change(7)
	p.Await("window.holding === true")
	p.Type(`button[data-key=pause]`, "\r") // by the keyboard
	p.AwaitText("Lists stay as they are.")
	webtest.Value[bool](p, "window.go(), true") // what was asked for before is answered now
	asked := webtest.Value[int](p, `window.asked = 0, performance.setResourceTimingBufferSize(5000), performance.getEntriesByType('resource').filter((e) => e.name.includes('/v1/fabric/violations')).length`)
	for i := range 205 {
		happen(fmt.Sprintf("meanwhile%d", i))
	}
	p.AwaitText("Events meanwhile: 205")
	if text := webtest.Value[string](p, "document.body.innerText"); strings.Contains(text, "meanwhile0") || count() != "6" {
		t.Error("the page changes though it is held")
	}
	webtest.Value[bool](p, "window.cut(); true")
	p.Await("window.resumed.length === 2")
	p.Await(`window.lives.length === 2`)
	if got := webtest.Value[string](p, "window.lives.join('|')"); got != "stream lost Violations are asked for every 3 s.|live Violations appear as they are reported." {
		t.Errorf("the state of the stream was shown as %q", got)
	}
	if got := webtest.Value[string](p, "window.resumed[0] + '|' + window.resumed[1]"); !strings.HasPrefix(got, "|") || len(got) < 3 {
		t.Errorf("the streams resume behind %q, want the second behind an event", got)
	}
	happen("after")
	p.AwaitText("Events meanwhile: 206")
	if again := webtest.Value[int](p, `performance.getEntriesByType('resource').filter((e) => e.name.includes('/v1/fabric/violations')).length`); again > asked+1 {
		t.Errorf("a page that is held asked %d times for violations", again-asked)
	}
	p.Type(`button[data-key=pause]`, " ")
	p.AwaitText("meanwhile204")
	p.Await(`document.querySelector('tr[data-key="1"] td[data-label=Count]').textContent === '7'`)
	// The page asks every so often where the instance does not know whether rows changed.
	is.mu.Lock()
	is.blind = true
	is.mu.Unlock()
	p.AwaitText("Violations are asked for every 3 s.")
	change(8)
	p.Await(`document.querySelector('tr[data-key="1"] td[data-label=Count]').textContent === '8'`)
	is.mu.Lock()
	is.blind = false
	is.mu.Unlock()
	p.AwaitText("Violations appear as they are reported.")
	type kept struct {
		Rows   int
		Newest string
	}
	if got := webtest.Value[kept](p, `(() => {
		const rows = [...document.querySelectorAll('section[aria-labelledby=s-events] tbody tr')];
		return {Rows: rows.length, Newest: rows[0].querySelector('td[data-label=Host]').textContent};
	})()`); got != (kept{200, "after"}) {
		t.Errorf("the page has %+v, want the last 200 events, the newest first", got)
	}

	p.Type(`tr[data-key="1"] td[data-label="Switch port"] a[href*="fabric"]`, "\r")
	p.AwaitText("h7, port 1, at leaf2/3")
	p.Await(`(() => { // It is in the middle of the map.
		const c = document.querySelector('canvas');
		const dot = new OffscreenCanvas(1, 1).getContext('2d', {willReadFrequently: true});
		dot.drawImage(c, -c.width / 2, -c.height / 2);
		return [...dot.getImageData(0, 0, 1, 1).data].join() === '138,148,163,255';
	})()`)
	// It stays the chosen one where the switch has other ports than before.
	is.mu.Lock()
	is.gone = "h5"
	is.mu.Unlock()
	p.AwaitText("7 ports of hosts")
	p.AwaitText("Switch leaf2, 3 ports of hosts")
	p.AwaitText("h7, port 1, at leaf2/3")
	p.Show("#/fabric?at=0x0000000000000009/1", "Fabric")
	p.AwaitText("The fabric shows no switch port 0x0000000000000009/1.")
	p.Show("#/ports/"+strings.ReplaceAll(row.Place.String(), "/", "%2F"), "Switch port "+row.Place.String())
	p.AwaitText("confirmed")
	p.Quiet()
}
