package web_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"portcullis/api"
	"portcullis/api/refusal"
	v1 "portcullis/api/v1"
	"portcullis/api/web/webtest"
	"portcullis/fabricsm/ib"
)

// busy is a fabric of a spine and two leaves with four ports of hosts each, and what its links carry.
type busy struct {
	leaf
	mu    sync.Mutex
	loads []v1.FabricLoad
	err   error
	away  error // of all but the load
}

const spine, leafA, leafB = ib.GUID(0x3000), ib.GUID(0x1000), ib.GUID(0x2000)

func (b *busy) Overview(context.Context) (*v1.Overview, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return &v1.Overview{Settled: true}, b.away
}

func (*busy) Nodes(context.Context, v1.NodeQuery) (*v1.Page[v1.FabricNode], error) {
	return &v1.Page[v1.FabricNode]{Items: []v1.FabricNode{
		{GUID: leafA, Type: "switch", Name: "leaf1"}, {GUID: leafB, Type: "switch", Name: "leaf2"}, {GUID: spine, Type: "switch", Name: "spine1"},
	}}, nil
}

func (*busy) Links(context.Context, v1.LinkQuery) (*v1.Page[v1.FabricLink], error) {
	to := func(leaf ib.GUID) v1.FabricLink {
		return v1.FabricLink{A: v1.PortName{Node: leaf}, B: v1.PortName{Node: spine}}
	}
	return &v1.Page[v1.FabricLink]{Items: []v1.FabricLink{to(leafA), to(leafA), to(leafB)}}, nil
}

func (*busy) Ports(context.Context, v1.PortQuery) (*v1.Page[v1.FabricPort], error) {
	out := &v1.Page[v1.FabricPort]{}
	for i, leaf := range []ib.GUID{leafA, leafA, leafA, leafA, leafB, leafB, leafB, leafB} {
		out.Items = append(out.Items, v1.FabricPort{
			Host: fmt.Sprintf("h%d", i+1), Num: 1, State: "Active", Place: ib.Place{Switch: leaf, Port: ib.PortNum(i%4 + 1)},
		})
	}
	return out, nil
}

func (b *busy) Load(_ context.Context, q v1.LoadQuery) (*v1.Page[v1.FabricLoad], error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.err != nil {
		return nil, b.err
	}
	page := &v1.Page[v1.FabricLoad]{Items: b.loads}
	if q.After == "" && len(b.loads) > 2 { // so that there are two pages
		page.Items, page.Next = b.loads[:2], "2"
	} else if q.After != "" {
		page.Items = b.loads[2:]
	}
	return page, nil
}

func (b *busy) set(err error, loads ...v1.FabricLoad) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.err, b.loads = err, loads
}

// toHost is the link of a host with a share of 100 Gb/s in percent; less than 0: it is not known.
func toHost(leaf ib.GUID, port ib.PortNum, percent int) v1.FabricLoad {
	l := v1.FabricLoad{
		Node: leaf, Num: port, At: fmt.Sprintf("leaf%d/%d", leaf>>12, port), Peer: 0x9000, PeerNum: 1, To: "hca/1", Capacity: 12_500_000_000, State: "narrow",
	}
	if percent >= 0 {
		l.State, l.Rate = v1.LoadKnown, &v1.LinkRate{Rcv: uint64(percent) * 125_000_000, Share: float64(percent) / 100, Span: 30, Age: 7}
	}
	return l
}

// toSpine is a link of a leaf and the spine.
func toSpine(leaf ib.GUID, port ib.PortNum, percent int) v1.FabricLoad {
	l := toHost(leaf, port, percent)
	l.Peer, l.To, l.Trunk = spine, fmt.Sprintf("spine1/%d", port), true
	return l
}

// color chooses the color of the map.
func color(p *webtest.Page, name string) {
	webtest.Value[bool](p, fmt.Sprintf(`(() => {
		const s = document.querySelector('form[aria-label=Map] select');
		s.value = %q;
		return s.dispatchEvent(new Event('change'));
	})()`, name))
}

