package web_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"portcullis/api"
	"portcullis/api/refusal"
	v1 "portcullis/api/v1"
	"portcullis/api/web/webtest"
	"portcullis/fabricsm/ib"
)

// other is a fabric of a spine and two leaves that is not as it is declared.
type other struct {
	busy
	differ []v1.TopospecPort
}

func (o *other) Differing(context.Context, v1.PageQuery) (*v1.Page[v1.TopospecPort], error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return &v1.Page[v1.TopospecPort]{Items: append([]v1.TopospecPort{}, o.differ...)}, nil
}

// revisions answers what is in force as a test sets it.
type revisions struct {
	api.TopospecKeeper
	is  *other
	now *v1.TopospecPlaced
}

func (r *revisions) Status(context.Context) (*v1.Topospec, error) {
	r.is.mu.Lock()
	defer r.is.mu.Unlock()
	return &v1.Topospec{Source: v1.TopospecOfRevisions, InForce: r.now}, nil
}

// drifting answers drift as a test sets it.
type drifting struct {
	proven
	rows []v1.Drift
}

func (d *drifting) Drift(context.Context, v1.DriftQuery) (*v1.DriftList, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.err != nil {
		return nil, d.err
	}
	return &v1.DriftList{Items: append([]v1.Drift{}, d.rows...)}, nil
}

