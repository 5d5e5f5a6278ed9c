package web_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"portcullis/api"
	"portcullis/api/refusal"
	v1 "portcullis/api/v1"
	"portcullis/api/web/webtest"
	"portcullis/fabricsm/ib"
)

// leaf is a fabric of one switch with six ports of hosts: h1 to h6, of which the inventory has none.
type leaf struct{ api.FabricReader }

func (leaf) Overview(context.Context) (*v1.Overview, error) { return &v1.Overview{Settled: true}, nil }

func (leaf) Nodes(context.Context, v1.NodeQuery) (*v1.Page[v1.FabricNode], error) {
	return &v1.Page[v1.FabricNode]{Items: []v1.FabricNode{{GUID: 0x1000, Type: "switch", Name: "leaf1"}}}, nil
}

func (leaf) Links(context.Context, v1.LinkQuery) (*v1.Page[v1.FabricLink], error) {
	return &v1.Page[v1.FabricLink]{Items: []v1.FabricLink{}}, nil
}

func (leaf) Ports(context.Context, v1.PortQuery) (*v1.Page[v1.FabricPort], error) {
	out := &v1.Page[v1.FabricPort]{}
	for i := range 6 {
		out.Items = append(out.Items, v1.FabricPort{
			Host: fmt.Sprintf("h%d", i+1), Num: 1, State: "Active", Place: ib.Place{Switch: 0x1000, Port: ib.PortNum(i + 1)},
		})
	}
	return out, nil
}

// proven answers what a test sets.
type proven struct {
	api.IsolationProver
	mu  sync.Mutex
	now v1.IsolationPorts
	err error
}

func (p *proven) Ports(context.Context, v1.IsolationPortQuery) (*v1.IsolationPorts, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.err != nil {
		return nil, p.err
	}
	out := p.now
	return &out, nil
}

func (p *proven) set(change func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change()
}

// TestMapOfProof: the map has a color and a shape for each verdict, says in words what is wrong, and never shows an old proof as a
// current one.
func TestMapOfProof(t *testing.T) {
	t.Parallel()
	row := func(port ib.PortNum, verdict string) v1.IsolationPortVerdict {
		return v1.IsolationPortVerdict{Host: fmt.Sprintf("h%d", port), Verdict: verdict, Place: ib.Place{Switch: 0x1000, Port: port}}
	}
	leak, dark, safe := row(2, v1.Leaks), row(3, v1.Unproven), row(1, v1.Isolated)
	leak.End, leak.Other = v1.EndSends, hostile
	dark.Cause, dark.Detail = v1.PortNotRead, "P_Key table of h3: the device did not answer"
	safe.Held = v1.HeldBySwitches
	missing := row(4, v1.Unproven)
	missing.Cause = v1.PortNotFound
	is := &proven{err: refusal.New(refusal.NotFound, v1.CodeNotExamined, "portcullis verify examines them now", "this instance has not examined all tenants")}
	_, server := served(t, func(o *api.Options) { o.Fabric, o.Isolation = leaf{}, is }, "h1")
	p := webtest.Open(t, server.URL+"/ui/#/fabric", "/v1/verify/ports", "/v1/fabric/routes")
	p.SignIn(reader(t, server, "auditor", ""))
	p.AwaitText("1 switches, 6 ports of hosts")
	color := func(name string) {
		webtest.Value[bool](p, fmt.Sprintf(`(() => {
			const s = [...document.querySelectorAll('form[aria-label=Map] select')][0];
			s.value = %q;
			return s.dispatchEvent(new Event('change'));
		})()`, name))
	}
	legend := func() string {
		return webtest.Value[string](p, `[...document.querySelectorAll('.legend li')].map((l) => l.textContent.trim() + (l.querySelector('.cross') ? ' x' : '') + (l.querySelector('.ring') ? ' o' : '')).join(', ')`)
	}
	color("proof")
	p.AwaitText("Nothing was examined yet: this instance has not examined all tenants")
	if got := legend(); got != "not examined: 6, isolated: 0, leak: 0 x, unproven: 0 o" {
		t.Errorf("without a proof the legend is %q", got)
	}
	p.Look("proof none")

	is.set(func() {
		is.err = nil
		is.now = v1.IsolationPorts{Begun: time.Now(), Age: 90, MaxAge: 10800, Current: true, Items: []v1.IsolationPortVerdict{safe, leak, dark, missing}}
	})
	color("phase")
	p.AwaitText("quarantined: 1")
	color("proof")
	p.AwaitText("It counts for 3 h.")
	if got := legend(); got != "unproven: 2 o, not examined: 2, isolated: 1, leak: 1 x" {
		t.Errorf("the legend is %q", got)
	}
	want := []string{
		"h2 at 0x0000000000001000/2: a packet passes from it, the other end is " + hostile,
		"h3 at 0x0000000000001000/3: not proven: P_Key table of h3: the device did not answer",
		"h4 at 0x0000000000001000/4: not proven: it was not found where it is declared",
	}
	if got := webtest.Value[string](p, `[...document.querySelectorAll('.unsafe li')].map((l) => l.textContent).join('\n')`); got != strings.Join(want, "\n") {
		t.Errorf("what is wrong is listed as\n%s\nwant\n%s", got, strings.Join(want, "\n"))
	}
	p.Type(`input[type=search]`, "h1\r")
	p.AwaitText("isolated, held by switches alone")
	p.AwaitText("1 isolated, 1 leak, 2 unproven, 2 not examined")
	p.Look("proof")

	is.set(func() {
		is.now.Current = false
		is.now.Items = []v1.IsolationPortVerdict{leak}
	})
	color("phase")
	color("proof")
	p.AwaitText("Not proven any more. Proof of")
	p.Look("proof old")
	is.set(func() { is.now.Current, is.now.Items = true, []v1.IsolationPortVerdict{safe} })
	color("proof")
	p.AwaitText("Each of the 1 ports is isolated.")
	p.Quiet()
}

