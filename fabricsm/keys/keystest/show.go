package keystest

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"go.yaml.in/yaml/v4"
)

// Clean fails the test if a sink shows a secret. The argument what names the sink.
func (s *Scanner) Clean(t testing.TB, what string, sink []byte) {
	t.Helper()
	for _, l := range s.Find(sink) {
		t.Errorf("%s shows %s at byte %d", what, l.Form, l.At)
	}
}

// CleanFiles fails the test if a file below a directory shows a secret.
func (s *Scanner) CleanFiles(t testing.TB, dir string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		data, err := os.ReadFile(path)
		s.Clean(t, path, dense(data))
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// dense leaves out blocks of zeros, of which files that were made longer in
// advance have many.
func dense(data []byte) []byte {
	var zeros [4096]byte
	out := data[:0]
	for block := range slices.Chunk(data, len(zeros)) {
		if !bytes.Equal(block, zeros[:len(block)]) {
			out = append(out, block...)
		}
	}
	return out
}

// CleanValue fails the test if a value shows a secret in any of the ways in
// which Go prints values: by every verb, as an error, in a panic, in logs, and
// as JSON, YAML or XML; itself, behind a pointer, and within others.
func (s *Scanner) CleanValue(t testing.TB, v any) {
	t.Helper()
	for _, held := range []any{v, &v, []any{v}, map[string]any{"k": v}, struct{ V any }{v}, struct{ v any }{v}} {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "% x", "%#x", "%d", "%o", "%b", "%c", "%U", "%e", "%t", "%08.3f"} {
			s.Clean(t, fmt.Sprintf("%s of %T", verb, v), fmt.Appendf(nil, verb, held))
		}
		s.Clean(t, fmt.Sprintf("an error with %T", v), []byte(errors.Join(fmt.Errorf("it is %v", held)).Error()))
		s.Clean(t, fmt.Sprintf("a panic with %T", v), fmt.Append(nil, panicked(held)))
		for name, encode := range encoders() {
			if out, err := encode(held); err == nil {
				s.Clean(t, fmt.Sprintf("%s of %T", name, v), out)
			} else {
				s.Clean(t, fmt.Sprintf("the error of %s of %T", name, v), []byte(err.Error()))
			}
		}
	}
}

func panicked(v any) (got any) {
	defer func() { got = recover() }()
	panic(v)
}

func encoders() map[string]func(any) ([]byte, error) {
	log := func(h func(*bytes.Buffer) slog.Handler) func(any) ([]byte, error) {
		return func(v any) ([]byte, error) {
			var b bytes.Buffer
			slog.New(h(&b)).With("with", v).LogAttrs(context.Background(), slog.LevelError, "it", slog.Any("v", v), slog.Group("g", slog.Any("v", v)))
			return b.Bytes(), nil
		}
	}
	return map[string]func(any) ([]byte, error){
		"JSON":      json.Marshal,
		"YAML":      func(v any) ([]byte, error) { return yaml.Dump(v) },
		"XML":       xml.Marshal,
		"log text":  log(func(b *bytes.Buffer) slog.Handler { return slog.NewTextHandler(b, nil) }),
		"log lines": log(func(b *bytes.Buffer) slog.Handler { return slog.NewJSONHandler(b, nil) }),
	}
}
