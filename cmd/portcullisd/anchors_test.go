package main

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"portcullis/api/client"
	v1 "portcullis/api/v1"
	"portcullis/attest/tpm/tpmtest"
	"portcullis/fabricsm/transport/ibsim/ibsimtest"
)

// collector keeps lines: those of a system log on this machine, or the bodies of requests.
type collector struct {
	mu    sync.Mutex
	lines []string
}

func (c *collector) add(line string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lines = append(c.lines, line)
}

func (c *collector) all() string { c.mu.Lock(); defer c.mu.Unlock(); return strings.Join(c.lines, "") }

// syslogd takes messages at a datagram socket, and returns its path.
func (c *collector) syslogd(t *testing.T) string {
	t.Helper()
	path := filepath.Join(tpmtest.ShortDir(t), "log")
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	go func() {
		buf := make([]byte, 8192)
		for {
			n, err := conn.Read(buf)
			if err != nil {
				return
			}
			c.add(string(buf[:n]) + "\n")
		}
	}()
	return path
}

// website takes anchors by POST and answers a GET with them. It returns its URL and the file of its CA.
func (c *collector) website(t *testing.T) (url, ca string) {
	t.Helper()
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			_, _ = io.WriteString(w, c.all())
			return
		}
		body, _ := io.ReadAll(r.Body)
		c.add(string(body))
	}))
	t.Cleanup(s.Close)
	ca = filepath.Join(t.TempDir(), "ca.pem")
	write(t, ca, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})))
	return s.URL + "/anchors", ca
}