// TestMapOfLoad: the map has a color and a shape for each level of load, says in words which link of a switch is the busiest, and never
// shows a link as idle of which nothing is known.
func TestMapOfLoad(t *testing.T) {
	t.Parallel()
	is := &busy{err: &refusal.Error{Code: "counters_not_read", Status: refusal.Conflict, Detail: "the load of links is not known", Hint: hostile}}
	_, server := served(t, func(o *api.Options) { o.Fabric = is }, "h1")
	p := webtest.Open(t, server.URL+"/ui/#/fabric", "/v1/fabric/load", "/v1/fabric/overview")
	p.SignIn(server.Viewer)
	p.AwaitText("3 switches, 8 ports of hosts, 2 pairs of switches with links")
	legend := func() string {
		return webtest.Value[string](p, `[...document.querySelectorAll('.legend li')].map((l) => l.textContent.trim() + ' ' + (l.querySelector('.ring') ? 'o' : '|'.repeat((l.querySelector('.bars')?.getAttribute('d') || '').split('M').length - 1))).map((s) => s.trim()).join(', ')`)
	}
	color(p, "load")
	p.AwaitText("No load is shown: the load of links is not known (" + hostile + ")")
	if got := legend(); got != "unknown: 8 o, below 25 %: 0, 25 to 50 %: 0 |, 50 to 80 %: 0 ||, 80 % and more: 0 |||" {
		t.Errorf("without a load the legend is %q", got)
	}
	p.Look("load none")

	last := toHost(leafB, 1, 24)
	last.To, last.Host = hostile, "h5"
	is.set(nil, toHost(leafA, 1, 0), toHost(leafA, 2, 25), toHost(leafA, 3, 79), toHost(leafA, 4, -1), last, toHost(leafB, 2, 80),
		toSpine(leafA, 20, 10), toSpine(leafA, 21, 93), toSpine(leafB, 20, -1))
	color(p, "phase")
	p.AwaitText("in no inventory: 7")
	color(p, "load")
	p.AwaitText("Load of 7 of 9 links, in the busier direction. The oldest reading is of 7 s ago.")
	p.AwaitText("Links between switches: 1 below 25 %, 1 80 % and more, 1 unknown.")
	if got := legend(); got != "unknown: 3 o, below 25 %: 2, 25 to 50 %: 1 |, 50 to 80 %: 1 ||, 80 % and more: 1 |||" {
		t.Errorf("the legend is %q", got)
	}
	want := []string{
		"leaf1/21 to spine1/21: 93.0 % of 100 Gb/s: 0 b/s from the switch, 93 Gb/s to it, mean of 30 s, 7 s ago",
		"leaf2/2 to hca/1: 80.0 % of 100 Gb/s", "leaf1/3 to hca/1: 79.0 %", "leaf1/2 to hca/1: 25.0 %", "leaf2/1 to " + hostile + " (h5): 24.0 %", "leaf1/20 to spine1/20: 10.0 %",
	}
	got := webtest.Value[[]string](p, `[...document.querySelectorAll('.busiest li')].map((l) => l.textContent)`)
	for i := range want {
		if len(got) != len(want) || !strings.HasPrefix(got[i], want[i]) {
			t.Fatalf("the busiest links are\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
	for find, want := range map[string]string{
		"h1":     "; 0.0 % of 100 Gb/s: 0 b/s from the switch, 0 b/s to it",
		"h4":     "; load not known: the switch has no counters of 64 bits",
		"h8":     "; load not known: the service lists no such link",
		"leaf1":  "Its busiest link is leaf1/21 to spine1/21: 93.0 % of 100 Gb/s: 0 b/s from the switch, 93 Gb/s to it, mean of 30 s, 7 s ago. The load of 1 of its 6 links is not known.",
		"leaf2":  "Its busiest link is leaf2/2 to hca/1",
		"spine1": "Its busiest link is leaf1/21 to spine1/21",
	} {
		webtest.Value[bool](p, `(() => { document.querySelector('input[type=search]').value = ''; return true; })()`)
		p.Type(`input[type=search]`, find+"\r")
		p.Await(fmt.Sprintf(`document.querySelector('.chosen').textContent.includes(%q)`, want))
	}
	p.Look("load")

	missing := webtest.Value[[]string](p, `(async () => {
		const seen = new Set(), proto = CanvasRenderingContext2D.prototype;
		const {fillRect, stroke} = proto;
		proto.fillRect = function (x, y, w, h) { seen.add('sign ' + this.fillStyle + ' ' + w); return fillRect.call(this, x, y, w, h); };
		proto.stroke = function () { seen.add('line ' + this.strokeStyle + ' ' + (this.getLineDash().length ? 'dashed' : 'whole')); return stroke.call(this); };
		document.querySelector('form[aria-label=Map] select').dispatchEvent(new Event('change'));
		await new Promise((done) => setTimeout(done, 300));
		Object.assign(proto, {fillRect, stroke});
		return ['sign #d03b2f 32', 'line #d03b2f whole', 'line #8a94a3 dashed'].filter((s) => !seen.has(s));
	})()`)
	if len(missing) > 0 {
		t.Errorf("the map has no %v", missing)
	}
	is.set(nil, toHost(leafA, 1, 0))
	color(p, "load")
	p.AwaitText("No link carried anything.")
	is.set(nil, toHost(leafA, 1, -1))
	color(p, "load")
	p.AwaitText("No load is known yet.")

	// The service does not answer any more: what it said is unknown after a while.
	is.set(nil, toHost(leafA, 1, 90))
	color(p, "load")
	p.AwaitText("80 % and more: 1")
	is.mu.Lock()
	is.away = &refusal.Error{Code: "fabric_unseen", Status: refusal.Unavailable, Detail: "the fabric is away"}
	is.mu.Unlock()
	webtest.Value[bool](p, `(() => { const now = performance.now.bind(performance); performance.now = () => now() + 91000; return true; })()`)
	p.AwaitText("the fabric is away")
	p.AwaitText("No load is shown: the service did not answer lately.")
	p.AwaitText("unknown: 8")
	p.Quiet()
}

// TestMapOfOldLoad: what was answered is unknown once the service did not answer for a while, and is asked for again at its pace.
func TestMapOfOldLoad(t *testing.T) {
	t.Parallel()
	is := &busy{loads: []v1.FabricLoad{toHost(leafA, 1, 90), toSpine(leafA, 20, 90), toSpine(leafB, 20, 60), toSpine(leafB, 21, -1)}}
	_, server := served(t, func(o *api.Options) { o.Fabric = is }, "h1")
	p := webtest.Open(t, server.URL+"/ui/", "/v1/fabric/load")
	p.SignIn(server.Viewer)
	p.AwaitText("1 in inventory.")
	type seen struct {
		Of, Words, Node, Said string
		Marks                 []string
		Dashed                bool
		Trunks                string
	}
	program := `(async () => {
		const base = document.querySelector('script').src;
		const {load} = await import(base.replace('app.js', 'load.js'));
		const way = globalThis.way ||= load(new AbortController().signal);
		if (!globalThis.begun) { await way.ask(); globalThis.begun = true; }
		const h = {place: '0x0000000000001000/1'}, node = {guid: '0x0000000000001000'};
		const said = [way.said()].flat()[0].textContent;
		const Trunks = ['1', '2'].map((n) => way.trunk('0x0000000000003000', '0x000000000000' + n + '000')).map((l) => [l.color, l.width, l.dashed, l.always].join()).join(' ');
		return {Trunks, Of: way.of(h), Words: way.words(h), Node: way.wordsOf(node), Said: said, Marks: way.leaf(node).marks, Dashed: way.trunk(node.guid, '0x0000000000003000').dashed};
	})()`
	if got := webtest.Value[seen](p, program); got.Of != "80 % and more" || got.Dashed || len(got.Marks) != 1 || got.Marks[0] != "three bars" || !strings.HasPrefix(got.Said, "Load of 3 of 4 links") || got.Trunks != "#d03b2f,6,false,true #c99700,4,true,false" {
		t.Errorf("a new answer is shown as %+v", got)
	}
	webtest.Value[bool](p, `(() => { const now = performance.now.bind(performance); performance.now = () => now() + 91000; return true; })()`)
	if got := webtest.Value[seen](p, program); got.Of != "unknown" || !got.Dashed || len(got.Marks) != 1 || got.Marks[0] != "ring" ||
		!strings.HasPrefix(got.Words, "load not known") || got.Node != "No load of its links is known." || !strings.Contains(got.Said, "did not answer lately") {
		t.Errorf("an old answer is shown as %+v", got)
	}
	p.Quiet()
}

// TestMapOfLoadDrawn: from afar a leaf has the color and the marks of its busiest link alone, near it has them at its name; lines have
// colors and widths, dashes where a load is not known, and a full one is drawn among many.
func TestMapOfLoadDrawn(t *testing.T) {
	t.Parallel()
	_, server := served(t, nil, "h1")
	p := webtest.Open(t, server.URL+"/ui/")
	p.AwaitText("Sign in")
	type drawn struct {
		Far, Host, Near, Plain, Bars, Line, Beside, Gaps, Few, Many, Always string
	}
	got := webtest.Value[drawn](p, `(async () => {
		const map = await import(document.querySelector('script').src.replace('app.js', 'map.js'));
		const hosts = Array.from({length: 4}, (_, i) => ({name: 'h' + i, place: 'a/' + i}));
		const switches = [{guid: 'a', name: 'leaf1', hosts}, {guid: 's', name: 'spine', hosts: []}];
		const plan = map.place(switches, [['a', 's']]);
		const many = map.place(switches, Array.from({length: 201}, () => ['a', 's']));
		const canvas = document.createElement('canvas');
		[canvas.width, canvas.height] = [600, 600];
		const ctx = canvas.getContext('2d', {willReadFrequently: true});
		const colors = {back: '#fff', text: '#fff', line: '#00f', raised: '#ddd', bad: '#f00', path: '#00f'};
		const leafOf = () => ({color: '#ff0000', marks: ['three bars', 'ring']});
		const at = (x, y) => [...ctx.getImageData(Math.round(x), Math.round(y), 1, 1).data].slice(0, 3).join();
		const draw = (of, view, more) => map.draw(ctx, of, view, {width: 600, height: 600, colors, chosen: null, colorOf: () => '#008000', ...more});
		const out = {};
		const t = plan.of.get('a');
		const far = {scale: 0.3, x: 100, y: 100};
		draw(plan, far, {leafOf});
		out.Far = at((t.x + t.width - 4) * 0.3 + 100, (t.y + t.height / 2) * 0.3 + 100);
		draw(plan, far, {});
		out.Host = at((t.x + t.width - 4) * 0.3 + 100, (t.y + t.height / 2) * 0.3 + 100);
		const near = {scale: 3, x: 10 - 3 * t.x, y: 10 - 3 * t.y};
		const corner = [10 + 3 * (t.width - 6), 10 + 3 * (map.tile.head / 2)];
		draw(plan, near, {leafOf});
		out.Near = at(...corner);
		const strip = ctx.getImageData(10 + 3 * (t.width - 36), 10, 3 * 14, 3 * map.tile.head).data;
		let dark = 0;
		for (let i = 0; i < strip.length; i += 4) if (strip[i] < 90 && strip[i + 1] < 60) dark += 1;
		out.Bars = dark > 100 ? 'yes' : 'no ' + dark;
		draw(plan, near, {});
		out.Plain = at(...corner);
		const [a, s] = ['a', 's'].map((g) => plan.of.get(g));
		const view = {scale: 1, x: 100 - a.x, y: 200 - a.y};
		const mid = (k) => [view.x + a.x + a.width / 2, view.y + s.y + s.height + k]; // below the spine, above the leaf
		const column = () => Array.from({length: 20}, (_, k) => at(mid(k)[0], mid(k)[1]));
		const look = (more) => [{color: '#ff00ff', width: 6, dashed: false, always: false, ...more}];
		const spread = (list) => [...new Set(list)].sort().join(' ');
		draw(plan, view, {looks: look({})});
		out.Line = spread(column());
		out.Beside = at(mid(9)[0] + 2, mid(9)[1]);
		draw(plan, view, {looks: look({dashed: true})});
		out.Gaps = spread(column());
		draw(plan, view, {});
		out.Few = column().includes('255,0,255') ? 'looks' : 'plain';
		const all = many.trunks.map(() => look({})[0]);
		draw(many, view, {looks: all});
		out.Many = spread(column());
		all[7].always = true;
		draw(many, view, {looks: all});
		out.Always = spread(column());
		return out;
	})()`)
	want := drawn{
		Far: "255,0,0", Host: "0,128,0", Near: "255,0,0", Plain: "221,221,221", Bars: "yes", Line: "255,0,255", Beside: "255,0,255",
		Gaps: "255,0,255 255,255,255", Few: "plain", Many: "255,255,255", Always: "255,0,255",
	}
	if got != want {
		t.Errorf("drawn\n%+v, want\n%+v", got, want)
	}
	p.Quiet()
}