// TestMapOfProofDenied: a reader whose role may not see the proof reads which roles may, and the rest of the map stays.
func TestMapOfProofDenied(t *testing.T) {
	t.Parallel()
	_, server := served(t, func(o *api.Options) { o.Fabric, o.Isolation = leaf{}, &proven{} }, "h1")
	p := webtest.Open(t, server.URL+"/ui/#/fabric", "/v1/verify/ports")
	p.SignIn(server.Viewer)
	p.AwaitText("1 switches, 6 ports of hosts")
	webtest.Value[bool](p, `(() => { const s = document.querySelector('form[aria-label=Map] select'); s.value = 'proof'; return s.dispatchEvent(new Event('change')); })()`)
	p.AwaitText("No proof is shown: ")
	p.AwaitText("auditor")
	p.AwaitText("not examined: 6")
	p.Quiet()
}

// TestMarksOfTheMap: a mark is in the cell of its host from near, and in the tile of its leaf from afar. A map without marks has none.
func TestMarksOfTheMap(t *testing.T) {
	t.Parallel()
	_, server := served(t, nil, "h1")
	p := webtest.Open(t, server.URL+"/ui/")
	p.AwaitText("Sign in")
	type drawn struct{ Near, Far, Plain, None, Ring string }
	got := webtest.Value[drawn](p, `(async () => {
		const map = await import(document.querySelector('script').src.replace('app.js', 'map.js'));
		const hosts = Array.from({length: 18}, (_, i) => ({name: 'h' + i, place: 'a/' + i, kind: ['', 'cross', 'ring'][i] || ''}));
		const plan = map.place([{guid: 'a', name: 'leaf1', hosts}], []);
		const canvas = document.createElement('canvas');
		[canvas.width, canvas.height] = [600, 400];
		const ctx = canvas.getContext('2d', {willReadFrequently: true});
		const colors = {back: '#fff', text: '#fff', line: '#fff', raised: '#ddd', bad: '#f00', path: '#00f'};
		const has = (view, markOf, {x, y, size}, wanted) => {
			map.draw(ctx, plan, view, {width: 600, height: 400, colors, chosen: null, colorOf: () => '#008000', markOf});
			const d = ctx.getImageData(Math.round(x * view.scale + view.x), Math.round(y * view.scale + view.y), Math.ceil(size * view.scale), Math.ceil(size * view.scale)).data;
			for (let i = 0; i < d.length; i += 4) if (wanted(d[i], d[i + 1], d[i + 2])) return 'yes';
			return 'no';
		};
		const white = (r, g, b) => r > 200 && g > 200 && b > 200;
		const black = (r, g, b) => r < 40 && g < 60 && b < 40;
		const of = (h) => h.kind;
		const t = plan.tiles[0];
		const near = {scale: 4, x: 0, y: 0};
		const far = {scale: 0.3, x: 0, y: 0};
		const middle = {x: t.x + t.height / 2, y: t.y + t.height / 2, size: 1}; // of the first mark
		return {
			Near: has(near, of, map.cell(t, 1), white), Ring: has(near, of, map.cell(t, 2), black), None: has(near, undefined, map.cell(t, 1), white),
			Far: has(far, of, middle, (r) => r > 90), Plain: has(far, undefined, middle, (r) => r > 90),
		};
	})()`)
	if got != (drawn{Near: "yes", Far: "yes", Plain: "no", None: "no", Ring: "yes"}) {
		t.Errorf("marks: %+v", got)
	}
	p.Quiet()
}
