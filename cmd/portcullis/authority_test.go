package main

import (
	"bytes"
	"context"
	"crypto/x509"
	"encoding/pem"
	"strings"
	"testing"

	"portcullis/api"
	"portcullis/api/apitest"
	"portcullis/cmd/portcullis/cli"
)

// TestAuthority shows, prints and rotates the authorities of a service.
func TestAuthority(t *testing.T) {
	ca := apitest.NewAuthority(t)
	s := apitest.Start(t, apitest.NewSite(t), func(o *api.Options) { o.Hosts = ca })
	do := func(want int, args ...string) string {
		t.Helper()
		var stdout, stderr bytes.Buffer
		code := run(context.Background(), append([]string{"--service", s.URL, "--ca", s.CAFile, "--token-file", s.OperatorFile}, args...), nil, &stdout, &stderr)
		if code != want {
			t.Fatalf("portcullis %s: exit %d, want %d\n%s", strings.Join(args, " "), code, want, stderr.String())
		}
		return stdout.String()
	}
	first := do(0, "authority", "pem")
	block, rest := pem.Decode([]byte(first))
	if block == nil || len(rest) != 0 {
		t.Fatalf("one certificate, got %q", first)
	}
	if c, err := x509.ParseCertificate(block.Bytes); err != nil || !c.IsCA || c.Subject.Organization[0] != "fabric.example" {
		t.Errorf("authority %v, %v", c, err)
	}
	if out := do(0, "authority", "rotate", "--reason", "yearly"); !strings.Contains(out, "signs") || !strings.Contains(out, "next") {
		t.Errorf("rotated:\n%s", out)
	}
	if both := do(0, "authority", "pem"); strings.Count(both, "BEGIN CERTIFICATE") != 2 || !strings.HasPrefix(both, first) {
		t.Errorf("authorities:\n%s", both)
	}
	do(3, "authority", "rotate", "--reason", "again")
	do(cli.ExitUsage, "authority", "rotate", "--reason", "stolen", "--at-once")
	do(0, "authority", "rotate", "--reason", "stolen", "--at-once", "--yes")
	if out := do(0, "authority", "show"); strings.Count(out, "\n") != 2 || !strings.Contains(out, "signs") {
		t.Errorf("after it was changed at once:\n%s", out)
	}
}
