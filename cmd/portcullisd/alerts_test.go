package main

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"filippo.io/age"
	"github.com/prometheus/client_golang/prometheus"

	"portcullis/api/fabric/query"
	v1 "portcullis/api/v1"
	"portcullis/cmd/portcullisd/metrics"
	"portcullis/fabricsm/transport/ibsim/ibsimtest"
	"portcullis/packaging/alerts"
)

var (
	ofType     = regexp.MustCompile(`(?m)^# TYPE (portcullis_\w+) (\w+)$`)
	ofSeries   = regexp.MustCompile(`(?m)^(portcullis_\w+?)(?:\{(.*)\})? \S+$`)
	labelName  = regexp.MustCompile(`(\w+)="`)
	described  = regexp.MustCompile(`fqName: "(\w+)", .*variableLabels: \{([^}]*)\}`)
	leftOutNow = []prometheus.Collector{ // have no series while nothing is wrong, or where the part is not configured
		query.New(query.Options{}), metrics.NewWebhooks(nil), metrics.NewResults(nil), metrics.NewIsolation(nil, nil),
	}
)

// descriptions returns the metrics that collectors may have, with sorted labels.
func descriptions() map[string][]string {
	ch := make(chan *prometheus.Desc)
	go func() {
		defer close(ch)
		for _, c := range slices.Concat(leftOutNow, metrics.NewLeadership(nil)) {
			c.Describe(ch)
		}
	}()
	out := map[string][]string{}
	for d := range ch {
		m := described.FindStringSubmatch(d.String())
		labels := strings.FieldsFunc(m[2], func(r rune) bool { return r == ',' || r == ' ' })
		slices.Sort(labels)
		out[m[1]] = labels
	}
	return out
}

// served returns the type and the sorted labels of each metric that a text has series of.
func served(text string) (types map[string]string, labels map[string][]string) {
	types, labels = map[string]string{}, map[string][]string{}
	for _, m := range ofType.FindAllStringSubmatch(text, -1) {
		types[m[1]] = m[2]
	}
	for _, m := range ofSeries.FindAllStringSubmatch(text, -1) {
		var names []string
		for _, l := range labelName.FindAllStringSubmatch(m[2], -1) {
			names = append(names, l[1])
		}
		slices.Sort(names)
		name := strings.TrimSuffix(m[1], "_bucket")
		if types[name] == "histogram" {
			names = slices.DeleteFunc(names, func(l string) bool { return l == "le" })
		}
		labels[name] = names
	}
	return types, labels
}

// manageable installs a service that manages a fabric, keeps backups and has an anchor, so that it exports what it can.
func manageable(t *testing.T) (dir, address string) {
	t.Helper()
	lab := ibsimtest.Start(t, []byte(oneSwitch))
	dir, address = install(t, "--fabric-port", "ibsim:"+lab.Socket()+"/sm")
	id, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	edit(t, dir, map[string]string{
		"  recipients: []":  "  recipients: [" + id.Recipient().String() + "]",
		"  directory: \"\"": "  directory: " + t.TempDir(),
		"  anchors: []":     fmt.Sprintf("  anchors: [{file: %s}]", filepath.Join(t.TempDir(), "anchors")),
	})
	return dir, address
}

// TestRulesNameWhatIsExported compares the metrics that alert rules may use with those that a service serves.
func TestRulesNameWhatIsExported(t *testing.T) {
	t.Parallel()
	dir, address := manageable(t)
	start(t, dir)
	c := operator(t, dir, address)
	eventually(t, "a settled fabric", func() (bool, string) {
		s, err := c.SM().Get(t.Context())
		return err == nil && s.Settled, fmt.Sprint(s, err)
	})
	if _, err := c.VerifyIsolation(t.Context(), v1.IsolationQuery{}); err != nil {
		t.Fatal(err)
	}
	types, labels := served(fetch(t, dir, address, "/metrics"))
	all := descriptions()
	for _, m := range alerts.Exported() {
		got, serves := labels[m.Name]
		switch may, known := all[m.Name]; {
		case serves && (types[m.Name] != m.Type || !slices.Equal(got, m.Labels)):
			t.Errorf("%s is a %s with labels %q, and rules take it for a %s with %q", m.Name, types[m.Name], got, m.Type, m.Labels)
		case serves:
		case !known:
			t.Errorf("%s is not served: rules that use it never fire", m.Name)
		case !slices.Equal(may, m.Labels):
			t.Errorf("%s has labels %q, and rules want %q", m.Name, may, m.Labels)
		}
		if !serves {
			t.Logf("%s has no series here", m.Name)
		}
	}
}
