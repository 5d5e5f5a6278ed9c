//go:build attack

package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/xml"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"portcullis/api/client"
	"portcullis/api/credential"
	v1 "portcullis/api/v1"
	"portcullis/fabricsm/sim"
	"portcullis/fabricsm/sim/netlist"
	"portcullis/fabricsm/sim/simtest"
	"portcullis/packaging/testenv"
)

var (
	attackTime = flag.Duration("attack.time", time.Minute, "how long requests are made up")
	attackSeed = flag.Uint64("attack.seed", uint64(time.Now().UnixNano()), "of the requests")
)

// Bounds that hold whatever is sent.
const (
	attackMemory   = 256 << 20       // of the service in all
	attackPatience = 2 * time.Second // for an answer to an operator, meanwhile
)

// underAttack is a service over a simulated fabric, which an operator asks all the time.
type underAttack struct {
	t       *testing.T
	dir     string
	address string
	service *process
	c       *client.Client
	http    *http.Client
	tokens  map[string]string // by role; "" has none
}

// newUnderAttack starts a service. Settings replace those of the configuration.
func newUnderAttack(t *testing.T, settings ...string) *underAttack {
	t.Helper()
	l, err := netlist.FatTree2(netlist.Shape{Hosts: 12, Radix: 8})
	if err != nil {
		t.Fatal(err)
	}
	at := simtest.Serve(t, sim.NewWith(l, sim.Options{Device: sim.Modern()}))
	a := &underAttack{t: t}
	a.dir, a.address = install(t, "--fabric-port", "ibsim:"+at.Socket+"/sm")
	operatorToken, operatorDigest := credential.New()
	viewer, viewerDigest := credential.New()
	scoped, scopedDigest := credential.New()
	a.tokens = map[string]string{"": "", "wrong": "pcop_" + strings.Repeat("0", 43), "operator": operatorToken, "viewer": viewer, "scoped": scoped}
	write(t, filepath.Join(a.dir, "tokens.yaml"), fmt.Sprintf(`tokens:
  - {name: olga, role: operator, sha256: %s}
  - {name: vic, role: viewer, sha256: %s}
  - {name: sam, role: operator, sha256: %s, p_keys: ["0x0100-0x01ff"]}
`, operatorDigest, viewerDigest, scopedDigest))
	file := filepath.Join(a.dir, "portcullisd.yaml")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	write(t, file, strings.NewReplacer(settings...).Replace(string(text)))
	a.service = start(t, a.dir)
	a.c = withToken(t, a.dir, a.address, operatorToken)
	ca, err := os.ReadFile(filepath.Join(a.dir, "tls", "ca.pem"))
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ca)
	a.http = &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS13}, ForceAttemptHTTP2: true}}
	if _, err := a.c.Tenants().Create(t.Context(), v1.NewTenant{Name: "acme"}); err != nil {
		t.Fatal(err)
	}
	if _, err := a.c.Clusters().Create(t.Context(), v1.NewCluster{Name: "acme-1", Tenant: "acme"}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "a settled fabric", func() (bool, string) {
		s, err := a.c.SM().Get(t.Context())
		return err == nil && s.Settled, fmt.Sprint(s, err)
	})
	return a
}

// judged runs an attack, and has an operator ask meanwhile. After it the service must be the same process, ready, its fabric
// settled, its memory bounded, and no handler may have panicked.
func (a *underAttack) judged(attack func()) {
	a.t.Helper()
	ctx, cancel := context.WithCancel(a.t.Context())
	var asks sync.WaitGroup
	asks.Go(func() {
		for ctx.Err() == nil {
			start := time.Now()
			_, err := a.c.SM().Get(ctx)
			if took := time.Since(start); ctx.Err() == nil && (err != nil || took > attackPatience) {
				a.t.Errorf("an operator was answered after %v: %v", took, err)
			}
			select {
			case <-ctx.Done():
			case <-time.After(100 * time.Millisecond):
			}
		}
	})
	attack()
	cancel()
	asks.Wait()
	if a.service.cmd.ProcessState != nil {
		a.t.Fatal("the service ended")
	}
	if used := residentMemory(a.t, a.service.cmd.Process.Pid); used > attackMemory {
		a.t.Errorf("the service has %d MiB, want at most %d", used>>20, attackMemory>>20)
	}
	if log := a.service.lines.String(); strings.Contains(log, "panic") {
		a.t.Errorf("a handler panicked:\n%s", lastOf(log, "panic"))
	}
	eventually(a.t, "a settled fabric after the attack", func() (bool, string) {
		s, err := a.c.SM().Get(a.t.Context())
		return err == nil && s.Settled, fmt.Sprint(s, err)
	})
}

