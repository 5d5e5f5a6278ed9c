package alerts

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"portcullis/packaging/testenv"
)

// TestPromtoolAcceptsDashboards has promtool read each expression of the dashboards, as a recording rule.
func TestPromtoolAcceptsDashboards(t *testing.T) {
	t.Parallel()
	file, text := filepath.Join(t.TempDir(), "dashboards.yml"), RecordingRules()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), testenv.Program(t, "promtool"), "check", "rules", file).CombinedOutput()
	if want := fmt.Sprintf("SUCCESS: %d rules found", strings.Count(text, "record:")); err != nil || !strings.Contains(string(out), want) {
		t.Errorf("promtool: %v, want %q\n%s", err, want, out)
	}
}

var knownUnits = regexp.MustCompile(`^(short|s|bytes|Bps|percentunit|ops)$`)

// TestDashboardsHaveTheFormOfGrafana checks the committed files as Grafana reads them: ids and places are unique, each panel
// shows something of the data source that the reader chooses.
func TestDashboardsHaveTheFormOfGrafana(t *testing.T) {
	t.Parallel()
	for _, d := range Dashboards() {
		data, err := os.ReadFile(filepath.Join("../grafana", d.File+".json"))
		if err != nil {
			t.Fatal(err)
		}
		var g grafana
		dec := json.NewDecoder(bytes.NewReader(data))
		dec.DisallowUnknownFields()
		if err := dec.Decode(&g); err != nil {
			t.Fatalf("%s: %v", d.File, err)
		}
		if g.UID == "" || len(g.UID) > 40 || g.Title == "" || g.SchemaVersion < 36 || len(g.Templating.List) != 2 || g.Templating.List[0].Type != "datasource" {
			t.Errorf("%s: uid %q, title %q, schema %d, variables %+v", d.File, g.UID, g.Title, g.SchemaVersion, g.Templating.List)
		}
		ids, taken := map[int]bool{}, map[[2]int]string{}
		for _, p := range g.Panels {
			if ids[p.ID] || p.ID <= 0 || p.Title == "" || p.Description == "" || p.Datasource["uid"] != "${datasource}" || len(p.Targets) == 0 {
				t.Errorf("%s: panel %d %q is not complete, or its id is taken", d.File, p.ID, p.Title)
			}
			ids[p.ID] = true
			if unit, _ := p.FieldConfig.Defaults["unit"].(string); !knownUnits.MatchString(unit) || p.Type != "stat" && p.Type != "timeseries" {
				t.Errorf("%s: panel %q is a %s in %v", d.File, p.Title, p.Type, p.FieldConfig.Defaults["unit"])
			}
			for x := p.GridPos.X; x < p.GridPos.X+p.GridPos.W; x++ {
				for y := p.GridPos.Y; y < p.GridPos.Y+p.GridPos.H; y++ {
					if other := taken[[2]int{x, y}]; other != "" || x >= columns {
						t.Fatalf("%s: panel %q is over %q, or beyond the edge", d.File, p.Title, other)
					}
					taken[[2]int{x, y}] = p.Title
				}
			}
			refs := map[string]bool{}
			for _, q := range p.Targets {
				if refs[q.RefID] || q.Expr == "" || q.Datasource["uid"] != "${datasource}" || !strings.Contains(q.Expr, `fabric=~"$fabric"`) {
					t.Errorf("%s: panel %q: query %+v is not complete", d.File, p.Title, q)
				}
				refs[q.RefID] = true
			}
		}
	}
}

var inLegend = regexp.MustCompile(`\{\{(\w+)\}\}`)

// TestLegendsNameLabels: a legend names labels that the result of its expression has.
func TestLegendsNameLabels(t *testing.T) {
	t.Parallel()
	var names, exprs, legends []string
	for _, d := range Dashboards() {
		exprs = append(exprs, d.Expressions()...)
		for _, p := range d.Panels {
			for _, q := range p.Queries {
				names, legends = append(names, d.File+", "+p.Title), append(legends, q.Legend)
			}
		}
	}
	for i, u := range judged(t, exprs) {
		for _, m := range inLegend.FindAllStringSubmatch(legends[i], -1) {
			if !u.has(m[1]) {
				t.Errorf("%s: the legend names %s, which %s does not have", names[i], m[1], exprs[i])
			}
		}
	}
}
