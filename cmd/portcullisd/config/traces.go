package config

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"portcullis/api/trace/otlp"
	"portcullis/cmd/internal/input"
	"portcullis/fabricsm/ib"
)

// Traces says which collector has traces of admissions.
type Traces struct {
	Endpoint string  `yaml:"endpoint"`
	CA       string  `yaml:"ca"`
	Cert     string  `yaml:"cert"`
	Key      string  `yaml:"key"`
	Headers  string  `yaml:"headers"` // file
	Sample   float64 `yaml:"sample"`
}

const (
	maxTraceHeaders = 16
	maxHeaderValue  = 4096 // bytes
)

var (
	headerName = regexp.MustCompile(`^[A-Za-z0-9-]{1,64}$`)
	// headersOfOurs are set by what sends the request.
	headersOfOurs = []string{"connection", "content-encoding", "content-length", "content-type", "host", "te", "trailer", "transfer-encoding", "upgrade", "user-agent"}
)

func (k *checker) traces(t *Traces) {
	if err := otlp.CheckSample(t.Sample); err != nil {
		k.wrong("traces.sample", "%v", err)
	}
	k.pair("traces", t.Cert, t.Key)
	if name, ok := strings.CutPrefix(t.Headers, credentialPrefix); ok && (name == "" || filepath.Base(name) != name) {
		k.wrong("traces.headers", "%q: want %sNAME, with no slash in the name", t.Headers, credentialPrefix)
	}
	if t.Endpoint == "" {
		for key, value := range map[string]string{"ca": t.CA, "cert": t.Cert, "headers": t.Headers} {
			if value != "" {
				k.wrong("traces."+key, "%.64q is of no use without traces.endpoint: name the collector, or leave it out", value)
			}
		}
		return
	}
	if err := otlp.CheckURL(t.Endpoint); err != nil {
		k.wrong("traces.endpoint", "%v", err) // without the value, which may have a password
		return
	}
	if strings.HasPrefix(t.Endpoint, "http:") && (t.CA != "" || t.Cert != "") {
		k.wrong("traces", "ca, cert and key are of connections by TLS: endpoint: https://HOST:4318/v1/traces")
	}
}

// loadTraces reads the files that the section names; nil: no traces are sent.
func loadTraces(c *Config, now time.Time) (*otlp.Options, error) {
	t := &c.Traces
	if t.Endpoint == "" {
		return nil, nil
	}
	conf, err := LoadClientTLS("traces", c.Path(t.CA), c.Path(t.Cert), c.Path(t.Key), now)
	if err != nil {
		return nil, err
	}
	o := &otlp.Options{URL: t.Endpoint, TLS: conf, Sample: t.Sample}
	if t.Headers == "" {
		return o, nil
	}
	if o.Headers, err = loadHeaders(c, t.Headers); err != nil {
		return nil, fmt.Errorf("traces.headers: %w", err)
	}
	return o, nil
}

// loadHeaders reads headers from a file, or from a credential of systemd: NAME: VALUE in each line. Errors quote no value.
func loadHeaders(c *Config, from string) ([]otlp.Header, error) {
	file := c.Path(from)
	if name, ok := strings.CutPrefix(from, credentialPrefix); ok {
		file = filepath.Join(os.Getenv("CREDENTIALS_DIRECTORY"), name)
	} else if err := input.CheckPrivate(file); err != nil {
		return nil, err
	}
	data, err := input.ReadFile(file, input.Small)
	if err != nil {
		return nil, err
	}
	var out []otlp.Header
	for n, line := range strings.Split(strings.TrimRight(string(data), "\r\n"), "\n") {
		name, value, colon := strings.Cut(strings.TrimSuffix(line, "\r"), ":")
		value = strings.TrimSpace(value)
		same := func(h otlp.Header) bool { return strings.EqualFold(h.Name, name) }
		switch {
		case !colon || !headerName.MatchString(name):
			return nil, fmt.Errorf("%s:%d: want NAME: VALUE, such as Authorization: Bearer TOKEN", file, n+1)
		case slices.Contains(headersOfOurs, strings.ToLower(name)):
			return nil, fmt.Errorf("%s:%d: %s is a header that the service sets", file, n+1, name)
		case slices.ContainsFunc(out, same):
			return nil, fmt.Errorf("%s:%d: %s is named twice", file, n+1, name)
		case value == "" || len(value) > maxHeaderValue || strings.ContainsFunc(value, func(r rune) bool { return r < ' ' || r > '~' }):
			return nil, fmt.Errorf("%s:%d: value of %s: want 1 to %d printable characters of ASCII", file, n+1, name, maxHeaderValue)
		case len(out) == maxTraceHeaders:
			return nil, fmt.Errorf("%s:%d: want at most %d headers", file, n+1, maxTraceHeaders)
		}
		out = append(out, otlp.Header{Name: name, Value: ib.NewSecretText(value)})
	}
	return out, nil
}
