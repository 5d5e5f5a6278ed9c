package hcasim

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"portcullis/agent/hca/register"
)

// spoken reads hexadecimal digits, and +N for N zero bytes behind them.
func spoken(t *testing.T, s string) []byte {
	t.Helper()
	digits, zeros, _ := strings.Cut(s, "+")
	b, err := hex.DecodeString(digits)
	if err != nil {
		t.Fatal(err)
	}
	if zeros == "" {
		return b
	}
	n, err := strconv.Atoi(zeros)
	if err != nil {
		t.Fatal(err)
	}
	return append(b, make([]byte, n)...)
}

// TestTools checks that the card answers a third party's tools as it did when they accepted it. It replays the commands of
// mstflint and mstconfig 4.36, in their order, with the answers.
func TestTools(t *testing.T) {
	text, err := os.ReadFile("testdata/mstflint-4.36.txt")
	if err != nil {
		t.Fatal(err)
	}
	l := open(t)
	parts := strings.Split(string(text), "\n= ")[1:]
	asked := map[register.ID]bool{}
	for _, part := range parts {
		title, rest, _ := strings.Cut(part, "\n")
		for line := range strings.Lines(rest) {
			if strings.HasPrefix(line, "#") || strings.TrimSpace(line) == "" {
				continue
			}
			var r register.RPC
			var in, out string
			if _, err := fmt.Sscanf(line, "%d %d %s %s", &r.Scope, &r.Room, &in, &out); err != nil {
				t.Fatalf("%s: %q: %v", title, line, err)
			}
			r.In = spoken(t, in)
			reply, err := l.card.RPC(r)
			if want := spoken(t, out); err != nil || reply.Errno != 0 || !bytes.Equal(reply.Out, want) {
				t.Fatalf("%s: asked %s\ngot  %x, error number %d, %v\nwant %x", title, in, reply.Out, reply.Errno, err, want)
			}
			a, err := register.DecodeAccess(r.In)
			if err != nil {
				t.Fatal(err)
			}
			asked[a.ID] = true
		}
	}
	for _, id := range []register.ID{
		register.IDMLOCK, register.IDMGIR, register.IDMNVDA, register.IDMFRL, register.IDMNVQC, register.IDMNVIA, register.IDMNVGC,
		register.IDMCQS, register.IDMCQI, register.IDMCC, register.IDMCDA, register.IDMQIS, register.IDMCAM, register.IDMDSR, register.IDMFSV, register.IDMTCQ,
	} {
		if !asked[id] {
			t.Errorf("no tool asked for %v", id)
		}
	}
}
