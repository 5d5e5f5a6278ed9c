package config

import (
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"portcullis/api/events"
	"portcullis/api/events/exits"
	"portcullis/api/syslog"
	"portcullis/api/webhook/delivery"
	"portcullis/fabricsm/ib"
)

// Exits says which receivers beside webhooks have events.
type Exits struct {
	Syslog       []SyslogExit       `yaml:"syslog"`
	Alertmanager []AlertmanagerExit `yaml:"alertmanager"`
}

// SyslogExit is a system log.
type SyslogExit struct {
	Name       string   `yaml:"name"`
	To         string   `yaml:"to"`
	CA         string   `yaml:"ca"`
	Cert       string   `yaml:"cert"`
	Key        string   `yaml:"key"`
	Facility   string   `yaml:"facility"`
	Enterprise int64    `yaml:"enterprise"`
	Types      []string `yaml:"types"`
	Severity   string   `yaml:"severity"`
}

// AlertmanagerExit is an Alertmanager.
type AlertmanagerExit struct {
	Name     string            `yaml:"name"`
	URL      string            `yaml:"url"`
	CA       string            `yaml:"ca"`
	Cert     string            `yaml:"cert"`
	Key      string            `yaml:"key"`
	Bearer   string            `yaml:"bearer"` // file
	Labels   map[string]string `yaml:"labels"`
	Types    []string          `yaml:"types"`
	Severity string            `yaml:"severity"`
}

const (
	defaultFacility = "audit"
	maxLabels       = 16
	maxLabelValue   = 128 // bytes
)

