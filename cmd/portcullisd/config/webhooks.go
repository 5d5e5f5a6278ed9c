package config

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"portcullis/api/webhook"
	"portcullis/api/webhook/delivery"
)

// Webhooks says where events are sent.
type Webhooks struct {
	Allow []string  `yaml:"allow"` // addresses that would be refused
	Only  []string  `yaml:"only"`  // no others
	To    []Webhook `yaml:"to"`
}

// Webhook is a server that events are sent to.
type Webhook struct {
	Name     string   `yaml:"name"`
	URL      string   `yaml:"url"`
	Secret   string   `yaml:"secret"` // file
	CA       string   `yaml:"ca"`
	Cert     string   `yaml:"cert"`
	Key      string   `yaml:"key"`
	Types    []string `yaml:"types"`
	Severity string   `yaml:"severity"`
}

const (
	maxWebhooks = 16
	maxPrefixes = 64
)

var webhookName = regexp.MustCompile(`^[a-z0-9][a-z0-9.-]{0,62}$`)

func (k *checker) webhooks(w *Webhooks) {
	if len(w.To) > maxWebhooks {
		k.wrong("webhooks.to", "%d of them: want at most %d", len(w.To), maxWebhooks)
	}
	for key, list := range map[string][]string{"webhooks.allow": w.Allow, "webhooks.only": w.Only} {
		if len(list) > maxPrefixes {
			k.wrong(key, "%d of them: want at most %d", len(list), maxPrefixes)
		}
		for n, text := range list {
			if p, err := netip.ParsePrefix(text); err != nil || p != p.Masked() {
				k.wrong(fmt.Sprintf("%s.%d", key, n), "%q: want a network such as 10.20.0.0/16, with no bit set after its length", text)
			}
		}
	}
	for n := range w.To {
		key := fmt.Sprintf("webhooks.to.%d", n)
		k.webhook(key, &w.To[n])
		if slices.ContainsFunc(w.To[:n], func(other Webhook) bool { return other.Name == w.To[n].Name }) {
			k.wrong(key+".name", "%s is named twice", w.To[n].Name)
		}
	}
}

func (k *checker) webhook(key string, w *Webhook) {
	k.receiver(key, w.Name)
	if err := webhook.CheckURL(w.URL); err != nil {
		k.wrong(key+".url", "%v", err)
	}
	k.set(key+".secret", w.Secret)
	if name, ok := strings.CutPrefix(w.Secret, credentialPrefix); ok && (name == "" || filepath.Base(name) != name) {
		k.wrong(key+".secret", "%q: want %sNAME, with no slash in the name", w.Secret, credentialPrefix)
	}
	k.pair(key, w.Cert, w.Key)
	k.selected(key, w.Types, w.Severity)
}

// addresses returns where requests may go. The configuration was checked before.
func (w *Webhooks) addresses() (out webhook.Addresses) {
	for _, p := range []struct {
		from []string
		to   *[]netip.Prefix
	}{{w.Allow, &out.Allow}, {w.Only, &out.Only}} {
		for _, text := range p.from {
			if prefix, err := netip.ParsePrefix(text); err == nil {
				*p.to = append(*p.to, prefix)
			}
		}
	}
	return out
}

// loadWebhooks makes what sends events, with the files that the configuration names.
func loadWebhooks(c *Config, now time.Time) ([]delivery.Webhook, error) {
	var out []delivery.Webhook
	var errs []error
	for n := range c.Webhooks.To {
		w := &c.Webhooks.To[n]
		sender, err := w.sender(c, fmt.Sprintf("webhooks.to.%d", n), now)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		shown := ""
		if u, err := url.Parse(w.URL); err == nil {
			shown = "https://" + u.Host + u.EscapedPath() // a query may have a secret in it
		}
		out = append(out, delivery.Webhook{Name: w.Name, URL: shown, Filter: delivery.Filter{Types: w.Types, Severity: w.Severity}, Sender: sender})
	}
	return out, errors.Join(errs...)
}

func (w *Webhook) sender(c *Config, key string, now time.Time) (*webhook.Sender, error) {
	conf, err := LoadClientTLS(key, c.Path(w.CA), c.Path(w.Cert), c.Path(w.Key), now)
	if err != nil {
		return nil, err
	}
	text, err := loadPassword(c, w.Secret)
	if err != nil {
		return nil, fmt.Errorf("%s.secret: %w", key, err)
	}
	secret, err := webhook.ParseSecret(text.Reveal())
	if err != nil {
		return nil, fmt.Errorf("%s.secret: %s: %w", key, w.Secret, err)
	}
	sender, err := webhook.NewSender(webhook.Target{URL: w.URL, Secret: secret, Certificates: conf, Addresses: c.Webhooks.addresses()})
	if err != nil {
		return nil, fmt.Errorf("%s.url: %w", key, err)
	}
	return sender, nil
}
