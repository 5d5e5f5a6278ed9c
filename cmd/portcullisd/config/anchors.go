package config

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"portcullis/api/audit/anchor"
	"portcullis/fabricsm/ib"
)

// Audit says where the head of the audit log is anchored.
type Audit struct {
	Every     time.Duration `yaml:"every"`
	TellAfter time.Duration `yaml:"tell_after"`
	Service   string        `yaml:"service"`
	Anchors   []Anchor      `yaml:"anchors"`
}

// Anchor is one place outside of the store: File, Syslog or Webhook.
type Anchor struct {
	File    string `yaml:"file"`
	Size    int64  `yaml:"size"` // of File, MiB
	Syslog  string `yaml:"syslog"`
	Webhook string `yaml:"webhook"`
	Read    bool   `yaml:"read"` // Webhook answers a GET

	// Of connections by TLS.
	CA     string `yaml:"ca"`
	Cert   string `yaml:"cert"`
	Key    string `yaml:"key"`
	Secret string `yaml:"secret"` // of Webhook: file of what bodies are signed with
}

const (
	maxAnchors      = 8
	anchorSize      = 16 // MiB, where a file has none
	maxAnchorSize   = 60 // what verify reads of a file is 64
	minAnchorSecret = 16 // bytes
	maxServiceName  = 255
)

func defaultAudit() Audit {
	return Audit{Every: time.Minute, TellAfter: 15 * time.Minute}
}

func (k *checker) audit(a *Audit, c *Config) {
	k.between("audit.every", a.Every, time.Second, time.Hour)
	k.between("audit.tell_after", a.TellAfter, time.Minute, 7*24*time.Hour)
	if len(a.Service) > maxServiceName || strings.ContainsFunc(a.Service, func(r rune) bool { return r <= ' ' || r > '~' }) {
		k.wrong("audit.service", "%.64q: want at most %d printable ASCII characters without blanks", a.Service, maxServiceName)
	}
	if len(a.Anchors) > maxAnchors {
		k.wrong("audit.anchors", "%d of them: want at most %d", len(a.Anchors), maxAnchors)
	}
	var names []string
	for i := range a.Anchors {
		key := fmt.Sprintf("audit.anchors.%d", i)
		k.anchor(key, &a.Anchors[i])
		if sink := a.Anchors[i].plain(c.Path); sink != nil {
			if slices.Contains(names, sink.Name()) {
				k.wrong(key, "%s is named twice", sink.Name())
			}
			names = append(names, sink.Name())
		}
		if file := c.Path(a.Anchors[i].File); file != "" && below(c.Path(c.StateDir), file) {
			k.wrong(key+".file", "%s is below state_dir: an older copy of that would bring older anchors with it; name a file elsewhere, best on another disk", file)
		}
	}
}

// below reports whether a file is in a directory or below it.
func below(dir, file string) bool {
	rel, err := filepath.Rel(filepath.Clean(dir), filepath.Clean(file))
	return err == nil && rel != ".." && !strings.HasPrefix(rel, ".."+string(filepath.Separator))
}

// anchor requires one kind of place, and of that no keys of the others.
func (k *checker) anchor(key string, a *Anchor) {
	kinds := 0
	for _, v := range []string{a.File, a.Syslog, a.Webhook} {
		if v != "" {
			kinds++
		}
	}
	if kinds != 1 {
		k.wrong(key, "want one of file, syslog and webhook, and found %d", kinds)
		return
	}
	if a.Size != 0 && (a.File == "" || a.Size < 1 || a.Size > maxAnchorSize) {
		k.wrong(key+".size", "%d: want 1 to %d MiB, of a file", a.Size, maxAnchorSize)
	}
	if a.Webhook == "" && (a.Read || a.Secret != "") {
		k.wrong(key, "read and secret are of a webhook")
	}
	if (a.Cert == "") != (a.Key == "") {
		k.wrong(key+".cert", "%q with key %q: name both, or none", a.Cert, a.Key)
	}
	encrypted := a.Webhook != ""
	switch {
	case a.Syslog != "":
		s, err := anchor.ParseSyslog(a.Syslog)
		if err != nil {
			k.wrong(key+".syslog", "%q: %v", a.Syslog, err)
			return
		}
		encrypted = s.Encrypted()
	case a.Webhook != "":
		if err := anchor.CheckURL(a.Webhook); err != nil {
			k.wrong(key+".webhook", "%v", err)
		}
	}
	if !encrypted && (a.CA != "" || a.Cert != "") {
		k.wrong(key, "ca, cert and key are of connections by TLS: a webhook, or syslog: tls://HOST:PORT")
	}
	if name, ok := strings.CutPrefix(a.Secret, credentialPrefix); ok && (name == "" || filepath.Base(name) != name) {
		k.wrong(key+".secret", "%q: want %sNAME, with no slash in the name", a.Secret, credentialPrefix)
	}
}

// plain makes the sink without what files hold; nil where it makes no sense.
func (a *Anchor) plain(path func(string) string) anchor.Sink {
	switch {
	case a.File != "":
		size := a.Size
		if size == 0 {
			size = anchorSize
		}
		return &anchor.File{Path: filepath.Clean(path(a.File)), Max: size << 20}
	case a.Syslog != "":
		if s, err := anchor.ParseSyslog(a.Syslog); err == nil {
			return s
		}
	case a.Webhook != "":
		if w, err := anchor.NewWebhook(anchor.WebhookOptions{URL: a.Webhook}); err == nil {
			return w
		}
	}
	return nil
}

// loadAnchors makes the sinks, with the files that they name.
func loadAnchors(c *Config, now time.Time) ([]anchor.Sink, error) {
	var out []anchor.Sink
	var errs []error
	for i := range c.Audit.Anchors {
		s, err := c.Audit.Anchors[i].load(c, fmt.Sprintf("audit.anchors.%d", i), now)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		out = append(out, s)
	}
	return out, errors.Join(errs...)
}

func (a *Anchor) load(c *Config, key string, now time.Time) (anchor.Sink, error) {
	conf, err := LoadClientTLS(key, c.Path(a.CA), c.Path(a.Cert), c.Path(a.Key), now)
	if err != nil {
		return nil, err
	}
	switch s := a.plain(c.Path).(type) {
	case *anchor.File:
		if err := s.Check(); err != nil {
			return nil, fmt.Errorf("%s.file: %w", key, err)
		}
		return s, nil
	case *anchor.Syslog:
		s.SetTLS(conf)
		return s, nil
	default:
		var secret ib.SecretText
		if a.Secret != "" {
			if secret, err = loadPassword(c, a.Secret); err != nil {
				return nil, fmt.Errorf("%s.secret: %w", key, err)
			}
			if len(secret.Reveal()) < minAnchorSecret {
				return nil, fmt.Errorf("%s.secret: %s is shorter than %d bytes: make one with openssl rand -hex 32", key, a.Secret, minAnchorSecret)
			}
		}
		w, err := anchor.NewWebhook(anchor.WebhookOptions{URL: a.Webhook, TLS: conf, Secret: secret, Reads: a.Read})
		if err != nil {
			return nil, fmt.Errorf("%s.webhook: %w", key, err)
		}
		return w, nil
	}
}

// ServiceName names this instance in anchors.
func (c *Config) ServiceName() string {
	if c.Audit.Service != "" {
		return c.Audit.Service
	}
	if name, err := c.InstanceName(); err == nil {
		return name
	}
	return "portcullisd"
}
