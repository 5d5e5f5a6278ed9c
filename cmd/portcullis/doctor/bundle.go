package doctor

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"regexp"
	"slices"
	"time"

	v1 "portcullis/api/v1"
	"portcullis/cmd/internal/version"
)

const (
	// eventsOf is how far back the events of a bundle go.
	eventsOf = 24 * time.Hour
	// maxPart bounds one file of a bundle in bytes.
	maxPart = 64 << 20
)

// bundle writes the archive. It exists as a whole or not at all.
func (d *doctor) bundle(ctx context.Context, name string, found *diagnosis) error {
	d.gather(ctx)
	d.answers["doctor.json"] = found
	d.answers["program.json"] = map[string]string{"version": version.String()}
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("write bundle: %w", err)
	}
	err = write(f, d.answers, d.now())
	if e := f.Close(); err == nil {
		err = e
	}
	if err != nil {
		return errors.Join(fmt.Errorf("write bundle %s: %w", name, err), os.Remove(name))
	}
	return nil
}

// gather asks for what no check needs. What is refused is named in the file instead.
func (d *doctor) gather(ctx context.Context) {
	if _, known := d.answers["credential.json"]; !known {
		return // there is no service that answers this caller
	}
	keep := func(name string, answer any, err error) {
		if err != nil {
			answer = map[string]string{"not_shown": err.Error()}
		}
		d.answers[name] = answer
	}
	events, err := d.c.Audit().Events(ctx, v1.EventQuery{Since: d.now().Add(-eventsOf)})
	keep("events.json", events, err)
	health := []v1.FabricHealth{}
	for page, e := range d.c.Fabric().Health(ctx, v1.PageQuery{}) {
		if err = e; err != nil {
			break
		}
		health = append(health, page.Items...)
	}
	keep("fabric-health.json", health, err)
	var metrics bytes.Buffer
	if err := d.c.Metrics(ctx, &bounded{&metrics, maxPart}); err != nil {
		keep("metrics.json", nil, err)
		return
	}
	d.answers["metrics.txt"] = metrics.Bytes()
}

// bounded refuses what is more than so many bytes.
type bounded struct {
	w    io.Writer
	left int
}

func (b *bounded) Write(p []byte) (int, error) {
	if b.left -= len(p); b.left < 0 {
		return 0, fmt.Errorf("more than %d bytes", maxPart)
	}
	return b.w.Write(p)
}

// write writes an archive of answers, in the order of their names.
func write(to io.Writer, answers map[string]any, at time.Time) error {
	z := gzip.NewWriter(to)
	t := tar.NewWriter(z)
	for _, name := range slices.Sorted(maps.Keys(answers)) {
		data, isText := answers[name].([]byte)
		if !isText {
			var err error
			if data, err = json.MarshalIndent(answers[name], "", "  "); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
		}
		data = scrub(data)
		if err := t.WriteHeader(&tar.Header{Name: "portcullis-doctor/" + name, Mode: 0o600, Size: int64(len(data)), ModTime: at}); err != nil {
			return err
		}
		if _, err := t.Write(data); err != nil {
			return err
		}
	}
	return errors.Join(t.Close(), z.Close())
}

// secrets are the forms of what must not leave the site. JSON has a line end as \n.
var secrets = []*regexp.Regexp{
	regexp.MustCompile(`pc(op|st)_[-_A-Za-z0-9]+`),
	regexp.MustCompile(`whsec_[-_+/=A-Za-z0-9]+`), // of webhooks
	regexp.MustCompile(`eyJ[-_A-Za-z0-9]+\.[-_A-Za-z0-9]+\.[-_A-Za-z0-9]*`),
	regexp.MustCompile(`(?s)-----BEGIN [A-Z0-9 ]*PRIVATE KEY-----.*?(-----END [A-Z0-9 ]*PRIVATE KEY-----|$)`),
	regexp.MustCompile(`(?i)AGE-SECRET-KEY-[A-Z0-9-]+`),
	regexp.MustCompile(`(?i)bearer [-_.~+/=A-Za-z0-9]+`),
}

// inURL is a password in a URL.
var inURL = regexp.MustCompile(`(://[^/\s:@"]*:)[^/\s@"]+@`)

// scrub removes secrets from a text. The service shows none; a text that an operator or a host wrote may have one.
func scrub(text []byte) []byte {
	for _, form := range secrets {
		text = form.ReplaceAllLiteral(text, []byte("[removed]"))
	}
	return inURL.ReplaceAll(text, []byte("${1}[removed]@"))
}