func lastOf(log, word string) string {
	i := strings.LastIndex(log, word)
	return log[max(0, i-500):min(len(log), i+3000)]
}

// tool runs a program of others to its end, and returns what it printed.
func (a *underAttack) tool(name string, args ...string) string {
	a.t.Helper()
	testenv.Program(a.t, name)
	ctx, cancel := context.WithTimeout(a.t.Context(), 2*time.Minute)
	defer cancel()
	out, err := exec.CommandContext(ctx, name, args...).CombinedOutput()
	if err != nil {
		a.t.Fatalf("%s %v: %v\n%s", name, args, err, out)
	}
	return string(out)
}

// TestAttackTLS has sslscan try what the service takes: TLS 1.3 alone, without compression, renegotiation or old ciphers.
func TestAttackTLS(t *testing.T) {
	a := newUnderAttack(t)
	a.judged(func() {
		out := a.tool("sslscan", "--xml=-", "--no-colour", a.address)
		var found struct {
			Test struct {
				Protocols []struct {
					Type    string `xml:"type,attr"`
					Version string `xml:"version,attr"`
					Enabled int    `xml:"enabled,attr"`
				} `xml:"protocol"`
				Compression struct {
					Supported int `xml:"supported,attr"`
				} `xml:"compression"`
				Heartbleed []struct {
					Vulnerable int `xml:"vulnerable,attr"`
				} `xml:"heartbleed"`
				Ciphers []struct {
					Version string `xml:"sslversion,attr"`
					Bits    int    `xml:"bits,attr"`
				} `xml:"cipher"`
			} `xml:"ssltest"`
		}
		if err := xml.Unmarshal([]byte(out[strings.Index(out, "<"):]), &found); err != nil {
			t.Fatalf("sslscan: %v\n%s", err, out)
		}
		if len(found.Test.Protocols) < 5 || len(found.Test.Ciphers) == 0 {
			t.Errorf("sslscan tried too little:\n%s", out)
		}
		for _, p := range found.Test.Protocols {
			if want := p.Type == "tls" && p.Version == "1.3"; (p.Enabled == 1) != want {
				t.Errorf("%s %s: enabled %d", p.Type, p.Version, p.Enabled)
			}
		}
		for _, c := range found.Test.Ciphers {
			if c.Version != "TLSv1.3" || c.Bits < 128 {
				t.Errorf("cipher %+v", c)
			}
		}
		if found.Test.Compression.Supported != 0 {
			t.Error("compression is taken")
		}
		for _, h := range found.Test.Heartbleed {
			if h.Vulnerable != 0 {
				t.Errorf("heartbleed %+v", h)
			}
		}
	})
}

// TestAttackSlowly has slowhttptest send headers, bodies and reads as slowly as it can, over more connections than an address may have.
func TestAttackSlowly(t *testing.T) {
	a := newUnderAttack(t)
	for _, mode := range [][]string{{"-H"}, {"-B", "-s", "8192"}, {"-X", "-k", "3"}} {
		t.Run(mode[0], func(t *testing.T) {
			a.t = t
			a.judged(func() {
				args := append(mode, "-c", "500", "-r", "200", "-i", "2", "-l", "15", "-p", "2", "-t", "POST", "-u", "https://"+a.address+"/v1/attest/sessions")
				if out := a.tool("slowhttptest", args...); !strings.Contains(out, "Exit status") {
					t.Errorf("slowhttptest did not come to its end:\n%s", out)
				}
			})
		})
	}
}