var (
	labelName  = regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_]{0,62}$`)
	bearerForm = regexp.MustCompile(`^[A-Za-z0-9._~+/-]+=*$`) // RFC 6750 section 2.1
)

func (k *checker) exits(c *Config) {
	x := &c.Exits
	if n := len(x.Syslog) + len(x.Alertmanager); n > maxWebhooks {
		k.wrong("exits", "%d of them: want at most %d", n, maxWebhooks)
	}
	names := map[string]bool{}
	for n := range c.Webhooks.To {
		names[c.Webhooks.To[n].Name] = true
	}
	once := func(key, name string) {
		k.receiver(key, name)
		if names[name] {
			k.wrong(key+".name", "%.64s is named twice, here or in webhooks.to", name)
		}
		names[name] = true
	}
	for n := range x.Syslog {
		key, e := fmt.Sprintf("exits.syslog.%d", n), &x.Syslog[n]
		once(key, e.Name)
		k.syslogExit(key, e)
	}
	for n := range x.Alertmanager {
		key, e := fmt.Sprintf("exits.alertmanager.%d", n), &x.Alertmanager[n]
		once(key, e.Name)
		k.alertmanagerExit(key, e)
	}
}

// receiver requires a name that a webhook could have.
func (k *checker) receiver(key, name string) {
	if !webhookName.MatchString(name) {
		k.wrong(key+".name", "%.64q: want 1 to 63 lower-case letters, digits, points and hyphens", name)
	}
}

// selected requires types and a severity of the catalogue.
func (k *checker) selected(key string, types []string, severity string) {
	for _, t := range types {
		if _, ok := events.KindOf(t); !ok {
			k.wrong(key+".types", "%.64q is no type of event: docs/reference/events.md has them", t)
		}
	}
	if severity != "" {
		k.oneOf(key+".severity", severity, events.Info, events.Notice, events.Warning, events.Critical)
	}
}

func (k *checker) pair(key, cert, private string) {
	if (cert == "") != (private == "") {
		k.wrong(key+".cert", "%q with key %q: name both, or none", cert, private)
	}
}

func (k *checker) syslogExit(key string, e *SyslogExit) {
	to, err := syslog.Parse(e.To)
	switch {
	case err != nil:
		k.wrong(key+".to", "%v", err) // without the value, which may have a password
	case !to.Encrypted() && (e.CA != "" || e.Cert != ""):
		k.wrong(key, "ca, cert and key are of connections by TLS: to: tls://HOST:PORT")
	}
	k.pair(key, e.Cert, e.Key)
	if _, ok := syslog.ParseFacility(e.Facility); e.Facility != "" && !ok {
		k.wrong(key+".facility", "%.64q: want one of %s", e.Facility, syslog.FacilityNames)
	}
	if e.Enterprise < 0 || e.Enterprise > math.MaxUint32 {
		k.wrong(key+".enterprise", "%d: want a private enterprise number of IANA", e.Enterprise)
	}
	k.selected(key, e.Types, e.Severity)
}

func (k *checker) alertmanagerExit(key string, e *AlertmanagerExit) {
	if err := exits.CheckURL(e.URL); err != nil {
		k.wrong(key+".url", "%v", err)
	}
	k.pair(key, e.Cert, e.Key)
	if name, ok := strings.CutPrefix(e.Bearer, credentialPrefix); ok && (name == "" || filepath.Base(name) != name) {
		k.wrong(key+".bearer", "%q: want %sNAME, with no slash in the name", e.Bearer, credentialPrefix)
	}
	if len(e.Labels) > maxLabels {
		k.wrong(key+".labels", "%d of them: want at most %d", len(e.Labels), maxLabels)
	}
	for name, value := range e.Labels {
		switch {
		case !labelName.MatchString(name):
			k.wrong(key+".labels", "%.64q: want 1 to 63 letters, digits and underscores, and no digit first", name)
		case slices.Contains(exits.Labels(), name):
			k.wrong(key+".labels", "%s is a label that the service sets", name)
		case value == "" || len(value) > maxLabelValue:
			k.wrong(key+".labels", "%s: want 1 to %d bytes", name, maxLabelValue)
		}
	}
	k.selected(key, e.Types, e.Severity)
}

// loadExits makes what sends events to the receivers beside webhooks, with the files that the configuration names.
func loadExits(c *Config, now time.Time) ([]delivery.Webhook, error) {
	var out []delivery.Webhook
	var errs []error
	for n := range c.Exits.Syslog {
		w, err := c.Exits.Syslog[n].load(c, fmt.Sprintf("exits.syslog.%d", n), now)
		errs, out = append(errs, err), append(out, w)
	}
	for n := range c.Exits.Alertmanager {
		w, err := c.Exits.Alertmanager[n].load(c, fmt.Sprintf("exits.alertmanager.%d", n), now)
		errs, out = append(errs, err), append(out, w)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return out, nil
}

func (e *SyslogExit) load(c *Config, key string, now time.Time) (w delivery.Webhook, err error) {
	to, err := syslog.Parse(e.To)
	if err != nil {
		return w, fmt.Errorf("%s.to: %w", key, err)
	}
	conf, err := LoadClientTLS(key, c.Path(e.CA), c.Path(e.Cert), c.Path(e.Key), now)
	if err != nil {
		return w, err
	}
	to.SetTLS(conf)
	s := &exits.Syslog{To: to, Enterprise: exits.ExampleEnterprise}
	if e.Enterprise != 0 {
		s.Enterprise = uint32(e.Enterprise) //nolint:gosec // checked before
	}
	name := defaultFacility
	if e.Facility != "" {
		name = e.Facility
	}
	s.Facility, _ = syslog.ParseFacility(name)
	return delivery.Webhook{Name: e.Name, Kind: delivery.KindSyslog, URL: e.To, Filter: delivery.Filter{Types: e.Types, Severity: e.Severity}, Sender: s}, nil
}

func (e *AlertmanagerExit) load(c *Config, key string, now time.Time) (w delivery.Webhook, err error) {
	conf, err := LoadClientTLS(key, c.Path(e.CA), c.Path(e.Cert), c.Path(e.Key), now)
	if err != nil {
		return w, err
	}
	var bearer ib.SecretText
	if e.Bearer != "" {
		if bearer, err = loadPassword(c, e.Bearer); err != nil {
			return w, fmt.Errorf("%s.bearer: %w", key, err)
		}
		if !bearerForm.MatchString(bearer.Reveal()) {
			return w, fmt.Errorf("%s.bearer: %s: want a token of letters, digits and -._~+/, and = at its end", key, e.Bearer)
		}
	}
	filter := delivery.Filter{Types: e.Types, Severity: e.Severity}
	filter.Also = exits.EndsOf(filter.Selects)
	am, err := exits.NewAlertmanager(exits.AlertmanagerOptions{URL: e.URL, TLS: conf, Bearer: bearer, Labels: e.Labels, Wanted: filter.Selects})
	if err != nil {
		return w, fmt.Errorf("%s.url: %w", key, err)
	}
	return delivery.Webhook{Name: e.Name, Kind: delivery.KindAlertmanager, URL: e.URL, Filter: filter, Sender: am}, nil
}
