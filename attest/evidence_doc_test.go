package attest_test

import (
	"encoding/hex"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"portcullis/attest"
	"portcullis/attest/attesttest"
)

// row is one of the negative tests in docs/evidence.md.
type row struct {
	number  int
	reasons []string
	tests   []string // PACKAGE: NAME
}

func negativeTests(t *testing.T) (rows []row) {
	t.Helper()
	_, table, ok := strings.Cut(readDoc(t), "| # | Attack | Reason | Test |\n|---|---|---|---|\n")
	if !ok {
		t.Fatal("docs/evidence.md has no table of negative tests")
	}
	for line := range strings.Lines(table) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		if len(cells) != 4 {
			t.Fatalf("row %q", line)
		}
		n, err := strconv.Atoi(strings.TrimSpace(cells[0]))
		if err != nil {
			t.Fatal(err)
		}
		r := row{number: n, tests: strings.Split(strings.TrimSpace(cells[3]), "; ")}
		for c := range strings.SplitSeq(strings.ReplaceAll(strings.TrimSpace(cells[2]), "`", ""), ", ") {
			if c != "" {
				r.reasons = append(r.reasons, c)
			}
		}
		rows = append(rows, r)
	}
	return rows
}

func readDoc(t *testing.T) string {
	t.Helper()
	b, err := os.ReadFile("../docs/evidence.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// sources joins the Go files that match.
func sources(t *testing.T, patterns ...string) string {
	t.Helper()
	var all strings.Builder
	for _, p := range patterns {
		files, err := filepath.Glob(p)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			b, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			all.Write(b)
		}
	}
	return all.String()
}

// TestNegativeTestsAreThere holds the table of docs/evidence.md against the
// sources: all 72, each test by its name, each reason a code.
func TestNegativeTestsAreThere(t *testing.T) {
	t.Parallel()
	codes := sources(t, "refusal.go", "../api/admission/session.go")
	found := map[string]string{}
	for i, r := range negativeTests(t) {
		if r.number != i+1 {
			t.Fatalf("row %d has number %d", i+1, r.number)
		}
		for _, c := range r.reasons {
			if !strings.Contains(codes, `Reason = "`+c+`"`) {
				t.Errorf("%d: no reason has code %q", r.number, c)
			}
		}
		for _, test := range r.tests {
			dir, name, _ := strings.Cut(test, ": ")
			if found[dir] == "" {
				found[dir] = sources(t, filepath.Join("..", dir, "*_test.go"))
				if dir == "attest" {
					found[dir] += sources(t, "attesttest/*.go")
				}
			}
			if !strings.Contains(found[dir], "func "+name+"(t *testing.T)") && !strings.Contains(found[dir], strconv.Quote(name)) {
				t.Errorf("%d: package %s has no test %q", r.number, dir, name)
			}
		}
	}
	if n := len(negativeTests(t)); n != 72 {
		t.Errorf("%d negative tests, want 72", n)
	}
}

// TestKeyBytes holds what docs/evidence.md says of a key's public area against
// what is demanded.
func TestKeyBytes(t *testing.T) {
	t.Parallel()
	h := attesttest.NewAttempt().Host
	policy := attest.PCRPolicy(attest.DefaultAgentPCR, h.Open())
	public := hex.EncodeToString(attesttest.AKPublic(&h.AK1.PublicKey, policy))
	point, err := h.AK1.PublicKey.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	xy := hex.EncodeToString(point[1:])
	want := "0023000b" + "00050432" + "0020" + hex.EncodeToString(policy) + "0010" + "0018000b" + "0003" + "0010" +
		"0020" + xy[:64] + "0020" + xy[64:]
	if public != want {
		t.Errorf("public area\n%s, documented\n%s", public, want)
	}
	for _, documented := range []string{"`0023 000b`", "`00050432`", "`0010 0018 000b 0003 0010`", "`008000` for PCR 15"} {
		if !strings.Contains(readDoc(t), documented) {
			t.Errorf("docs/evidence.md does not say %s", documented)
		}
	}
}

// TestEveryFieldIsDocumented: what is sent has no field that docs/evidence.md
// does not name.
func TestEveryFieldIsDocumented(t *testing.T) {
	t.Parallel()
	doc := readDoc(t)
	seen := map[reflect.Type]bool{}
	var walk func(at reflect.Type)
	walk = func(at reflect.Type) {
		for at.Kind() == reflect.Pointer || at.Kind() == reflect.Slice {
			at = at.Elem()
		}
		if at.Kind() != reflect.Struct || at == reflect.TypeFor[time.Time]() || seen[at] {
			return
		}
		seen[at] = true
		for i := range at.NumField() {
			f := at.Field(i)
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			if !strings.Contains(doc, "`"+name+"`") && !strings.Contains(doc, "."+name+"`") {
				t.Errorf("docs/evidence.md does not name %s of %v", name, at)
			}
			walk(f.Type)
		}
	}
	for _, v := range []any{
		attest.SessionRequest{}, attest.Session{}, attest.Evidence{}, attest.Seal{}, attest.SealEvidence{}, attest.Statement{},
	} {
		walk(reflect.TypeOf(v))
	}
	if len(seen) < 15 {
		t.Errorf("only %d types were looked at", len(seen))
	}
}