// TestAttackAtFullSpeed has h2load ask without a credential as fast as it can.
func TestAttackAtFullSpeed(t *testing.T) {
	a := newUnderAttack(t)
	body := filepath.Join(t.TempDir(), "body")
	write(t, body, `{"host":"`+strings.Repeat("h", 60<<10)+`"}`)
	for name, args := range map[string][]string{
		"livez":    {"https://" + a.address + "/livez"},
		"sessions": {"-d", body, "-H", "content-type: application/json", "https://" + a.address + "/v1/attest/sessions"},
		"hosts":    {"-H", "authorization: Bearer pcop_wrong", "https://" + a.address + "/v1/hosts"},
	} {
		t.Run(name, func(t *testing.T) {
			a.t = t
			a.judged(func() {
				out := a.tool("h2load", append([]string{"-D", "10", "-c", "64", "-m", "16"}, args...)...)
				m := regexp.MustCompile(`status codes: (\d+) 2xx, (\d+) 3xx, (\d+) 4xx, (\d+) 5xx`).FindStringSubmatch(out)
				if m == nil {
					t.Fatalf("h2load has no status codes:\n%s", out)
				}
				if total, _ := strconv.Atoi(m[3]); total == 0 {
					t.Errorf("no request was refused:\n%s", out)
				}
				t.Log(m[0])
			})
		})
	}
}

// TestAttackAPI makes up requests from the OpenAPI document that the service serves, by every credential, and judges each answer.
func TestAttackAPI(t *testing.T) {
	a := newUnderAttack(t, "requests: 100\n", "requests: 1e6\n", "attestations: 20\n", "attestations: 1e6\n", "refusals: 3\n", "refusals: 1e6\n",
		"strangers: 2000\n", "strangers: 1e6\n", "tokens: 1000\n", "tokens: 1e6\n", "connections: 50\n", "connections: 1e6\n")
	doc := readDocument(t, a)
	t.Logf("%d operations; the same again with: -attack.seed %d", len(doc.operations), *attackSeed)
	r := rand.New(rand.NewPCG(*attackSeed, 0))
	sent, answered := 0, map[int]int{}
	a.judged(func() {
		for end := time.Now().Add(*attackTime); time.Now().Before(end) && !t.Failed(); {
			for i := range doc.operations {
				op := &doc.operations[i]
				for role, token := range a.tokens {
					req := doc.request(r, op, token)
					sent++
					answered[a.judge(doc, op, role, req)]++
				}
			}
		}
	})
	t.Logf("%d requests; answers by status: %v", sent, answered)
	if answered[http.StatusOK] == 0 || answered[http.StatusUnprocessableEntity] == 0 || answered[http.StatusForbidden] == 0 || answered[http.StatusUnauthorized] == 0 {
		t.Errorf("the requests do not reach what they are to test: %v", answered)
	}
}

// judge sends a request, and returns the status of its answer; 0 is none.
func (a *underAttack) judge(doc *document, op *operation, role string, made *madeUp) int {
	ctx, cancel := context.WithTimeout(a.t.Context(), 10*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, op.method, "https://"+a.address+made.path, strings.NewReader(made.body))
	if err != nil {
		return 0 // no client could send it
	}
	for k, v := range made.header {
		req.Header.Set(k, v)
	}
	resp, err := a.http.Do(req)
	if err != nil {
		a.t.Errorf("%s: no answer: %v", made.describe(op, role), err)
		return 0
	}
	defer resp.Body.Close()
	if strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") {
		return resp.StatusCode
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, 16<<20))
	if err != nil {
		a.t.Errorf("%s: %d: %v", made.describe(op, role), resp.StatusCode, err)
	}
	complain := func(what string) {
		a.t.Errorf("%s: %d: %s\n%.600s", made.describe(op, role), resp.StatusCode, what, body)
	}
	status := resp.StatusCode
	switch ok := status < 300; {
	case status >= 500 && status != http.StatusServiceUnavailable:
		complain("want no fault of the service")
	case ok && op.guarded && (role == "" || role == "wrong"):
		complain("want that a credential is needed")
	case ok && op.guarded && op.method != http.MethodGet && role == "viewer":
		complain("want that a viewer may not")
	}
	if len(body) > 0 && strings.Contains(resp.Header.Get("Content-Type"), "json") {
		var v any
		if err := json.Unmarshal(body, &v); err != nil {
			complain("not JSON: " + err.Error())
		} else if err := doc.fits(op, status, v); err != nil {
			complain("not as the document has it: " + err.Error())
		}
	}
	return status
}