// stateDir returns the state directory of an installation.
func stateDir(t *testing.T, dir string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, "portcullisd.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile(`(?m)^state_dir: "?([^"\n]+)"?$`).FindSubmatch(text)
	if m == nil {
		t.Fatal("the configuration has no state_dir")
	}
	return string(m[1])
}

// putCopy copies a state directory, as cp -a does, in place of what is at to.
func putCopy(t *testing.T, from, to string) {
	t.Helper()
	if err := os.RemoveAll(to); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), "cp", "-a", from, to).CombinedOutput(); err != nil {
		t.Fatalf("cp: %v\n%s", err, out)
	}
}

// settled waits until the fabric is managed under the intent of this start.
func (d *process) settled(c *client.Client) {
	d.t.Helper()
	eventually(d.t, "a settled fabric", func() (bool, string) {
		s, err := c.SM().Get(d.t.Context())
		return err == nil && s.Settled && strings.Contains(d.lines.String(), "settled with revision"), fmt.Sprint(s, err)
	})
}

// TestRolledBackState does what finding D4 did, with real parts: the state is copied, a host is released, the copy is
// put back. The host must not come back, and the service names the roll-back, by a file of anchors, or by a web server
// that answers with them. Without anchors the host does come back: they are what prevents it.
func TestRolledBackState(t *testing.T) {
	t.Parallel()
	tpmtest.Require(t)
	for _, by := range []string{"file", "webhook", "nothing"} {
		t.Run("by "+by, func(t *testing.T) {
			t.Parallel()
			vendor := tpmtest.ShortDir(t)
			lab := ibsimtest.Start(t, []byte(oneSwitch))
			h1 := newMachine(t, vendor, &machine{id: "h1", nodeGUID: 0x200000, place: "0x100000/1", route: "0,1,1", onLeaf: "1"})
			h2 := newMachine(t, vendor, &machine{id: "h2", nodeGUID: 0x300000, place: "0x100000/2", route: "0,1,2", onLeaf: "2"})
			dir, address := install(t, "--fabric-port", "ibsim:"+lab.Socket()+"/sm")
			configure(t, dir, h1)
			anchors := filepath.Join(t.TempDir(), "anchors")
			var log, web collector
			if by != "nothing" {
				url, ca := web.website(t)
				write(t, filepath.Join(dir, "hook.secret"), "0123456789abcdef\n")
				edit(t, dir, map[string]string{
					"  anchors: []": fmt.Sprintf("  anchors:\n  - {file: %s}\n  - {syslog: \"unix:%s\"}\n  - {webhook: \"%s\", ca: %s, secret: hook.secret, read: true}\n", anchors, log.syslogd(t), url, ca),
					"  every: 1m":   "  every: 1s",
				})
			}
			c, ctx, state, kept := operator(t, dir, address), t.Context(), stateDir(t, dir), filepath.Join(t.TempDir(), "copy")

			d := start(t, dir)
			h1.serve(dir, address)
			h2.serve(dir, address)
			trustBoots(t, c, c, h1)
			if _, err := c.Inventory().Import(ctx, []v1.InventoryFile{{Name: "rack.yaml", Content: "hosts:\n" + h1.inventory() + h2.inventory()}}, v1.RepairTicket{}, false); err != nil {
				t.Fatal(err)
			}
			if _, err := c.Tenants().Create(ctx, v1.NewTenant{Name: "acme"}); err != nil {
				t.Fatal(err)
			}
			if _, err := c.Clusters().Create(ctx, v1.NewCluster{Name: "train", Tenant: "acme"}); err != nil {
				t.Fatal(err)
			}
			for _, h := range []*machine{h1, h2} {
				if _, err := c.Hosts().Assign(ctx, h.id, v1.Assignment{Cluster: "train"}); err != nil {
					t.Fatal(err)
				}
				h.provision(t)
			}
			key := phase(t, c, "h1", v1.PhaseAdmitted).Status.PKey.Full().String()
			phase(t, c, "h2", v1.PhaseAdmitted)
			d.stop()
			putCopy(t, state, kept)

			d = start(t, dir)
			d.settled(c)
			if _, err := c.Hosts().Release(client.IfMatch(ctx, client.AnyVersion), "h1"); err != nil {
				t.Fatal(err)
			}
			phase(t, c, "h1", v1.PhaseQuarantined)
			wantPKeys(t, lab, h1, "")
			d.stop()
			putCopy(t, kept, state)
			if by == "webhook" { // the machine with the file is lost, too
				if err := os.Remove(anchors); err != nil {
					t.Fatal(err)
				}
			}

			d = start(t, dir)
			d.settled(c)
			if by == "nothing" {
				phase(t, c, "h1", v1.PhaseAdmitted)
				wantPKeys(t, lab, h1, key)
				return
			}
			wantRolledBack(t, c, d, dir, address, by)
			wantPKeys(t, lab, h1, "")
			wantPKeys(t, lab, h2, key)
			phase(t, c, "h2", v1.PhaseAdmitted)
			decide(t, c, d, h1)
			wantPKeys(t, lab, h1, "")
			wantPKeys(t, lab, h2, key)
			d.stop()

			// The log goes on from here, and is anchored as another branch.
			d = start(t, dir)
			d.settled(c)
			if r, err := c.Review().Get(ctx); err != nil || r.Active {
				t.Errorf("after the review: %+v, %v", r, err)
			}
			phase(t, c, "h2", v1.PhaseAdmitted)
			verifyAnchors(t, c, dir, address, anchors, map[string]*collector{"system log": &log, "web server": &web})
		})
	}
}

// wantRolledBack requires the service to name the roll-back wherever operators look.
func wantRolledBack(t *testing.T, c *client.Client, d *process, dir, address, by string) {
	t.Helper()
	ctx := t.Context()
	r, err := c.Review().Get(ctx)
	if err != nil || !r.Active || r.RolledBack == nil || !strings.HasPrefix(r.RolledBack.Source, by+":") || r.RolledBack.Anchor.Seq <= r.RolledBack.Head.Seq {
		t.Fatalf("review %+v, %v; want one by an anchor of a %s", r, err, by)
	}
	if list, err := c.Audit().Events(ctx, v1.EventQuery{Type: "state.rolled-back"}); err != nil || len(list.Items) != 1 || list.Items[0].Severity != "critical" {
		t.Errorf("events %+v, %v", list, err)
	}
	if s, err := c.SM().Get(ctx); err != nil || len(s.Problems) == 0 || !strings.Contains(s.Problems[0], "rolled back") {
		t.Errorf("sm status %+v, %v", s, err)
	}
	for path, want := range map[string]string{"/readyz": "the state was rolled back", "/metrics": `portcullis_state_in_review{cause="rolled-back"} 1`} {
		if text := fetch(t, dir, address, path); !strings.Contains(text, want) {
			t.Errorf("%s lacks %q:\n%s", path, want, text)
		}
	}
	if !strings.Contains(d.lines.String(), "the state was rolled back: it is in review") {
		t.Errorf("the journal does not say it:\n%s", d.lines)
	}
	h, err := c.Hosts().Get(ctx, "h1")
	if err != nil || h.Status.Phase == v1.PhaseAdmitted {
		t.Errorf("host h1 %+v, %v; want it not admitted", h, err)
	}
}

// fetch returns what the service answers an operator at a path.
func fetch(t *testing.T, dir, address, path string) string {
	t.Helper()
	token, err := os.ReadFile(filepath.Join(dir, "operator.token"))
	if err != nil {
		t.Fatal(err)
	}
	ca, err := os.ReadFile(filepath.Join(dir, "tls", "ca.pem"))
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ca)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+address+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}
	defer transport.CloseIdleConnections()
	resp, err := (&http.Client{Transport: transport}).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// decide rejects h1, which was released, and ends the review.
func decide(t *testing.T, c *client.Client, d *process, h1 *machine) {
	t.Helper()
	ctx := t.Context()
	if _, err := c.Review().Reject(ctx, v1.ReviewDecision{Hosts: []string{h1.id}, Reason: "it was released"}); err != nil {
		t.Fatal(err)
	}
	phase(t, c, h1.id, v1.PhaseQuarantined)
	if r, err := c.Review().End(ctx, v1.ReviewEnd{Reason: "the copy is all there is"}); err != nil || r.Active {
		t.Fatalf("end: %+v, %v", r, err)
	}
	d.settled(c)
}

// verifyAnchors has the program of operators compare the log with what each place got.
func verifyAnchors(t *testing.T, c *client.Client, dir, address, file string, others map[string]*collector) {
	t.Helper()
	program := operatorProgram(t)
	keys, err := c.Results().JWKS(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	set := filepath.Join(t.TempDir(), "jwks.json")
	write(t, set, string(keys))
	head, err := c.Audit().Head(t.Context())
	if err != nil || head.Branch != 1 {
		t.Fatalf("head %+v, %v; want branch 1", head, err)
	}
	want := fmt.Sprintf(`"branch":1,"seq":%d,`, head.Seq)
	files := map[string]string{"file": file}
	for name, from := range others {
		eventually(t, "the head of branch 1 in the "+name, func() (bool, string) { return strings.Contains(from.all(), want), from.all() })
		files[name] = filepath.Join(t.TempDir(), "anchors")
		write(t, files[name], from.all())
	}
	for name, anchors := range files {
		cmd := exec.CommandContext(t.Context(), program, "audit", "verify", "--anchor", anchors, "--keys", set,
			"--service", "https://"+address, "--ca", filepath.Join(dir, "tls", "ca.pem"), "--token-file", filepath.Join(dir, "operator.token"))
		out, err := cmd.CombinedOutput()
		if err != nil || !strings.Contains(string(out), "anchored heads are in it") || !strings.Contains(string(out), "each of them is signed") {
			t.Errorf("audit verify with the %s: %v\n%s", name, err, out)
		}
		if name != "file" && !strings.Contains(string(out), "the others are older than a rollback that an operator accepted") {
			t.Errorf("audit verify with the %s tells nothing of the anchors of what was lost:\n%s", name, out)
		}
	}
}

// Places that cannot be reached, and a file that cannot be read, hold up neither the start of the service nor its end,
// nor the anchors in others.
func TestAnchorsThatFail(t *testing.T) {
	t.Parallel()
	dir, address := install(t, "--fabric-port", nobody())
	here := t.TempDir()
	good, garbage := filepath.Join(here, "good"), filepath.Join(here, "garbage")
	write(t, garbage, "no anchor\n")
	edit(t, dir, map[string]string{
		"  anchors: []": fmt.Sprintf("  anchors:\n  - {file: %s}\n  - {file: %s}\n  - {syslog: \"unix:%s/none\"}\n  - {webhook: \"https://127.0.0.1:1/\", read: true}\n", good, garbage, here),
		"  every: 1m":   "  every: 1s",
	})
	d := start(t, dir)
	if _, err := operator(t, dir, address).Tenants().Create(t.Context(), v1.NewTenant{Name: "acme"}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`portcullis_audit_anchor_writes_total{anchor="webhook:https://127.0.0.1:1/",result="failed"} [1-9]`,
		fmt.Sprintf(`portcullis_audit_anchor_writes_total{anchor="syslog:unix:%s/none",result="failed"} [1-9]`, here),
		fmt.Sprintf(`portcullis_audit_anchor_writes_total{anchor="file:%s",result="written"} [1-9]`, good),
		fmt.Sprintf(`portcullis_audit_anchor_writes_total{anchor="file:%s",result="written"} [1-9]`, garbage),
	} {
		eventually(t, want, func() (bool, string) {
			text := fetch(t, dir, address, "/metrics")
			return regexp.MustCompile(want).MatchString(text), text
		})
	}
	if said := d.lines.String(); !strings.Contains(said, "anchors of the audit log are not readable") || !strings.Contains(said, "line 1: want a JSON object") {
		t.Errorf("the journal does not name the file that is not readable:\n%s", said)
	}
	head, err := operator(t, dir, address).Audit().Head(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	d.stop()
	data, err := os.ReadFile(good)
	if err != nil {
		t.Fatal(err)
	}
	// The service may have written more entries since, and anchors the last one.
	lines := strings.Split(strings.TrimSpace(string(data)), "\n")
	var last struct{ Seq uint64 }
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &last); err != nil || last.Seq < head.Seq {
		t.Errorf("%v: the file has nothing for entry %d or a later one:\n%s", err, head.Seq, data)
	}
}
