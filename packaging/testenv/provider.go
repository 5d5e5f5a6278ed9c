package testenv

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// Providers are two OpenID providers of the library zitadel/oidc, in a process of their own.
type Providers struct {
	URLs []string // of the issuers
	CA   []byte   // PEM, of both

	t    testing.TB
	in   io.Writer
	out  *bufio.Scanner
	turn sync.Mutex // of an order and its answer
}

// StartProviders starts api/oidc/testdata/provider, which ends with the test.
func StartProviders(t testing.TB) *Providers {
	t.Helper()
	root, err := exec.CommandContext(t.Context(), Program(t, "go"), "list", "-m", "-f", "{{.Dir}}").Output()
	if err != nil {
		t.Fatalf("find the module: %v", err)
	}
	cmd := exec.CommandContext(t.Context(), "go", "run", "-modfile="+filepath.Join("packaging", "judges.mod"), "./api/oidc/testdata/provider")
	cmd.Dir = strings.TrimSpace(string(root))
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var errs bytes.Buffer
	cmd.Stderr = &errs
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p := &Providers{t: t, in: in, out: bufio.NewScanner(out)}
	if !p.out.Scan() {
		err := cmd.Wait()
		if strings.Contains(errs.String(), "dial tcp") || strings.Contains(errs.String(), "module lookup disabled") {
			Need(t, fmt.Errorf("the modules of packaging/judges.mod are not at hand: %s", errs.String()))
		}
		t.Fatalf("the provider did not start: %v\n%s", err, errs.String())
	}
	t.Cleanup(func() {
		in.Close() // which ends it
		if err := cmd.Wait(); err != nil && t.Context().Err() == nil {
			t.Errorf("the provider: %v\n%s", err, errs.String())
		}
	})
	var hello struct {
		CA   string
		URLs []string
	}
	if err := json.Unmarshal(p.out.Bytes(), &hello); err != nil {
		t.Fatal(err)
	}
	p.URLs, p.CA = hello.URLs, []byte(hello.CA)
	return p
}

// Try returns what the process answers to an order, for goroutines beside that of the test.
func (p *Providers) Try(format string, args ...any) (string, error) {
	p.turn.Lock()
	defer p.turn.Unlock()
	if _, err := fmt.Fprintf(p.in, format+"\n", args...); err != nil {
		return "", err
	}
	if !p.out.Scan() || p.out.Text() == "" {
		return "", errors.New(fmt.Sprintf(format, args...) + ": no answer")
	}
	return p.out.Text(), nil
}

// Order returns what the process answers to an order.
func (p *Providers) Order(format string, args ...any) string {
	p.t.Helper()
	answer, err := p.Try(format, args...)
	if err != nil {
		p.t.Fatal(err)
	}
	return answer
}
