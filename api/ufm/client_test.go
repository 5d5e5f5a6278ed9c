package ufm_test

import (
	"bufio"
	"context"
	"io"
	"os/exec"
	"strings"
	"testing"
	"time"

	"portcullis/api"
	"portcullis/api/apitest"
	"portcullis/api/credential"
	"portcullis/api/ufm"
	v1 "portcullis/api/v1"
	"portcullis/packaging/testenv"
)

// TestPythonClient has a script with the requests library call the surface over TLS, as scripts for UFM do.
func TestPythonClient(t *testing.T) {
	t.Parallel()
	python := testenv.Program(t, "python3")
	if out, err := exec.CommandContext(t.Context(), python, "-c", "import requests").CombinedOutput(); err != nil {
		testenv.Need(t, &missing{string(out)})
	}
	s := &site{Site: apitest.NewSite(t)}
	s.Register("gpu-0", "gpu-1")
	token, digest := credential.New()
	server := apitest.Start(t, s.Site, func(o *api.Options) {
		var err error
		o.Tokens, err = credential.Parse("tokens.yaml", []byte("tokens:\n- {name: slurm, role: operator, sha256: "+digest+", p_keys: [0x0001-0x00ff], hosts: ['gpu-*']}\n"))
		if err != nil {
			t.Fatal(err)
		}
		o.UFM = &ufm.Settings{Prefix: 0xfe80000000000000, MTU: 4096}
	})
	if _, err := s.Service().Tenancy().CreateTenant(t.Context(), apitest.Importer, v1.NewTenant{Name: "batch", PKeys: []string{"0x0001-0x00ff"}}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	run := exec.CommandContext(ctx, python, "testdata/client.py", server.URL, server.CAFile, "slurm", token, s.guids(t, "gpu-0")[0], s.guids(t, "gpu-1")[1])
	var said strings.Builder
	run.Stderr = &said
	in, err := run.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := run.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := run.Start(); err != nil {
		t.Fatal(err)
	}
	var steps []string
	for lines := bufio.NewScanner(out); lines.Scan(); {
		steps = append(steps, lines.Text())
		s.Program()
		_, _ = io.WriteString(in, "\n") // it has ended after the last line
	}
	if err := run.Wait(); err != nil || len(steps) != 4 {
		t.Fatalf("after %q: %v: %s", steps, err, said.String())
	}
}

// missing is that Python has no requests.
type missing struct{ said string }

func (m *missing) Error() string {
	return "python3 has no requests: run \"make setup\": " + m.said
}
