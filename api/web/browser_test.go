package web_test

import (
	"context"
	"log/slog"
	"reflect"
	"strings"
	"testing"

	"portcullis/api"
	"portcullis/api/apitest"
	"portcullis/api/audit"
	"portcullis/api/events/feed"
	"portcullis/api/hostrecord"
	v1 "portcullis/api/v1"
	"portcullis/api/web/webtest"
)

// hostile is text of a host, or of an operator that labels racks, that would run a program in a page that took it for markup.
const hostile = `<img src=x onerror="document.title='taken'"><b>x</b>`

// served starts the real API, with its pages, over hosts that have software keys. edit may change its options before, and be nil.
func served(t testing.TB, edit func(*api.Options), hosts ...string) (*apitest.Site, *apitest.Server) {
	t.Helper()
	site := apitest.NewSite(t)
	file := site.Inventory(hosts...)
	site.Import(strings.ReplaceAll(file, "rack: r0", "rack: '"+strings.ReplaceAll(hostile, "'", "''")+"'"))
	return site, apitest.Start(t, site, func(o *api.Options) {
		o.Pages = true
		o.Events, o.Audit = feed.New(site.Store, slog.New(slog.DiscardHandler)), audit.Book{Store: site.Store}
		o.Ready = func(context.Context) []v1.Condition {
			return []v1.Condition{{Name: "store", OK: true}, {Name: "sm", OK: true, Detail: hostile}}
		}
		if edit != nil {
			edit(o)
		}
	})
}

// TestPages is what an operator does with the pages, in Chromium.
func TestPages(t *testing.T) {
	t.Parallel()
	site, server := served(t, nil, "h1", "h2")
	site.Join("h2")
	site.Edit("h2", func(r *hostrecord.Record) { r.Denial = &v1.Denial{Code: "guid-conflict", Detail: hostile} })
	// This service has no Subnet Manager and locks no adapter, and says so.
	p := webtest.Open(t, server.URL+"/", "/v1/sm", "/v1/fabric/overview", "/v1/locks")

	p.AwaitText("Sign in")
	p.Look("sign-in")
	p.SignIn(server.Viewer)
	p.AwaitText("vic viewer")
	p.AwaitText("2 in inventory.")
	p.AwaitText(hostile) // of readiness
	p.Look("overview")

	p.Show("#/clusters", "Tenants")
	p.AwaitText("train")
	p.Look("tenants")

	p.Show("#/hosts", "Hosts")
	p.AwaitText("Page 1, 2 hosts")
	p.AwaitText(hostile) // of the rack
	p.Look("hosts")
	site.Admit("h1")
	p.Await(`document.querySelector('tr[data-key=h1]').innerText.includes('admitted')`)
	p.Await(`document.querySelector('#said').textContent === 'h1 is admitted'`)

	p.Type(`input[data-key=prefix]`, "h2\r")
	p.AwaitText("Page 1, 1 hosts")
	p.Click(`tr[data-key=h2] a`)
	p.AwaitText("Host h2")
	p.AwaitText("Held by attested")
	p.AwaitText("guid-conflict: " + hostile)
	p.AwaitText("host.assign") // of the audit log
	p.Look("host")
	site.Place("h2")
	site.Hand("h2")
	site.Program()
	p.AwaitText("Every condition of admission is met.")
	p.Await(`document.querySelector('.state.here').textContent === 'admitted'`)

	if title := webtest.Value[string](p, "document.title"); title != "Host h2 · Portcullis" {
		t.Errorf("the title of the page is %q", title)
	}
	p.Quiet()
}

