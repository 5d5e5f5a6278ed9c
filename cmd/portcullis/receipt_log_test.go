package main

import (
	"bytes"
	"context"
	"crypto"
	"crypto/ed25519"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"portcullis/api/credential"
	"portcullis/api/receipt/translog"
	"portcullis/api/receiptlog"
	"portcullis/api/refusal"
	"portcullis/api/store"
	"portcullis/api/store/memory"
	v1 "portcullis/api/v1"
)

// logSite is a service that shows the log of receipts of a store, which can be exchanged.
type logSite struct {
	t   *testing.T
	key ed25519.PrivateKey
	at  atomic.Pointer[receiptlog.Log]
	st  *store.Store
}

// begin exchanges the log for one with these receipts.
func (s *logSite) begin(receipts ...string) {
	s.t.Helper()
	s.st = store.New(memory.New(time.Now), "")
	s.at.Store(receiptlog.New(s.st, func(context.Context) (crypto.Signer, error) { return s.key, nil }))
	for _, r := range receipts {
		s.add(r)
	}
}

func (s *logSite) add(text string) {
	s.t.Helper()
	if _, err := s.st.Update(s.t.Context(), func(tx *store.Tx) error {
		_, err := s.at.Load().Append(s.t.Context(), tx, translog.DigestOf([]byte(text)), time.Unix(1e9, 0))
		return err
	}); err != nil {
		s.t.Fatal(err)
	}
}

func (s *logSite) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	l := s.at.Load()
	var out []byte
	var err error
	kind := "text/plain"
	number := func(name string) int64 {
		n, err := strconv.ParseInt(r.URL.Query().Get(name), 10, 64)
		if err != nil {
			s.t.Error(err)
		}
		return n
	}
	switch path := strings.TrimPrefix(r.URL.Path, "/v1/receipts"); path {
	case "":
		out, kind = []byte("{\"payload\":\"issued\"}\n"), "application/json"
	case "/log/checkpoint":
		out, err = l.Checkpoint(r.Context())
	case "/log/consistency":
		answer := v1.ReceiptLogConsistency{From: number("from"), To: number("to")}
		hashes, failed := l.Consistency(r.Context(), answer.From, answer.To)
		for _, h := range hashes {
			answer.Hashes = append(answer.Hashes, h.String())
		}
		out, err = json.Marshal(answer)
		err, kind = errors.Join(failed, err), "application/json"
	default:
		out, err = l.Proof(r.Context(), strings.TrimPrefix(path, "/log/proofs/"))
	}
	if e, ok := errors.AsType[*refusal.Error](err); ok {
		w.Header().Set("Content-Type", "application/problem+json")
		w.WriteHeader(http.StatusConflict)
		out, err = json.Marshal(v1.Problem{Code: e.Code, Detail: e.Detail})
	} else {
		w.Header().Set("Content-Type", kind)
	}
	if _, failed := w.Write(out); err != nil || failed != nil {
		s.t.Error(err, failed)
	}
}

// TestReceiptLogMonitor: the monitor accepts a log that grows, and fails when it shrinks, changes, or is another one.
func TestReceiptLogMonitor(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := &logSite{t: t, key: ed25519.NewKeyFromSeed(bytes.Repeat([]byte{1}, ed25519.SeedSize))}
	srv := httptest.NewTLSServer(s)
	t.Cleanup(srv.Close)
	file := func(name string) string { return filepath.Join(dir, name) }
	write := func(name string, data []byte) string {
		if err := os.WriteFile(file(name), data, 0o600); err != nil {
			t.Fatal(err)
		}
		return file(name)
	}
	read := func(name string) string {
		data, err := os.ReadFile(file(name))
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Fatal(err)
		}
		return string(data)
	}
	der, err := x509.MarshalPKIXPublicKey(s.key.Public())
	if err != nil {
		t.Fatal(err)
	}
	secret, _ := credential.New()
	trusted := write("keys.pem", pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}))
	flags := []string{
		"--service", srv.URL, "--token-file", write("token", []byte(secret)),
		"--ca", write("ca.pem", pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: srv.Certificate().Raw})),
	}
	do := func(what string, exit int, want string, args ...string) {
		t.Helper()
		var out, errs bytes.Buffer
		if got := run(t.Context(), append(append([]string{"receipt"}, args...), flags...), nil, &out, &errs); got != exit || !strings.Contains(out.String()+errs.String(), want) {
			t.Errorf("%s: exit status %d, want %d and %q: %s%s", what, got, exit, want, &out, &errs)
		}
	}
	monitor := func(what string, exit int, want string, proofs ...string) {
		t.Helper()
		do(what, exit, want, append([]string{"log", "monitor", "--state", file("head"), "--key", trusted}, proofs...)...)
	}
	s.begin()
	monitor("nothing was issued", 2, "no receipt was issued yet")
	s.add("a\n")
	s.add("{\"payload\":\"issued\"}\n")
	monitor("the first time", 0, "2 receipts")
	do("the head", 0, "portcullis/receipts/", "log", "checkpoint")
	do("issue", 0, "", "issue", "--out", file("receipt"))
	if _, err := translog.ParseProof([]byte(read("receipt.tlog-proof"))); err != nil {
		t.Error(err)
	}
	do("no such receipt", 3, "no receipt with the digest", "log", "proof", write("other", []byte("b\n")))
	s.add("c\n")
	s.add("d\n")
	kept := read("head")
	monitor("it grew", 0, "4 receipts", file("receipt.tlog-proof"))
	if read("head") == kept {
		t.Error("the new head is not kept")
	}
	monitor("it is the same", 0, "4 receipts")
	kept = read("head")
	origin, _, _ := strings.Cut(kept, "\n")

	for name, receipts := range map[string][]string{"another log": {"a\n", "{\"payload\":\"issued\"}\n", "c\n", "d\n", "e\n"}, "no log": nil} {
		s.begin(receipts...)
		monitor(name, 1, "two histories")
		if read("head") != kept {
			t.Errorf("%s: the head that was kept is gone", name)
		}
	}
	if other := read("head.other"); other == "" || strings.HasPrefix(other, origin+"\n") {
		t.Errorf("kept of the other log: %q", other)
	}
	// The log of the last one, with the name of the first, and fewer or other receipts.
	for name, receipts := range map[string][][]byte{"it shrank": {{1}, {2}}, "as long": {{1}, {2}, {3}, {4}}, "longer": {{1}, {2}, {3}, {4}, {5}, {6}}} {
		s.begin("a\n", "b\n", "x\n", "y\n", "z\n", "zz\n")
		proof, err := translog.ParseProof(loggedOf(t, s.key, origin, receipts...)[0])
		if err != nil {
			t.Fatal(err)
		}
		lying := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if strings.HasSuffix(r.URL.Path, "/checkpoint") {
				if _, err := w.Write(proof.Head); err != nil {
					t.Error(err)
				}
				return
			}
			s.ServeHTTP(w, r)
		}))
		t.Cleanup(lying.Close)
		flags[1] = lying.URL
		write("ca.pem", pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: lying.Certificate().Raw}))
		monitor(name, 1, "two histories")
		if read("head") != kept || read("head.other") != string(proof.Head) {
			t.Errorf("%s: the heads are not kept as evidence", name)
		}
	}
}
