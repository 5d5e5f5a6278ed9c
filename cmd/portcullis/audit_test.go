package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"portcullis/api/audit/chain"
	"portcullis/attest/result/token"
	"portcullis/cmd/portcullis/cli"
)

// logFile writes an audit log of n entries, as audit export does, and returns the file and the entries.
func logFile(t *testing.T, n int) (string, []chain.Entry) {
	t.Helper()
	var out strings.Builder
	var entries []chain.Entry
	var head chain.Head
	for range n {
		e := chain.Entry{Seq: head.Seq + 1, Prev: head.Hash, Time: time.Unix(1, 0).UTC(), Actor: "ann", Action: "host.assign", Object: "host/h"}
		sum, err := e.Sum()
		if err != nil {
			t.Fatal(err)
		}
		e.Hash = sum
		head = chain.Head{Seq: e.Seq, Hash: sum}
		if err := json.NewEncoder(&out).Encode(e); err != nil {
			t.Fatal(err)
		}
		entries = append(entries, e)
	}
	name := filepath.Join(t.TempDir(), "audit.jsonl")
	if err := os.WriteFile(name, []byte(out.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return name, entries
}

func anchorFile(t *testing.T, seq uint64, hash string) string {
	t.Helper()
	data, err := json.Marshal(chain.Anchor{Time: time.Unix(2, 0).UTC(), Seq: seq, Hash: hash})
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(t.TempDir(), "anchors")
	if err := os.WriteFile(name, append(data, '\n'), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// syslogFile is anchorFile as a system log has it.
func syslogFile(t *testing.T, seq uint64, hash string) string {
	t.Helper()
	name := anchorFile(t, seq, hash)
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, append([]byte("Nov 26 16:00:00 sm-1 portcullisd[7]: "+chain.Marker), data...), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// decided returns a log with the entry by which an operator had a state count that was rolled back.
func decided(t *testing.T) string {
	t.Helper()
	e := chain.Entry{Seq: 1, Time: time.Unix(1, 0).UTC(), Actor: "ann", Action: chain.BranchAction, Object: "state"}
	var err error
	if e.Hash, err = e.Sum(); err != nil {
		t.Fatal(err)
	}
	data, err := json.Marshal(e)
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(t.TempDir(), "audit.jsonl")
	if err := os.WriteFile(name, append(data, '\n'), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// With keys, an anchor that none of them signed is refused, whatever the log has.
func TestAuditVerifySigned(t *testing.T) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	keys := new(token.Keys)
	if err := keys.Add(&key.PublicKey); err != nil {
		t.Fatal(err)
	}
	set, err := json.Marshal(keys)
	if err != nil {
		t.Fatal(err)
	}
	jwks := filepath.Join(t.TempDir(), "jwks.json")
	if err := os.WriteFile(jwks, set, 0o600); err != nil {
		t.Fatal(err)
	}
	log, entries := logFile(t, 4)
	good := chain.Anchor{Time: time.Unix(2, 0).UTC(), Service: "sm-1", Seq: 4, Hash: entries[3].Hash}
	content, err := good.Content()
	if err != nil {
		t.Fatal(err)
	}
	if good.JWS, err = token.SignAnchor(content, keys.IDs()[0], key); err != nil {
		t.Fatal(err)
	}
	altered := good
	altered.Service = "sm-2"
	unsigned := good
	unsigned.JWS = ""
	for _, tt := range []struct {
		name   string
		anchor chain.Anchor
		code   int
		want   string
	}{
		{"signed", good, cli.ExitOK, "each of them is signed"},
		{"altered", altered, cli.ExitError, "the anchor of audit entry 4"},
		{"not signed", unsigned, cli.ExitError, "the anchor of audit entry 4"},
	} {
		line, err := tt.anchor.Line()
		if err != nil {
			t.Fatal(err)
		}
		name := filepath.Join(t.TempDir(), "anchors")
		if err := os.WriteFile(name, line, 0o600); err != nil {
			t.Fatal(err)
		}
		var out, errs strings.Builder
		code := run(t.Context(), []string{"audit", "verify", "--log", log, "--anchor", name, "--keys", jwks}, strings.NewReader(""), &out, &errs)
		if code != tt.code || !strings.Contains(out.String()+errs.String(), tt.want) {
			t.Errorf("%s: exit %d, %s%s; want %d, %q", tt.name, code, &out, &errs, tt.code, tt.want)
		}
	}
}

func TestAuditVerify(t *testing.T) {
	name, entries := logFile(t, 4)
	last := entries[3].Hash
	cut := filepath.Join(t.TempDir(), "cut")
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.SplitAfter(string(data), "\n")
	if err := os.WriteFile(cut, []byte(lines[0]+lines[2]), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name string
		args []string
		code int
		want string
	}{
		{"whole", []string{"--log", name}, cli.ExitOK, "4 entries"},
		{"anchored", []string{"--log", name, "--anchor", anchorFile(t, 4, last)}, cli.ExitOK, "all 1 anchored heads"},
		{"rolled back", []string{"--log", name, "--anchor", anchorFile(t, 9, last)}, cli.ExitError, "rolled back"},
		{"rewritten", []string{"--log", name, "--anchor", anchorFile(t, 2, last)}, cli.ExitError, "rewritten"},
		{"noted in a system log", []string{"--log", name, "--anchor", syslogFile(t, 4, last)}, cli.ExitOK, "all 1 anchored heads"},
		{"of before a decision", []string{"--log", decided(t), "--anchor", anchorFile(t, 9, last)}, cli.ExitOK, "0 of 1 anchored heads are in it"},
		{"an entry is missing", []string{"--log", cut}, cli.ExitError, "audit entry 2 is missing"},
	} {
		var out, errs strings.Builder
		code := run(t.Context(), append([]string{"audit", "verify"}, tt.args...), strings.NewReader(""), &out, &errs)
		if code != tt.code || !strings.Contains(out.String()+errs.String(), tt.want) {
			t.Errorf("%s: exit %d, %s%s; want %d, %q", tt.name, code, &out, &errs, tt.code, tt.want)
		}
	}
}

// Times are compared before a service is asked.
func TestAuditTimes(t *testing.T) {
	for _, tt := range []struct {
		args []string
		want string
	}{
		{[]string{"--since", "yesterday"}, `--since "yesterday"`},
		{[]string{"--until", "2026-03-01"}, `--until "2026-03-01"`},
		{[]string{"--since", "2026-03-01T12:00:00Z", "--last", "1h"}, "exclude each other"},
	} {
		var out, errs strings.Builder
		code := run(t.Context(), append([]string{"audit", "list"}, tt.args...), strings.NewReader(""), &out, &errs)
		if code != cli.ExitUsage || !strings.Contains(errs.String(), tt.want) {
			t.Errorf("%v: exit %d, %s; want %d, %q", tt.args, code, &errs, cli.ExitUsage, tt.want)
		}
	}
}
