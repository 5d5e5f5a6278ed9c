package attest_test

import (
	"encoding/hex"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"portcullis/attest"
	"portcullis/attest/attesttest"
)

// row is one of the tests in docs/reference/evidence.md.
type row struct {
	id      string
	reasons []string
	tests   []string // PACKAGE: NAME
}

// table reads the table whose first column has this head.
func table(t *testing.T, head string) (rows []row) {
	t.Helper()
	_, rest, ok := strings.Cut(readDoc(t), "| "+head+" | Attack | Reason | Test |\n|---|---|---|---|\n")
	if !ok {
		t.Fatalf("docs/reference/evidence.md has no table of %q", head)
	}
	for line := range strings.Lines(rest) {
		if !strings.HasPrefix(line, "|") {
			break
		}
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		if len(cells) != 4 {
			t.Fatalf("row %q", line)
		}
		r := row{id: strings.TrimSpace(cells[0]), tests: strings.Split(strings.TrimSpace(cells[3]), "; ")}
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
	b, err := os.ReadFile("../docs/reference/evidence.md")
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

// TestNegativeTestsAreThere compares the tables of docs/reference/evidence.md with the sources: all 72 tests, the threats, and the
// data that hosts hold. Each test is there by its name, and each reason is a code.
func TestNegativeTestsAreThere(t *testing.T) {
	t.Parallel()
	numbered, threats, held := table(t, "#"), table(t, "Threat"), table(t, "Held")
	if len(numbered) != 72 || len(threats) != 10 {
		t.Errorf("%d negative tests and %d threats, want 72 and 10", len(numbered), len(threats))
	}
	for i, r := range numbered {
		if r.id != strconv.Itoa(i+1) {
			t.Errorf("row %d has number %s", i+1, r.id)
		}
	}
	for i, r := range threats {
		if r.id != "T"+strconv.Itoa(98+i) {
			t.Errorf("row %d of threats is %s", i+1, r.id)
		}
	}
	kinds := map[string]bool{}
	for _, r := range held {
		kinds[r.id] = true
	}
	for _, kind := range []string{"status token", "lock ticket", "certificate"} {
		if !kinds[kind] {
			t.Errorf("no row is about a %s", kind)
		}
	}
	codes := sources(t, "refusal.go", "../api/attestation/*.go")
	answers := sources(t, "../api/attestation/*.go", "../api/v1/*.go")
	found := map[string]string{}
	for _, r := range slices.Concat(numbered, threats, held) {
		for _, c := range r.reasons {
			ours := strings.Contains(codes, `Reason = "`+c+`"`)
			if !ours && (!kinds[r.id] || !strings.Contains(answers, strconv.Quote(c))) {
				t.Errorf("%s: no reason has code %q", r.id, c)
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
				t.Errorf("%s: package %s has no test %q", r.id, dir, name)
			}
		}
	}
}

// TestKeyBytes compares docs/reference/evidence.md with the required public area of a key.
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
			t.Errorf("docs/reference/evidence.md does not say %s", documented)
		}
	}
}

// TestEveryFieldIsDocumented checks that docs/reference/evidence.md names every field that is sent.
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
				t.Errorf("docs/reference/evidence.md does not name %s of %v", name, at)
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

// notOfTheService are the negative tests in which no message to the service is wrong: they are about values that the
// service draws itself, and messages that it sends to hosts.
var notOfTheService = map[string]bool{"20": true, "52": true}

// TestNegativeTestsHaveTheirReasons checks that each attack in the tables is refused for a reason of its row, and that each
// row reaches the service, not the verifier alone.
func TestNegativeTestsHaveTheirReasons(t *testing.T) {
	t.Parallel()
	type attack struct {
		want attest.Reason
		sent bool // the tests of package api send it
	}
	attacks := map[string]attack{}
	add := func(name string, want attest.Reason, sent bool) {
		if _, twice := attacks[name]; twice {
			t.Errorf("two attacks are named %q", name)
		}
		attacks[name] = attack{want, sent}
	}
	evidence := slices.Concat(attesttest.Attacks(), attesttest.BootAttacks())
	for _, b := range attesttest.TrustedBoots() {
		evidence = append(evidence, b.Attack)
	}
	for _, a := range attesttest.Adapters() {
		evidence = append(evidence, a.Attack())
	}
	for _, a := range evidence {
		add(a.Name, a.Want, a.Service == nil)
	}
	for _, a := range attesttest.RequestAttacks() {
		add(a.Name, a.Want, !a.InProcess)
	}
	for _, r := range slices.Concat(table(t, "#"), table(t, "Threat")) {
		sent, known := false, 0
		for _, test := range r.tests {
			dir, name, _ := strings.Cut(test, ": ")
			a, ok := attacks[name]
			if dir != "attest" || !ok {
				sent = sent || dir == "api" || dir == "api/admission"
				continue
			}
			known++
			sent = sent || a.sent
			if a.want == "" && len(r.reasons) > 0 || a.want != "" && !slices.Contains(r.reasons, string(a.want)) {
				t.Errorf("%s: %q is refused for %q, and the row says %q", r.id, name, a.want, r.reasons)
			}
		}
		// If the row names attacks alone, each of its reasons is that of one.
		for _, c := range r.reasons {
			is := func(test string) bool {
				return string(attacks[strings.TrimPrefix(test, "attest: ")].want) == c
			}
			if known == len(r.tests) && !slices.ContainsFunc(r.tests, is) {
				t.Errorf("%s: no test is refused for %q", r.id, c)
			}
		}
		if sent == notOfTheService[r.id] {
			t.Errorf("%s: comes to the service: %v", r.id, sent)
		}
	}
}
