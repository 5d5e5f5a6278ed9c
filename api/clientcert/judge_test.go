package clientcert

import (
	"bufio"
	"bytes"
	"crypto/x509"
	"encoding/json"
	"errors"
	"net/url"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"portcullis/api/credential"
	"portcullis/packaging/testenv"
)

// question is what testdata/spiffe reads.
type question struct {
	ID     string
	Domain string
	Chain  [][]byte
	Roots  [][]byte
	At     time.Time
}

// judged has the library of the SPIFFE project answer questions: with the ID that it sees, "" for none.
func judged(t *testing.T, all []question) (answers []string) {
	t.Helper()
	var in, errs bytes.Buffer
	for _, q := range all {
		if err := json.NewEncoder(&in).Encode(q); err != nil {
			t.Fatal(err)
		}
	}
	root, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), testenv.Program(t, "go"), "run", "-modfile="+filepath.Join("packaging", "judges.mod"), "./api/clientcert/testdata/spiffe")
	cmd.Dir, cmd.Stdin, cmd.Stderr = root, &in, &errs
	out, err := cmd.Output()
	if err != nil {
		if strings.Contains(errs.String(), "dial tcp") || strings.Contains(errs.String(), "module lookup disabled") {
			testenv.Need(t, errors.New("the modules of packaging/judges.mod are not at hand: "+errs.String()))
		}
		t.Fatalf("the judge: %v\n%s", err, errs.String())
	}
	lines := bufio.NewScanner(bytes.NewReader(out))
	if !lines.Scan() || lines.Text() != "ready" {
		t.Fatalf("the judge begins with %q", lines.Text())
	}
	for lines.Scan() {
		id, err := strconv.Unquote(lines.Text())
		if err != nil {
			t.Fatal(err)
		}
		answers = append(answers, id)
	}
	if len(answers) != len(all) {
		t.Fatalf("%d answers to %d questions", len(answers), len(all))
	}
	return answers
}

// TestJudge: the library of the SPIFFE project reads the IDs that ParseID does and no others, but for the bounds, which it has not. A certificate
// that it refuses is refused here.
func TestJudge(t *testing.T) {
	t.Parallel()
	var all []question
	for _, tt := range ids {
		all = append(all, question{ID: tt.text})
	}
	root := newIssuer(t, nil, "root")
	twin := newIssuer(t, nil, "root")
	bound := newIssuer(t, root, "bound", func(c *x509.Certificate) {
		c.PermittedURIDomains, c.PermittedDNSDomainsCritical = []string{"other.example"}, true
	})
	good := []string{uri}
	chains := []struct {
		name  string
		good  bool
		shown []*x509.Certificate
	}{
		{"good", true, []*x509.Certificate{root.svid(good)}},
		{"without an extended key usage", true, []*x509.Certificate{root.svid(good, func(c *x509.Certificate) { c.ExtKeyUsage = nil })}},
		{"a DNS name beside it", true, []*x509.Certificate{root.svid(good, func(c *x509.Certificate) { c.DNSNames = []string{"x.example.org"} })}},
		{"another authority", false, []*x509.Certificate{twin.svid(good)}},
		{"ended", false, []*x509.Certificate{root.svid(good, func(c *x509.Certificate) { c.NotAfter = noon.Add(-time.Second) })}},
		{"an authority", false, []*x509.Certificate{root.svid(good, func(c *x509.Certificate) { c.IsCA, c.KeyUsage = true, c.KeyUsage|x509.KeyUsageCertSign })}},
		{"signs lists", false, []*x509.Certificate{root.svid(good, func(c *x509.Certificate) { c.KeyUsage |= x509.KeyUsageCRLSign })}},
		{"two URIs", false, []*x509.Certificate{root.svid([]string{uri, uri + "2"})}},
		{"two URIs, of another scheme", false, []*x509.Certificate{root.svid(good, func(c *x509.Certificate) { c.URIs = append(c.URIs, &url.URL{Scheme: "https", Host: "x.example"}) })}},
		{"another trust domain", false, []*x509.Certificate{root.svid([]string{"spiffe://evil.example/x"})}},
		{"name constraints", false, []*x509.Certificate{bound.svid(good), bound.cert}},
		{"one between is missing", false, []*x509.Certificate{bound.svid(good)}},
		{"encoded", false, []*x509.Certificate{root.svid(nil, rawURI(t, "spiffe://example.org/%61"))}},
		{"a query", false, []*x509.Certificate{root.svid(nil, rawURI(t, uri+"?"))}},
	}
	for _, c := range chains {
		q := question{Domain: "example.org", Roots: [][]byte{root.cert.Raw}, At: noon}
		for _, one := range c.shown {
			q.Chain = append(q.Chain, one.Raw)
		}
		all = append(all, q)
	}
	answers := judged(t, all)
	for n, tt := range ids {
		bounded := len(tt.text) <= MaxID && !strings.Contains(tt.text, strings.Repeat("a", maxTrustDomain+1))
		if got := answers[n]; bounded && (got != "") != tt.ok || got != "" && got != tt.text {
			t.Errorf("%.100q: the judge sees %.100q, ParseID accepts it: %v", tt.text, got, tt.ok)
		}
	}
	a := authorityOf(root)
	a.Rules = []Rule{{SPIFFE: "spiffe://example.org/", Role: credential.Viewer}}
	v := verifier(t, a)
	for n, c := range chains {
		got := answers[len(ids)+n]
		who, refused := ask(t, v, noon, c.shown...)
		if (got != "") != c.good || (refused == nil) != c.good || c.good && who.Name != "x509:site:"+got {
			t.Errorf("%s: the judge sees %q, we say %+v, %v; want good: %v", c.name, got, who, refused, c.good)
		}
	}
}
