package config

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const (
	syslogOfTests = "{name: log, to: 'tls://log.test:6514'}"
	alertsOfTests = "{name: alerts, url: 'https://am.test:9093'}"
)

// TestExits: each mistake is reported with its key.
func TestExits(t *testing.T) {
	t.Parallel()
	with := func(in, more string) string { return strings.Replace(in, "}", ", "+more+"}", 1) }
	labels := ""
	for n := range 17 {
		labels += fmt.Sprintf("l%d: x, ", n)
	}
	for _, tt := range []struct{ in, want string }{
		{"syslog: [" + syslogOfTests + "], alertmanager: [" + alertsOfTests + "]", ""},
		{"syslog: [" + with(syslogOfTests, "ca: a, cert: b, key: c, facility: local3, enterprise: 4294967295, types: [lock.changed], severity: warning") + "]", ""},
		{"syslog: [{name: a, to: 'unix:/dev/log'}, {name: b, to: 'tcp://log.test:514'}]", ""},
		{"alertmanager: [" + with(alertsOfTests, "bearer: 'credential:am', labels: {fabric: hall 2}, types: [drift.found]") + "]", ""},
		{"syslog: [{}]", "exits.syslog.0.name: "},
		{"syslog: [{name: a}]", "exits.syslog.0.to: "},
		{"syslog: [{name: a, to: 'udp://h:514'}]", "exits.syslog.0.to: over UDP it does not show that a message was lost"},
		{"syslog: [{name: a, to: 'tls://u:MfKQ9@h:6514'}]", "exits.syslog.0.to: want tls://HOST:PORT and nothing more"},
		{"syslog: [{name: a, to: 'tls://h:6514#x'}]", "exits.syslog.0.to: want tls://HOST:PORT and nothing more"},
		{"syslog: [{name: a, to: 'tcp://h:514', ca: a}]", "exits.syslog.0: ca, cert and key are of connections by TLS"},
		{"syslog: [" + with(syslogOfTests, "cert: a") + "]", "exits.syslog.0.cert: "},
		{"syslog: [" + with(syslogOfTests, "facility: kern") + "]", "exits.syslog.0.facility: "},
		{"syslog: [" + with(syslogOfTests, "enterprise: 4294967296") + "]", "exits.syslog.0.enterprise: "},
		{"syslog: [" + with(syslogOfTests, "types: [lock.opened]") + "]", "exits.syslog.0.types: "},
		{"syslog: [" + with(syslogOfTests, "severity: high") + "]", "exits.syslog.0.severity: "},
		{"syslog: [" + with(syslogOfTests, "secret: x") + "]", "secret"},
		{"alertmanager: [{name: a, url: 'http://am.test'}]", "exits.alertmanager.0.url: over http"},
		{"alertmanager: [" + with(alertsOfTests, "key: a") + "]", "exits.alertmanager.0.cert: "},
		{"alertmanager: [" + with(alertsOfTests, "bearer: 'credential:a/b'") + "]", "exits.alertmanager.0.bearer: "},
		{"alertmanager: [" + with(alertsOfTests, "labels: {a-b: x}") + "]", "exits.alertmanager.0.labels: \"a-b\""},
		{"alertmanager: [" + with(alertsOfTests, "labels: {severity: x}") + "]", "exits.alertmanager.0.labels: severity is a label that the service sets"},
		{"alertmanager: [" + with(alertsOfTests, "labels: {a: ''}") + "]", "exits.alertmanager.0.labels: a: want"},
		{"alertmanager: [" + with(alertsOfTests, "labels: {"+labels+"}") + "]", "exits.alertmanager.0.labels: 17 of them"},
		{"syslog: [" + strings.Replace(syslogOfTests, "log", "alerts", 1) + "], alertmanager: [" + alertsOfTests + "]", "exits.alertmanager.0.name: alerts is named twice"},
		{"syslog: [" + strings.Repeat(syslogOfTests+",", 17) + "]", "exits: 17 of them"},
	} {
		_, err := Parse("c.yaml", []byte("exits: {"+tt.in+"}\n"))
		if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: error %v, want %q", tt.in, err, tt.want)
		}
		if err != nil && strings.Contains(err.Error(), "MfKQ9") {
			t.Errorf("%s: the error has a password: %v", tt.in, err)
		}
	}
	both := "webhooks: {to: [" + strings.Replace(webhookOfTests, "siem", "log", 1) + "]}\nexits: {syslog: [" + syslogOfTests + "]}\n"
	if _, err := Parse("c.yaml", []byte(both)); err == nil || !strings.Contains(err.Error(), "exits.syslog.0.name: log is named twice, here or in webhooks.to") {
		t.Errorf("a webhook of the same name: %v", err)
	}
}

// TestExitFiles: files are read by --check, too, and no error has a token in it.
func TestExitFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, data := range map[string]string{"good": "MfKQ9r8GKYqrTwjU.x-y_z~+/==\n", "blank": "MfKQ9r8 x", "two": "MfKQ9r8\nx"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(data), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "open"), []byte("MfKQ9r8"), 0o644); err != nil { //nolint:gosec // this is the mistake
		t.Fatal(err)
	}
	for in, want := range map[string]string{
		"bearer: good":           "",
		"bearer: blank":          "exits.alertmanager.0.bearer: blank: want a token",
		"bearer: two":            "exits.alertmanager.0.bearer: ",
		"bearer: open":           "exits.alertmanager.0.bearer: ",
		"bearer: none":           "exits.alertmanager.0.bearer: ",
		"ca: good":               "exits.alertmanager.0.ca: ",
		"cert: none, key: good":  "exits.alertmanager.0.cert: ",
		"labels: {fabric: hall}": "",
	} {
		c, err := Parse(filepath.Join(dir, "c.yaml"), []byte("exits: {syslog: ["+syslogOfTests+"], alertmanager: ["+strings.Replace(alertsOfTests, "}", ", severity: critical, "+in+"}", 1)+"]}\n"))
		if err != nil {
			t.Fatal(err)
		}
		list, err := loadExits(c, time.Now())
		if (err == nil) != (want == "") || err != nil && (!strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "MfKQ9r8")) {
			t.Errorf("%s: error %v, want %q", in, err, want)
		}
		if err != nil {
			continue
		}
		if len(list) != 2 || list[0].Name != "log" || list[0].Kind != "syslog" || list[0].URL != "tls://log.test:6514" || list[1].Kind != "alertmanager" || len(list[1].Filter.Also) != 5 {
			t.Errorf("%s: %+v", in, list)
		}
		if text := fmt.Sprintf("%+v", list[1].Sender); strings.Contains(text, "MfKQ9r8") {
			t.Errorf("%s has the token", text)
		}
	}
	c, err := Parse(filepath.Join(dir, "c.yaml"), []byte("exits: {syslog: ["+strings.Replace(syslogOfTests, "}", ", ca: good}", 1)+"]}\n"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := loadExits(c, time.Now()); err == nil || !strings.Contains(err.Error(), "exits.syslog.0.ca: ") {
		t.Errorf("the authority of a system log: %v", err)
	}
}
