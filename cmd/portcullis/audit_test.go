package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"portcullis/api/audit/chain"
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
		{"whole", []string{"--log", name}, exitOK, "4 entries"},
		{"anchored", []string{"--log", name, "--anchor", anchorFile(t, 4, last)}, exitOK, "all 1 anchored heads"},
		{"rolled back", []string{"--log", name, "--anchor", anchorFile(t, 9, last)}, exitError, "rolled back"},
		{"rewritten", []string{"--log", name, "--anchor", anchorFile(t, 2, last)}, exitError, "rewritten"},
		{"an entry is missing", []string{"--log", cut}, exitError, "audit entry 2 is missing"},
	} {
		var out, errs strings.Builder
		code := run(t.Context(), append([]string{"audit", "verify"}, tt.args...), strings.NewReader(""), &out, &errs)
		if code != tt.code || !strings.Contains(out.String()+errs.String(), tt.want) {
			t.Errorf("%s: exit %d, %s%s; want %d, %q", tt.name, code, &out, &errs, tt.code, tt.want)
		}
	}
}
