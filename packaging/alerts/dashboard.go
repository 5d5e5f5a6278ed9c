package alerts

import (
	"encoding/json"
	"fmt"
	"strings"
)

// Query is one expression of a panel. $F stands for the matcher of the fabric that the reader has chosen.
type Query struct{ Expr, Legend string }

// Panel is one picture of a dashboard.
type Panel struct {
	Title, Help string
	Unit        string // of Grafana: short, s, bytes, Bps, percentunit, ops
	Now         bool   // the present value as a number; else a graph over time
	Queries     []Query
}

// Dashboard is a page of panels for Grafana.
type Dashboard struct {
	File, Title, Help string
	Panels            []Panel
}

// source is the data source that the reader chooses.
var source = map[string]string{"type": "prometheus", "uid": "${datasource}"}

// The dashboard model of Grafana, as far as it is used here.
type (
	grafana struct {
		UID           string            `json:"uid"`
		Title         string            `json:"title"`
		Description   string            `json:"description"`
		Tags          []string          `json:"tags"`
		SchemaVersion int               `json:"schemaVersion"`
		Editable      bool              `json:"editable"`
		Refresh       string            `json:"refresh"`
		Time          map[string]string `json:"time"`
		Templating    struct {
			List []variable `json:"list"`
		} `json:"templating"`
		Panels []panel `json:"panels"`
	}
	variable struct {
		Name       string            `json:"name"`
		Label      string            `json:"label"`
		Type       string            `json:"type"`
		Query      any               `json:"query"`
		Datasource map[string]string `json:"datasource,omitempty"`
		Refresh    int               `json:"refresh"`
		IncludeAll bool              `json:"includeAll"`
		AllValue   string            `json:"allValue,omitempty"`
		Multi      bool              `json:"multi"`
	}
	panel struct {
		ID          int               `json:"id"`
		Type        string            `json:"type"`
		Title       string            `json:"title"`
		Description string            `json:"description"`
		Datasource  map[string]string `json:"datasource"`
		GridPos     place             `json:"gridPos"`
		FieldConfig struct {
			Defaults  map[string]any `json:"defaults"`
			Overrides []any          `json:"overrides"`
		} `json:"fieldConfig"`
		Targets []target `json:"targets"`
	}
	place struct {
		H int `json:"h"`
		W int `json:"w"`
		X int `json:"x"`
		Y int `json:"y"`
	}
	target struct {
		RefID        string            `json:"refId"`
		Datasource   map[string]string `json:"datasource"`
		Expr         string            `json:"expr"`
		LegendFormat string            `json:"legendFormat"`
	}
)

// columns is the width of Grafana's grid.
const columns = 24

// JSON returns the dashboard as Grafana imports it.
func (d *Dashboard) JSON() string {
	g := grafana{
		UID: d.File, Title: "Portcullis: " + d.Title, Description: d.Help, Tags: []string{"portcullis"}, SchemaVersion: 39, Editable: true, Refresh: "30s",
		Time: map[string]string{"from": "now-6h", "to": "now"},
	}
	const fabrics = `label_values(up{job=~"portcullis.*"}, fabric)`
	g.Templating.List = []variable{
		{Name: "datasource", Label: "Data source", Type: "datasource", Query: "prometheus", Refresh: 1},
		{
			Name: "fabric", Label: "Fabric", Type: "query", Query: map[string]string{"query": fabrics, "refId": "fabric"}, Datasource: source,
			Refresh: 2, IncludeAll: true, AllValue: ".*", Multi: true,
		},
	}
	x, y, row := 0, 0, 0
	for i := range d.Panels {
		p := d.Panels[i].model(i + 1)
		if x+p.GridPos.W > columns {
			x, y, row = 0, y+row, 0
		}
		p.GridPos.X, p.GridPos.Y = x, y
		x, row = x+p.GridPos.W, max(row, p.GridPos.H)
		g.Panels = append(g.Panels, p)
	}
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(g); err != nil {
		panic(err) // strings and numbers alone
	}
	return b.String()
}

// model returns the panel as Grafana has it, without its place.
func (p *Panel) model(id int) panel {
	out := panel{ID: id, Type: "timeseries", Title: p.Title, Description: p.Help, Datasource: source, GridPos: place{H: 8, W: 12}}
	if p.Now {
		out.Type, out.GridPos = "stat", place{H: 4, W: 6}
	}
	out.FieldConfig.Defaults, out.FieldConfig.Overrides = map[string]any{"unit": p.Unit}, []any{}
	for i, q := range p.Queries {
		out.Targets = append(out.Targets, target{
			RefID: string(rune('A' + i)), Datasource: source, LegendFormat: q.Legend,
			Expr: strings.ReplaceAll(q.Expr, "$F", `fabric=~"$fabric"`),
		})
	}
	return out
}

// Expressions returns the expressions of a dashboard as Prometheus gets them, with values for Grafana's variables.
func (d *Dashboard) Expressions() (out []string) {
	values := strings.NewReplacer("$F", `fabric=~".*"`, "$__rate_interval", "5m")
	for _, p := range d.Panels {
		for _, q := range p.Queries {
			out = append(out, values.Replace(q.Expr))
		}
	}
	return out
}

// RecordingRules returns a file of rules with the expressions of all dashboards, for promtool to check.
func RecordingRules() string {
	var b strings.Builder
	b.WriteString("groups:\n  - name: dashboards\n    rules:\n")
	n := 0
	for _, d := range Dashboards() {
		for _, e := range d.Expressions() {
			n++
			fmt.Fprintf(&b, "      - {record: \"dashboard:expr:%d\", expr: %q}\n", n, e)
		}
	}
	return b.String()
}