// TestToken: the credential is in the memory of the page and nowhere else.
func TestToken(t *testing.T) {
	t.Parallel()
	_, server := served(t, nil, "h1")
	p := webtest.Open(t, server.URL+"/ui/", "/v1/whoami", "/v1/sm", "/v1/fabric/overview")
	p.Type("#token", "pc_wrong\r")
	p.AwaitText("the token that was sent is not known here")
	p.SignIn(server.Viewer)
	p.AwaitText("1 in inventory.")
	kept := webtest.Value[string](p, `[document.cookie, JSON.stringify(localStorage), JSON.stringify(sessionStorage), location.href,
		document.documentElement.outerHTML, ...performance.getEntries().map((e) => e.name)].join(' ')`)
	if strings.Contains(kept, server.Viewer) {
		t.Error("the page keeps the token where others can read it")
	}
	p.Reload()
	p.AwaitText("Sign in")
	p.SignIn(server.Viewer)
	p.Click(`#who button`)
	p.AwaitText("Sign in")
	p.Await(`document.querySelector('#who').hidden`)
	p.Quiet()
}

// TestPolicy: the browser refuses what the policy forbids, also if a page of ours had the mistake.
func TestPolicy(t *testing.T) {
	t.Parallel()
	_, server := served(t, nil, "h1")
	p := webtest.Open(t, server.URL+"/ui/")
	p.AwaitText("Sign in")
	for what, program := range map[string]string{
		"markup":          `try { document.querySelector('main').innerHTML = '<b>x</b>'; false } catch (e) { e instanceof TypeError }`,
		"eval":            `new Promise((done) => setTimeout(() => { try { window.eval('1'); done(false); } catch { done(true); } }))`,
		"another service": `fetch('https://127.0.0.1:1/').then(() => false, () => performance.getEntriesByType('resource').every((e) => !e.name.includes(':1/')))`,
	} {
		if !webtest.Value[bool](p, program) {
			t.Errorf("%s is not refused", what)
		}
	}
}

// TestMapOfManyHosts draws the map of a fabric of 10,368 hosts and 1,440 switches, from afar and from near, and reports how long that takes.
func TestMapOfManyHosts(t *testing.T) {
	t.Parallel()
	_, server := served(t, nil, "h1")
	p := webtest.Open(t, server.URL+"/ui/")
	p.AwaitText("Sign in")
	type drawn struct{ Tiles, Far, Near, Found, FarMS, NearMS, PlaceMS, LoadMS float64 }
	got := webtest.Value[drawn](p, `(async () => {
		const map = await import(document.querySelector('script').src.replace('app.js', 'map.js'));
		const switches = [], trunks = [];
		for (let s = 0; s < 864; s++) switches.push({guid: 's' + s, name: 'spine' + s, hosts: []});
		for (let l = 0; l < 576; l++) {
			switches.push({guid: 'l' + l, name: 'leaf' + l, hosts: Array.from({length: 18}, (_, i) => ({name: 'h' + (l * 18 + i), kind: i % 5}))});
			for (let i = 0; i < 18; i++) trunks.push(['l' + l, 's' + (l * 18 + i) % 864]);
		}
		const began = performance.now();
		const plan = map.place(switches, trunks);
		const placed = performance.now() - began;
		const canvas = document.createElement('canvas');
		[canvas.width, canvas.height] = [1280, 800];
		const ctx = canvas.getContext('2d');
		const colors = {back: '#fff', text: '#000', line: '#888', raised: '#ddd', bad: '#f00'};
		const named = ['#111', '#222', '#333', '#444', '#555'];
		const chosen = {tile: plan.tiles.at(-1), host: 3};
		const dot = new OffscreenCanvas(1, 1).getContext('2d', {willReadFrequently: true});
		const time = (view, more) => {
			const began = performance.now();
			let cells = 0;
			for (let i = 0; i < 10; i++) cells = map.draw(ctx, plan, view, {width: 1280, height: 800, colors, chosen, colorOf: (h) => named[h.kind], ...more});
			dot.drawImage(canvas, 0, 0);
			dot.getImageData(0, 0, 1, 1); // so that all is drawn
			return [cells, (performance.now() - began) / 10];
		};
		const [far, farMS] = time(map.fit(plan, 1280, 800));
		const [near, nearMS] = time({scale: 1, x: -chosen.tile.x + 600, y: -chosen.tile.y + 400});
		const looks = plan.trunks.map((_, i) => ({color: named[i % 5], width: 2, dashed: i % 3 === 0, always: i % 10 === 0}));
		const [, loadMS] = time(map.fit(plan, 1280, 800), {looks, leafOf: (n) => ({color: named[n.hosts.length % 5], marks: ['two bars', 'ring']})});
		const c = map.cell(chosen.tile, 3);
		const found = map.at(plan, c.x + 1, c.y + 1);
		return {Tiles: plan.tiles.length, Far: far, Near: near, Found: found.tile === chosen.tile ? found.host : -1, FarMS: farMS, NearMS: nearMS, PlaceMS: placed, LoadMS: loadMS};
	})()`)
	t.Logf("placed in %.1f ms; drawn from afar in %.1f ms, from near in %.1f ms, with load from afar in %.1f ms", got.PlaceMS, got.FarMS, got.NearMS, got.LoadMS)
	if got.Tiles != 1440 || got.Far != 0 || got.Near < 18 || got.Near > 5000 || got.Found != 3 {
		t.Errorf("the map has %+v, want 1440 tiles, no cells from afar, those in the window from near, and the host where it was drawn", got)
	}
	p.Quiet()
}