// TestMapOfDeclared: the map has a color and a shape for each kind of difference between what is declared and what was found, draws links that
// are missing, lists all of it, and shows nothing as declared that was not compared.
func TestMapOfDeclared(t *testing.T) {
	t.Parallel()
	is := &other{}
	force := &revisions{is: is}
	drift := &drifting{}
	drift.err = refusal.New(refusal.NotFound, v1.CodeNotExamined, "portcullis verify examines them now", "this instance has not examined all tenants")
	_, server := served(t, func(o *api.Options) { o.Fabric, o.Topospec, o.Isolation = is, force, drift }, "h1")
	p := webtest.Open(t, server.URL+"/ui/#/fabric?color=declared", "/v1/fabric/drift", "/v1/fabric/routes")
	p.SignIn(reader(t, server, "auditor", ""))
	legend := func() string {
		return webtest.Value[string](p, `[...document.querySelectorAll('.legend li')].map((l) => l.textContent.trim() + (l.querySelector('.cross') ? ' x' : '') + (l.querySelector('.ring') ? ' o' : '') +
			(l.querySelector('.bars')?.getAttribute('d').match(/M/g) || []).map(() => '|').join('')).join(', ')`)
	}
	p.AwaitText("No topology is declared")
	p.AwaitText("Differences of P_Key tables are not shown: this instance has not examined all tenants")
	if got := legend(); got != "not compared: 8|||, undeclared: 0 x, different: 0||, missing: 0 o, tables differ: 0|, as declared: 0" {
		t.Errorf("where nothing is declared the legend is %q", got)
	}
	p.Look("declared none")

	end := func(g ib.GUID, port string) string { return g.String() + "/" + port }
	port := func(leaf ib.GUID, n ib.PortNum, at, verdict, seen, expected string) v1.TopospecPort {
		return v1.TopospecPort{Place: ib.Place{Switch: leaf, Port: n}, At: at, Verdict: verdict, Seen: seen, Expected: expected, Since: time.Now(), Text: verdict}
	}
	foreign := port(leafA, 1, "leaf1/1", "unplanned", end(0x99, "1"), "")
	foreign.Host, foreign.Text, foreign.Where = "h1", hostile, "rack r1, unit 3"
	drift.set(func() {
		drift.err = nil
		drift.rows = []v1.Drift{
			{Kind: v1.DriftStray, In: v1.DriftInSwitch, Host: "h5", Place: ib.Place{Switch: leafB, Port: 1}, PKey: 0x8777, Found: "0x8777", Since: time.Now()},
			{Kind: v1.DriftUnread, In: v1.DriftInAdapter, Host: "h6", Place: ib.Place{Switch: leafB, Port: 2}, Since: time.Now()},
			{Kind: v1.DriftAbsent, In: v1.DriftInAdapter, Host: "h9", Since: time.Now()},
		}
	})
	is.mu.Lock()
	force.now = &v1.TopospecPlaced{Fabric: "hall-1", Revision: 7, Mode: "warn", Verified: 8, Expected: 11, Missing: 2, Differ: 4}
	is.differ = []v1.TopospecPort{
		foreign, port(leafA, 2, "leaf1/2", "swapped", end(0x98, "1"), end(0x97, "1")), port(leafA, 9, "leaf1/9", "missing", "", end(0x96, "1")),
		port(leafA, 30, "leaf1/30", "missing", "", end(leafB, "30")), port(leafB, 29, "leaf2/29", "wrong_port", end(spine, "4"), end(spine, "3")),
	}
	is.mu.Unlock()
	p.Show("#/overview", "Overview")
	p.Show("#/fabric?color=declared", "Fabric")
	p.AwaitText("Compared with revision 7 of hall-1, mode warn: 8 of 11 declared links are verified, 2 are missing, 4 ports differ.")
	if got := legend(); got != "as declared: 4, undeclared: 1 x, different: 1||, tables differ: 1|, not compared: 1|||, missing: 0 o" {
		t.Errorf("the legend is %q", got)
	}
	rows := webtest.Value[[]string](p, `[...document.querySelectorAll('main .list tbody tr')].map((r) => [...r.children].slice(0, 6).map((c) => c.textContent).join('; '))`)
	want := []string{
		"undeclared; leaf1/1; h1; " + end(0x99, "1") + "; nothing; unplanned: " + hostile + ", at rack r1, unit 3",
		"different; leaf1/2; ; " + end(0x98, "1") + "; " + end(0x97, "1") + "; swapped", "different; leaf2/29; ; " + end(spine, "4") + "; " + end(spine, "3") + "; wrong_port",
		"missing; leaf1/9; ; nothing; " + end(0x96, "1") + "; missing", "missing; leaf1/30; ; nothing; " + end(leafB, "30") + "; missing",
		"tables differ; ; h9; ; ; adapter: not found where it is declared", "tables differ; " + end(leafB, "1") + "; h5; 0x8777; 0x8777; switch: has a P_Key that no membership explains",
		"not compared; " + end(leafB, "2") + "; h6; ; ; adapter: was not read",
	}
	if got := strings.Join(rows, "\n"); got != strings.Join(want, "\n") {
		t.Errorf("the list is\n%s\nwant\n%s", got, strings.Join(want, "\n"))
	}
	p.Type("input[type=search]", "leaf1\r")
	p.AwaitText("At this switch: leaf1/1 undeclared, unplanned: " + hostile + ", at rack r1, unit 3; leaf1/2 different, swapped; leaf1/9 missing, missing; leaf1/30 missing, missing.")
	p.Type("input[type=search]", strings.Repeat("\b", 5)+"h3\r")
	p.AwaitText("Active; as declared")
	// The link between the leaves that is missing is drawn, and that to the spine which is another one.
	colors := webtest.Value[string](p, `(async () => {
		const at = (name) => import(document.querySelector('script').src.replace('app.js', name));
		const {declared} = await at('declared.js');
		const d = declared(new AbortController().signal);
		const before = JSON.stringify(d.trunk('a', 'b'));
		return before + d.of({place: 'a/1'}) + d.lines().length;
	})()`)
	if colors != `{"color":"#8a94a3","width":2,"dashed":true,"always":false}not compared0` {
		t.Errorf("before anything was asked for the map has %s", colors)
	}
	p.Click("form[aria-label=Map] button:last-child") // all of it
	p.Await(`(() => {
		const c = document.querySelector('canvas');
		const copy = new OffscreenCanvas(c.width, c.height).getContext('2d', {willReadFrequently: true});
		copy.drawImage(c, 0, 0);
		const seen = new Set();
		const data = copy.getImageData(0, 0, c.width, c.height).data;
		for (let i = 0; i < data.length; i += 4) seen.add([data[i], data[i + 1], data[i + 2]].join());
		return ['208,59,47', '201,151,0', '122,91,208', '47,128,208', '35,145,90'].every((color) => seen.has(color));
	})()`)
	p.Document("declared")

	// Where tables are not shown, as to the role viewer, nothing says that they are as declared.
	drift.set(func() { drift.err = refusal.New(refusal.NotFound, v1.CodeNotExamined, "", "not for you") })
	p.Show("#/overview", "Overview")
	p.Show("#/fabric?color=declared", "Fabric")
	p.AwaitText("Differences of P_Key tables are not shown: not for you")
	if got := legend(); got != "links as declared: 6, undeclared: 1 x, different: 1||, missing: 0 o, tables differ: 0|, not compared: 0|||" {
		t.Errorf("without tables the legend is %q", got)
	}
	p.Type("input[type=search]", "h3\r")
	p.AwaitText("Active; links as declared")
	p.Type("input[type=search]", strings.Repeat("\b", 2)+"spine1\r")
	p.AwaitText("At this switch no link differs.")
}
