package alerts

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// prefix begins the name of each alert, so that those of other products differ.
const prefix = "Portcullis"

// manual is where the package puts the page of alerts.
const manual = "file:///usr/share/doc/portcullisd/operate/alerts.md"

// made says in a file how it is made.
const made = "# Made of the Go code in packaging/alerts, by: go test ./packaging/alerts -update\n"

// annotations returns what an alert says, by name, with a summary.
func (r *Rule) annotations(summary string) map[string]string {
	return map[string]string{
		"summary": summary, "description": r.Means, "action": strings.Join(r.Do, " "),
		"runbook_url": manual + "#" + strings.ToLower(prefix+r.Name),
	}
}

// mapping writes a mapping of YAML, in the order of its keys. JSON strings, which %q writes of ASCII, are strings of YAML.
func mapping(b *strings.Builder, indent string, m map[string]string) {
	for _, k := range slices.Sorted(maps.Keys(m)) {
		fmt.Fprintf(b, "%s%s: %q\n", indent, k, m[k])
	}
}

// RulesFile returns the file of rules for Prometheus.
func RulesFile() string { return rulesOf(Groups()) }

func rulesOf(groups []Group) string {
	var b strings.Builder
	b.WriteString("# Alerts of Portcullis, for rule_files of Prometheus. Each has a section in alerts.md of the manual.\n" + made + "groups:\n")
	for _, g := range groups {
		fmt.Fprintf(&b, "  - name: %s\n    rules:\n", g.Name)
		for i := range g.Rules {
			r := &g.Rules[i]
			fmt.Fprintf(&b, "      - alert: %s\n        expr: %q\n", prefix+r.Name, r.Expr)
			if r.For != "" {
				fmt.Fprintf(&b, "        for: %s\n", r.For)
			}
			fmt.Fprintf(&b, "        labels:\n          severity: %s\n        annotations:\n", r.Severity)
			mapping(&b, "          ", r.annotations(r.Summary))
		}
	}
	return b.String()
}

// Times of tests: a rule that waits for an hour is evaluated after two.
func (r *Rule) after() string {
	if r.For == "1h" {
		return "2h"
	}
	return "1h"
}

// usual is the instance of series that name none.
const usual = "a:7443"

func (s *Series) selector() string {
	labels := fmt.Sprintf(`instance="%s",job="portcullis"`, cmp.Or(s.From, usual))
	if s.Labels != "" {
		labels += "," + s.Labels
	}
	return s.Name + "{" + labels + "}"
}

// Tests returns tests of the alert, for promtool: it fires with the values that it is about and says what it should, does not
// fire before its time, and does not fire with healthy values. rules is the path of a file of rules.
func (r *Rule) Tests(rules string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "rule_files: [%q]\nevaluation_interval: 1m\ntests:\n", rules)
	r.test(&b, "fires", r.Fires)
	r.expect(&b, r.after(), true)
	if r.For != "" {
		r.expect(&b, "0m", false)
	}
	r.test(&b, "is silent", r.Quiet)
	for _, at := range []string{"5m", r.after()} {
		r.expect(&b, at, false)
	}
	return b.String()
}

// test begins a test with series.
func (r *Rule) test(b *strings.Builder, what string, series []Series) {
	fmt.Fprintf(b, "  - name: %s %s\n    interval: 1m\n    input_series:\n", prefix+r.Name, what)
	for i := range series {
		fmt.Fprintf(b, "      - {series: %q, values: %q}\n", series[i].selector(), series[i].Values)
	}
	b.WriteString("    alert_rule_test:\n")
}

// expect adds whether the alert fires at a time.
func (r *Rule) expect(b *strings.Builder, at string, fires bool) {
	fmt.Fprintf(b, "      - eval_time: %s\n        alertname: %s\n", at, prefix+r.Name)
	if !fires {
		b.WriteString("        exp_alerts: []\n")
		return
	}
	labels := map[string]string{"severity": string(r.Severity)}
	maps.Copy(labels, r.Labels)
	if r.Scrape {
		labels["instance"], labels["job"] = usual, "portcullis"
	}
	b.WriteString("        exp_alerts:\n          - exp_labels:\n")
	mapping(b, "              ", labels)
	b.WriteString("            exp_annotations:\n")
	mapping(b, "              ", r.annotations(r.Says))
}

// Page returns the page of the manual.
func Page() string {
	var b strings.Builder
	b.WriteString(pageHead)
	for _, g := range Groups() {
		fmt.Fprintf(&b, "\n## %s\n", g.Title)
		for i := range g.Rules {
			g.Rules[i].section(&b)
		}
	}
	return b.String()
}

// section writes what the page says of an alert.
func (r *Rule) section(b *strings.Builder) {
	after := ""
	if r.For != "" {
		after = ", after " + r.For
	}
	fmt.Fprintf(b, "\n### %s\n\n%s%s: `%s`\n\n%s\n\n", prefix+r.Name, r.Severity, after, strings.ReplaceAll(r.Expr, `\\`, `\`), r.Means)
	for n, do := range r.Do {
		fmt.Fprintf(b, "%d. %s\n", n+1, do)
	}
	if r.More != "" {
		fmt.Fprintf(b, "\nMore: %s\n", r.More)
	}
}

const pageHead = `# Alerts

The package ` + "`portcullisd`" + ` has rules for Prometheus in ` + "`/usr/share/portcullis/prometheus/`" + `: ` + "`portcullis.rules.yml`" + `, and
` + "`scrape.yml`" + `, an example of the job. This page has a section for each alert. Rules and page are made of the code, by
` + "`go test ./packaging/alerts -update`" + `; the rules name [metrics](metrics.md) that the service exports, and no others.

## Set them up

1. Make a token for Prometheus: ` + "`portcullisd token --name prometheus --role viewer`" + `. Keep it in a file that only Prometheus can read.
2. Add the job of ` + "`scrape.yml`" + ` to ` + "`prometheus.yml`" + `, with all instances as targets. Its name begins with ` + "`portcullis`" + `, since alerts about
   instances that are down look for that. With several fabrics in one Prometheus, add to the targets of each the label ` + "`fabric`" + `:
   alerts about a whole fabric group by it. The job ` + "`infiniband`" + ` has the [counters of ports](metrics.md#counters-of-ports), for alerts
   about ports: leave it out, and they never fire.
3. Name the rules in ` + "`prometheus.yml`" + `: ` + "`rule_files: [/usr/share/portcullis/prometheus/portcullis.rules.yml]`" + `.
4. Route by the label ` + "`severity`" + `. ` + "`critical`" + `: isolation, admission or the management of the fabric is at stake now.
   ` + "`warning`" + `: it can wait for the next working day.

Bounds suit most sites. To change one, copy the file: an upgrade of the package replaces it. The annotation ` + "`runbook_url`" + ` leads to
the section below in the manual that the package installs; where the manual is on a web server, replace the beginning of that
address in the copy.

Prometheus 2.42 or later is needed. ` + "`promtool test rules`" + ` proves in the tests of the product that each alert fires with the values that
it is about, and not with healthy ones.
`
