package main

import (
	"bytes"
	"crypto/ed25519"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/mod/sumdb/tlog"

	"portcullis/api/receipt"
	"portcullis/api/receipt/translog"
	v1 "portcullis/api/v1"
	"portcullis/attest/result"
	"portcullis/fabricsm/ib"
)

// receiptOf signs a receipt about tenant acme, its one host, and globex, or about that host alone.
func receiptOf(t *testing.T, key ed25519.PrivateKey, issued time.Time, verdict string, hosts ...string) []byte {
	t.Helper()
	counts := receipt.From(issued, time.Hour)
	pair := v1.IsolationPair{A: "acme", B: "globex", Verdict: verdict}
	if verdict == v1.Isolated {
		pair.Held = v1.HeldByEach
	}
	p, err := receipt.New(receipt.Facts{
		Issued: issued, MaxAge: time.Hour, Digest: strings.Repeat("0f", 32), ReadingMaxAge: time.Hour,
		Report: &v1.Isolation{
			Tenant: "acme", Verdict: verdict,
			Parties: []v1.IsolationParty{{Name: "acme", Tenant: true, Declared: 1, Found: 1}, {Name: "globex", Tenant: true, Declared: 3, Found: 3}},
			Bounds:  v1.IsolationBounds{Begun: issued.Add(-time.Minute), Ended: issued, Assumptions: []string{"switches are honest"}},
		},
		Pairs:   []v1.IsolationPair{pair},
		Ports:   []v1.IsolationPort{{Party: "acme", Host: "host-1\x1b[2J", GUID: 1, Place: ib.Place{Switch: 2, Port: 3}, PKeys: []ib.PKey{0x8101}, Found: true}},
		Members: counts, Topology: receipt.Topology{Dated: counts, Revision: 7, Digest: "sha256:" + strings.Repeat("cd", 32)}, Keys: receipt.Keys{Dated: counts, Epochs: []receipt.Epoch{{Kind: "m-key", Epoch: 3}}},
		Attestations: map[string]receipt.Judged{"host-1\x1b[2J": {Dated: counts, Status: result.Affirming, Evidence: issued.Add(-time.Hour)}},
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, host := range hosts {
		if err := p.Narrow(host); err != nil {
			t.Fatal(err)
		}
	}
	data, err := receipt.Sign(p, key)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// scripted verifies a receipt with openssl and jq.
func scripted(t *testing.T, name string, want int, args ...string) {
	t.Helper()
	said, err := exec.CommandContext(t.Context(), "../../packaging/receipt.sh", args...).CombinedOutput()
	exit := 0
	if e, ok := errors.AsType[*exec.ExitError](err); ok {
		exit = e.ExitCode()
	} else if err != nil {
		t.Fatal(err)
	}
	if exit != want {
		t.Errorf("%s: the script ends with %d, want %d: %s", name, exit, want, said)
	}
}

// writerIn returns a function that writes a file into a directory and returns its path.
func writerIn(t *testing.T, dir string) func(name string, data []byte) string {
	return func(name string, data []byte) string {
		t.Helper()
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, data, 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
}

// TestReceiptVerify: the command, and a script with openssl and jq, end in the same way for the same file.
func TestReceiptVerify(t *testing.T) {
	t.Parallel()
	dir, now := t.TempDir(), time.Now()
	write := writerIn(t, dir)
	signer := func(seed byte) (ed25519.PrivateKey, string) {
		key := ed25519.NewKeyFromSeed(bytes.Repeat([]byte{seed}, ed25519.SeedSize))
		der, err := x509.MarshalPKIXPublicKey(key.Public())
		if err != nil {
			t.Fatal(err)
		}
		return key, write(string('a'+rune(seed))+".pem", pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}))
	}
	key, trusted := signer(1)
	_, other := signer(2)
	good := receiptOf(t, key, now, v1.Isolated)
	altered := bytes.Clone(good)
	altered[len(altered)/2] ^= 2
	file := write("good", good)
	for name, test := range map[string]struct {
		file, key, tenant string
		exit              int
		want              string // of the command
	}{
		"isolated":       {file, trusted, "", 0, "tenant acme: isolated"},
		"of acme":        {file, trusted, "acme", 0, "host-1"},
		"of globex":      {file, trusted, "globex", 2, `not about tenant "globex"`},
		"leaks":          {write("leaks", receiptOf(t, key, now, v1.Leaks)), trusted, "", 1, "NOT ISOLATED"},
		"unknown":        {write("unknown", receiptOf(t, key, now, v1.IsolationUnknown)), trusted, "", 7, "not proven"},
		"another key":    {file, other, "", 2, "no key that is trusted signed it"},
		"altered":        {write("altered", altered), trusted, "", 2, "altered"},
		"cut":            {write("cut", good[:len(good)-9]), trusted, "", 2, "altered"},
		"more behind it": {write("more", append(bytes.Clone(good), good...)), trusted, "", 2, "altered"},
		"old":            {write("old", receiptOf(t, key, now.Add(-2*time.Hour), v1.Isolated)), trusted, "", 2, "too old"},
		"no file":        {filepath.Join(dir, "absent"), trusted, "", 2, "no such file"},
		"no key":         {file, file, "", 2, "PUBLIC KEY"},
	} {
		args := []string{test.file, test.key}
		ours := []string{"receipt", "verify", test.file, "--key", test.key}
		if test.tenant != "" {
			args, ours = append(args, test.tenant), append(ours, "--tenant", test.tenant)
		}
		var out, errs bytes.Buffer
		if exit := run(t.Context(), ours, nil, &out, &errs); exit != test.exit || !strings.Contains(out.String()+errs.String(), test.want) {
			t.Errorf("%s: exit status %d, want %d and %q: %s%s", name, exit, test.exit, test.want, &out, &errs)
		}
		if strings.Contains(out.String(), "\x1b") {
			t.Errorf("%s: a name of a host reaches the terminal as it is", name)
		}
		scripted(t, name, test.exit, args...)
	}
	host := write("host", receiptOf(t, key, now, v1.Isolated, "host-1\x1b[2J"))
	scripted(t, "of one host", 0, host, trusted)
	scripted(t, "of one host in place of its tenant", 2, host, trusted, "acme")
	for _, test := range []struct {
		exit int
		args []string
	}{
		{0, []string{host}},
		{0, []string{host, "--host", "host-1\x1b[2J"}},
		{0, []string{host, "--tenant", "acme", "--host", "host-1\x1b[2J"}},
		{2, []string{host, "--tenant", "acme"}},
		{2, []string{host, "--host", "host-2"}},
		{2, []string{file, "--host", "host-1\x1b[2J"}},
	} {
		var out, errs bytes.Buffer
		if exit := run(t.Context(), append([]string{"receipt", "verify", "--key", trusted}, test.args...), nil, &out, &errs); exit != test.exit {
			t.Errorf("%q: exit status %d, want %d: %s%s", test.args, exit, test.exit, &out, &errs)
		}
	}
	for _, args := range [][]string{{file}, {file, "--key", trusted, "--at", "soon"}, {file, "--key", trusted, "--at", now.Add(3 * time.Hour).Format(time.RFC3339)}} {
		var out, errs bytes.Buffer
		if exit := run(t.Context(), append([]string{"receipt", "verify"}, args...), nil, &out, &errs); exit != 2 {
			t.Errorf("%q: exit status %d, want 2: %s%s", args, exit, &out, &errs)
		}
	}
}

// loggedOf signs a log of receipts, and returns the proof that each is in it.
func loggedOf(t *testing.T, key ed25519.PrivateKey, origin string, receipts ...[]byte) [][]byte {
	t.Helper()
	var stored []tlog.Hash
	read := tlog.HashReaderFunc(func(indexes []int64) ([]tlog.Hash, error) {
		out := make([]tlog.Hash, len(indexes))
		for i, n := range indexes {
			out[i] = stored[n]
		}
		return out, nil
	})
	size := int64(len(receipts))
	for i, data := range receipts {
		more, err := tlog.StoredHashesForRecordHash(int64(i), translog.DigestOf(data).Leaf(), read)
		if err != nil {
			t.Fatal(err)
		}
		stored = append(stored, more...)
	}
	root, err := tlog.TreeHash(size, read)
	if err != nil {
		t.Fatal(err)
	}
	head, err := (&translog.Head{Origin: origin, Size: size, Root: root}).Sign(key)
	if err != nil {
		t.Fatal(err)
	}
	out := make([][]byte, size)
	for i := range out {
		p := translog.Proof{Index: int64(i), Head: head}
		if p.Hashes, err = tlog.ProveRecord(size, int64(i), read); err != nil {
			t.Fatal(err)
		}
		out[i] = p.Marshal()
	}
	return out
}

// TestReceiptLogged: the command, and the script, verify the proof beside a receipt, or the one that is named.
func TestReceiptLogged(t *testing.T) {
	t.Parallel()
	dir, now := t.TempDir(), time.Now()
	write := writerIn(t, dir)
	key, other := ed25519.NewKeyFromSeed(bytes.Repeat([]byte{1}, ed25519.SeedSize)), ed25519.NewKeyFromSeed(bytes.Repeat([]byte{2}, ed25519.SeedSize))
	der, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		t.Fatal(err)
	}
	trusted := write("a.pem", pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}))
	good, leaks := receiptOf(t, key, now, v1.Isolated), receiptOf(t, key, now, v1.Leaks)
	proofs := loggedOf(t, key, "portcullis/receipts/0f", good, leaks, []byte("x\n"))
	file, alone := write("good", good), write("alone", good)
	proof := write("good.tlog-proof", proofs[0])
	_, head, _ := bytes.Cut(proofs[0], []byte("\n\n"))
	_, elsewhere, _ := bytes.Cut(loggedOf(t, key, "portcullis/receipts/10", good)[0], []byte("\n\n"))
	altered := bytes.Clone(proofs[0])
	altered[60] ^= 1
	for name, test := range map[string]struct {
		args []string
		exit int
		want string
	}{
		"beside it":         {[]string{file}, 0, "leaf 0 of 3 in portcullis/receipts/0f"},
		"no proof":          {[]string{alone}, 0, "no proof"},
		"named":             {[]string{alone, "--proof", proof}, 0, "leaf 0 of 3"},
		"absent":            {[]string{alone, "--proof", filepath.Join(dir, "absent")}, 2, "no such file"},
		"of another one":    {[]string{alone, "--proof", write("other", proofs[1])}, 2, "not about this receipt"},
		"altered":           {[]string{alone, "--proof", write("altered", altered)}, 2, "altered"},
		"another key":       {[]string{alone, "--proof", write("foreign", loggedOf(t, other, "portcullis/receipts/0f", good)[0])}, 2, "no key that is trusted signed"},
		"same log":          {[]string{file, "--log", write("head", head)}, 0, "leaf 0 of 3"},
		"another log":       {[]string{file, "--log", write("elsewhere", elsewhere)}, 2, "two histories"},
		"a log, no proof":   {[]string{alone, "--log", write("head", head)}, 2, "no proof for --log"},
		"no head":           {[]string{file, "--log", trusted}, 2, "checkpoint"},
		"leaks, and logged": {[]string{write("leaks", leaks), "--proof", write("leaks.tlog-proof", proofs[1])}, 1, "leaf 1 of 3"},
	} {
		var out, errs bytes.Buffer
		if exit := run(t.Context(), append([]string{"receipt", "verify", "--key", trusted}, test.args...), nil, &out, &errs); exit != test.exit ||
			!strings.Contains(out.String()+errs.String(), test.want) {
			t.Errorf("%s: exit status %d, want %d and %q: %s%s", name, exit, test.exit, test.want, &out, &errs)
		}
		switch {
		case len(test.args) == 1:
			scripted(t, name, test.exit, test.args[0], trusted)
		case test.args[1] == "--proof":
			scripted(t, name, test.exit, test.args[0], trusted, "", test.args[2])
		}
	}
	// Every shape of a path, and what was altered in some places: translog's own tests alter every byte.
	for size, index := range map[int]int{1: 0, 2: 1, 3: 2, 5: 4, 6: 3, 7: 6, 8: 0} {
		others := make([][]byte, size)
		for i := range others {
			others[i] = []byte{byte(i)}
		}
		others[index] = good
		proof := loggedOf(t, key, "portcullis/receipts/0f", others...)[index]
		scripted(t, fmt.Sprintf("leaf %d of %d", index, size), 0, alone, trusted, "", write("path", proof))
		for i := size; size > 6 && i < len(proof); i += 41 {
			altered := bytes.Clone(proof)
			altered[i] ^= 1
			scripted(t, fmt.Sprintf("byte %d altered", i), 2, alone, trusted, "", write("path", altered))
		}
	}
	hash := string(bytes.Split(proofs[0], []byte("\n"))[2]) + "\n"
	for name, change := range map[string][2]string{
		"a hash less": {hash, ""}, "a hash more": {hash, hash + hash}, "another index": {"index 0", "index 1"}, "an index of two spellings": {"index 0", "index 00"},
		"a line more": {"\n\n", "\n\n\n"}, "no index": {"index 0\n", ""},
	} {
		scripted(t, name, 2, alone, trusted, "", write("path", bytes.Replace(proofs[0], []byte(change[0]), []byte(change[1]), 1)))
	}
}