// TestMapOfAPath: a path goes from the cell of the first host by each switch to the cell of the last, and is drawn over the map.
func TestMapOfAPath(t *testing.T) {
	t.Parallel()
	_, server := served(t, nil, "h1")
	p := webtest.Open(t, server.URL+"/ui/")
	p.AwaitText("Sign in")
	type drawn struct {
		Points, Strange [][]float64
		Want            [][]float64
		Before, After   string
	}
	got := webtest.Value[drawn](p, `(async () => {
		const map = await import(document.querySelector('script').src.replace('app.js', 'map.js'));
		const host = (name, place) => ({name, place});
		const switches = [{guid: 's', name: 'spine', hosts: []}, {guid: 'a', name: 'leaf1', hosts: [host('h0', 'a/1'), host('h1', 'a/2')]}, {guid: 'b', name: 'leaf2', hosts: [host('h2', 'b/7')]}];
		const plan = map.place(switches, [['a', 's'], ['b', 's']]);
		const hops = [{node_guid: 'x', out: 1}, {node_guid: 'a', in: 2, out: 20}, {node_guid: 's', in: 1, out: 2}, {node_guid: 'b', in: 20, out: 7}, {node_guid: 'y', in: 1}];
		const Points = map.course(plan, hops);
		const middle = (t) => [t.x + t.width / 2, t.y + map.tile.head / 2];
		const center = (t, i) => { const c = map.cell(t, i); return [c.x + c.size / 2, c.y + c.size / 2]; };
		const of = (guid) => plan.of.get(guid);
		const Want = [center(of('a'), 1), middle(of('a')), middle(of('s')), middle(of('b')), center(of('b'), 0)];
		const canvas = document.createElement('canvas');
		[canvas.width, canvas.height] = [600, 400];
		const ctx = canvas.getContext('2d', {willReadFrequently: true});
		const view = map.fit(plan, 600, 400);
		const [x, y] = [0, 1].map((k) => (Want[1][k] + Want[2][k]) / 2); // between leaf and spine
		const draw = (paths) => {
			const colors = {back: '#fff', text: '#000', line: '#fff', raised: '#ddd', bad: '#f00', path: '#00f'};
			map.draw(ctx, plan, view, {width: 600, height: 400, colors, chosen: null, colorOf: () => '#0f0', paths});
			return [...ctx.getImageData(Math.round(x * view.scale + view.x), Math.round(y * view.scale + view.y), 1, 1).data].slice(0, 3).join();
		};
		return {Points, Want, Before: draw([]), After: draw([Points]), Strange: map.course(plan, [{node_guid: 'x', out: 1}, {node_guid: 'q', in: 1}, {node_guid: 'y', in: 1}])};
	})()`)
	if !reflect.DeepEqual(got.Points, got.Want) || len(got.Strange) != 0 {
		t.Errorf("the path goes by %v, want %v; one of unknown nodes by %v, want none", got.Points, got.Want, got.Strange)
	}
	if got.Before != "255,255,255" || got.After != "0,0,255" {
		t.Errorf("between two switches the map has the color %s without a path and %s with one", got.Before, got.After)
	}
	p.Quiet()
}
