package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	v1 "portcullis/api/v1"
	"portcullis/packaging/alerts"
	"portcullis/packaging/testenv"
)

// scraper is a Prometheus that scrapes a service.
type scraper struct{ address string }

var waits = regexp.MustCompile(`(?m)^        for: .*\n`)

// startPrometheus starts the real Prometheus, which scrapes a service each second by its token and certificate, with our rules; they do
// not wait, since a test would have to.
func startPrometheus(t *testing.T, dir, service string) *scraper {
	t.Helper()
	program := testenv.Program(t, "prometheus")
	here, p := t.TempDir(), &scraper{testenv.Address(t)}
	rules, err := os.ReadFile("../../packaging/prometheus/portcullis.rules.yml")
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(here, "rules.yml"), waits.ReplaceAllString(string(rules), ""))
	write(t, filepath.Join(here, "prometheus.yml"), fmt.Sprintf(`global: {scrape_interval: 1s, scrape_timeout: 1s, evaluation_interval: 1s}
rule_files: [rules.yml]
scrape_configs:
  - job_name: portcullis
    scheme: https
    authorization: {credentials_file: %q}
    tls_config: {ca_file: %q}
    static_configs: [{targets: [%q], labels: {fabric: lab}}]
`, filepath.Join(dir, "operator.token"), filepath.Join(dir, "tls", "ca.pem"), service))
	cmd := exec.Command(program, "--config.file", filepath.Join(here, "prometheus.yml"), "--storage.tsdb.path", filepath.Join(here, "data"),
		"--web.listen-address", p.address, "--log.level", "warn")
	said := &lines{}
	cmd.Stdout, cmd.Stderr = said, said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("output of Prometheus:\n%s", said)
		}
	})
	return p
}

// get asks the API of Prometheus.
func (p *scraper) get(t *testing.T, path string, into any) error {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+p.address+path, nil)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", resp.Status, body)
	}
	if err != nil {
		return err
	}
	return json.Unmarshal(body, into)
}

// firing returns the alerts that fire, sorted.
func (p *scraper) firing(t *testing.T) ([]string, error) {
	t.Helper()
	var got struct {
		Data struct {
			Alerts []struct {
				State  string
				Labels map[string]string
			}
		}
	}
	err := p.get(t, "/api/v1/alerts", &got)
	var out []string
	for _, a := range got.Data.Alerts {
		if a.State == "firing" {
			name := a.Labels["alertname"]
			if part := a.Labels["part"]; part != "" {
				name += " " + part
			}
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return slices.Compact(out), err
}

// series returns how many series a selector selects.
func (p *scraper) series(t *testing.T, selector string) int {
	t.Helper()
	var got struct {
		Data struct{ Result []any }
	}
	if err := p.get(t, "/api/v1/query?query="+url.QueryEscape(selector), &got); err != nil {
		t.Fatal(err)
	}
	return len(got.Data.Result)
}

// awaits waits until Prometheus says that exactly these alerts fire.
func (p *scraper) awaits(t *testing.T, want ...string) {
	t.Helper()
	eventually(t, fmt.Sprintf("the alerts %q", want), func() (bool, string) {
		got, err := p.firing(t)
		return err == nil && slices.Equal(got, want), fmt.Sprint(got, err)
	})
}

var selectors = regexp.MustCompile(`(portcullis_\w+)\{[^}]*\}`)

// TestAlertsFireInPrometheus: the real Prometheus scrapes a service. Alerts fire about what is wrong in it and no others, and
// cease when that is repaired; each selector of a rule finds the series that it is about.
func TestAlertsFireInPrometheus(t *testing.T) {
	t.Parallel()
	dir, address := manageable(t)
	d := start(t, dir)
	c := operator(t, dir, address)
	if _, err := c.VerifyIsolation(t.Context(), v1.IsolationQuery{}); err != nil {
		t.Fatal(err)
	}
	if _, status := fetchRoute(t, dir, address, "/readyz"); status != http.StatusServiceUnavailable { // so that one request has failed
		t.Errorf("/readyz answers %d", status)
	}
	p := startPrometheus(t, dir, address)

	// No CA of TPM vendors is named, so that no host is admitted; there is no backup; and ibsim keeps neither M_Keys nor some
	// fields of PortInfo.
	wrong := []string{"PortcullisBackupOld", "PortcullisFabricFault", "PortcullisKeysNotHeld", "PortcullisNotReady admission"}
	p.awaits(t, wrong...)
	if _, err := c.Backups().Create(t.Context()); err != nil {
		t.Fatal(err)
	}
	p.awaits(t, wrong[1:]...)

	for _, g := range alerts.Groups() {
		for i := range g.Rules {
			for _, m := range selectors.FindAllStringSubmatch(g.Rules[i].Expr, -1) {
				if p.series(t, m[1]) > 0 && p.series(t, m[0]) == 0 {
					t.Errorf("%s: %s has series, and none with these labels", g.Rules[i].Name, m[0])
				}
			}
		}
	}
	d.stop()
	p.awaits(t, "PortcullisInstanceDown")
}
