package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestExits: an event reaches a system log and an Alertmanager; a restart loses none that happens meanwhile; both are listed and tested as webhooks are.
func TestExits(t *testing.T) {
	t.Parallel()
	var log, alerts collector
	am := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if r.Method != http.MethodPost || r.URL.Path != "/api/v2/alerts" || r.Header.Get("Authorization") != "Bearer am-token" {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		alerts.add(string(body) + "\n")
	}))
	t.Cleanup(am.Close)
	dir, address := install(t, "--fabric-port", nobody())
	write(t, filepath.Join(dir, "am.token"), "am-token\n")
	edit(t, dir, map[string]string{
		"  syslog: []":       fmt.Sprintf("  syslog:\n  - {name: log, to: \"unix:%s\"}\n", log.syslogd(t)),
		"  alertmanager: []": fmt.Sprintf("  alertmanager:\n  - {name: alerts, url: %q, bearer: am.token, labels: {fabric: hall-2}}\n", am.URL),
	})
	d := start(t, dir)
	c, ctx := operator(t, dir, address), t.Context()
	eventually(t, "positions", func() (bool, string) {
		list, err := c.Webhooks().List(ctx)
		return err == nil && len(list.Items) == 2 && list.Items[0].Position != "" && list.Items[1].Position != "" && list.Items[0].Kind == "syslog" && list.Items[1].Kind == "alertmanager", fmt.Sprintf("%+v, %v", list, err)
	})
	has := func(what string, in *collector, parts ...string) {
		t.Helper()
		eventually(t, what, func() (bool, string) {
			text := in.all()
			for line := range strings.Lines(text) {
				found := true
				for _, p := range parts {
					found = found && strings.Contains(line, p)
				}
				if found {
					return true, text
				}
			}
			return false, text
		})
	}
	for _, name := range []string{"log", "alerts"} {
		if got, err := c.Webhooks().Test(ctx, name); err != nil || got.Error != "" {
			t.Errorf("test of %s: %+v, %v", name, got, err)
		}
	}
	has("a test in the log", &log, "<110>", `event="webhook.test"`)
	has("a test alert", &alerts, `"alertname":"webhook.test"`)

	tokenEnds(t, dir, "short", time.Hour)
	d.hup()
	has("an event in the log", &log, "<108>", `event="token.ends"`, `cause="soon"`, "token.ends (soon) of the tokens")
	has("an alert", &alerts, `"alertname":"token.ends","cause":"soon","fabric":"hall-2","severity":"warning"`)
	d.stop()
	tokenEnds(t, dir, "over", -time.Hour)
	start(t, dir)
	has("an event of the second run in the log", &log, `event="token.ends"`, `cause="ended"`)
	has("an alert of the second run", &alerts, `"alertname":"token.ends","cause":"ended"`)
	text := fetch(t, dir, address, "/metrics")
	for _, want := range []string{
		`portcullis_webhook_failing_seconds{kind="syslog",webhook="log"} 0`, `portcullis_webhook_failing_seconds{kind="alertmanager",webhook="alerts"} 0`,
		`portcullis_webhook_messages_total{result="delivered",webhook="log"}`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("metrics lack %s", want)
		}
	}
	if strings.Contains(d.lines.String()+text, "am-token") {
		t.Error("the token is shown")
	}
}
