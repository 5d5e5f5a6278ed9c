package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	v1 "portcullis/api/v1"
	"portcullis/cmd/portcullisd/config"
	"portcullis/fabricsm/driver/factfile"
	"portcullis/fabricsm/driver/keystore"
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/keys/keyfile"
	"portcullis/fabricsm/keys/keystest"
	"portcullis/fabricsm/sim"
	smrecord "portcullis/fabricsm/sm/replay"
	"portcullis/fabricsm/vault"

	"portcullis/fabricsm/keys"
)

// planted makes files with keys to take over, of which none is right for its device, and returns a scanner for them.
func planted(t *testing.T, f *keyFabric) (dir string, scan *keystest.Scanner) {
	t.Helper()
	dir = t.TempDir()
	var entries []keyfile.Entry
	var all []uint64
	for i, p := range f.endPorts() {
		all = append(all, keystest.Planted(i))
		entries = append(entries, keyfile.Entry{GUID: p.guid, Key: keys.New(keystest.Planted(i))})
	}
	write(t, filepath.Join(dir, "guid2mkey"), string(keyfile.Format(entries)))
	single := keystest.Planted(100)
	write(t, filepath.Join(dir, "opensm.conf"), "m_key 0x"+keystest.Hex(single)+"\n")
	return dir, keystest.New(append(all, single)...)
}

// scanHeld adds the keys that devices hold.
func scanHeld(scan *keystest.Scanner, f *keyFabric) (n int) {
	for _, p := range f.endPorts() {
		if p.key == 0 {
			continue
		}
		n++
		var b [8]byte
		for i := range b {
			b[i] = byte(p.key >> (56 - 8*i))
		}
		scan.Bytes("key of "+p.at, b[:])
	}
	return n
}

// scanSecrets adds the secrets that the keys are derived from, and those that open them.
func scanSecrets(t *testing.T, scan *keystest.Scanner, rootFile string, facts string) {
	t.Helper()
	root, err := vault.FileRoot(rootFile)
	if err != nil {
		t.Fatal(err)
	}
	list, err := factfile.Read("facts", strings.NewReader(facts))
	if err != nil {
		t.Fatal(err)
	}
	c, err := keystore.Read(list, root)
	if err != nil {
		t.Fatal(err)
	}
	if len(c.Records) == 0 || c.Master.IsZero() {
		t.Fatalf("%d records in the store, no master: %v", len(c.Records), c.Master.IsZero())
	}
	scan.Bytes("master", c.Master.Reveal())
	scan.Bytes("check key", c.Check.Reveal())
}

// TestServiceShowsNoKey: keys that are taken over, given out, given back and given
// out again are in nothing that the service writes, logs or answers.
func TestServiceShowsNoKey(t *testing.T) {
	t.Parallel()
	f := servedKeyFabric(t, sim.Modern())
	imports, scan := planted(t, f)
	dir, address := install(t, "--fabric-port", "ibsim:"+f.client.Socket+"/sm")
	file := filepath.Join(dir, "portcullisd.yaml")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for from, to := range map[string]string{
		`    import: ""`:         `    import: ` + imports,
		`    import_options: ""`: `    import_options: ` + filepath.Join(imports, "opensm.conf"),
		"log_level: info":        "log_level: debug",
	} {
		if !strings.Contains(string(text), from) {
			t.Fatalf("the configuration has no %q", from)
		}
		text = []byte(strings.Replace(string(text), from, to, 1))
	}
	write(t, file, string(text))
	d := start(t, dir)
	c, ctx := operator(t, dir, address), t.Context()
	stand := func(state string) {
		t.Helper()
		eventually(t, "all devices "+state, func() (bool, string) {
			k, err := c.Keys().Get(ctx)
			return err == nil && k.Devices[state] == len(f.endPorts()), ""
		})
	}
	stand("held")
	if n := scanHeld(scan, f); n != len(f.endPorts()) {
		t.Fatalf("%d devices hold a key", n)
	}
	released(t, c)
	if _, err := c.Keys().Release(ctx, v1.KeyRelease{Resume: true}); err != nil {
		t.Fatal(err)
	}
	stand("held")
	scanHeld(scan, f)
	if _, err := c.Keys().Move(ctx, v1.KeyMove{GUID: f.endPorts()[0].guid}); err == nil {
		t.Error("a key that is not withheld was moved")
	} else {
		scan.CleanValue(t, err)
	}
	stored, err := c.Keys().Sealed(ctx)
	if err != nil {
		t.Fatal(err)
	}
	scanSecrets(t, scan, filepath.Join(dir, "keys.root"), strings.Join(stored.Facts, "\n")+"\n")
	secret, err := os.ReadFile(filepath.Join(dir, "keys.root"))
	if err != nil {
		t.Fatal(err)
	}
	scan.Bytes("root", []byte(strings.TrimSpace(string(secret))))
	scan.Clean(t, "sealed facts", []byte(strings.Join(stored.Facts, "\n")))

	eventually(t, "subnet administration is shown", func() (bool, string) {
		_, code := fetchRoute(t, dir, address, "/v1/fabric/sa")
		return code == http.StatusOK, ""
	})
	asked := 0
	for _, path := range append(getRoutes(t, f), "/metrics", "/metrics/fabric", "/livez", "/readyz", "/version") {
		body, code := fetchRoute(t, dir, address, path)
		if code >= 500 && path != "/readyz" { // it is not: no vendor of TPMs is trusted
			t.Errorf("GET %s: %d %s", path, code, body)
		}
		if code == http.StatusOK {
			asked++
		}
		scan.Clean(t, "GET "+path, body)
	}
	if asked < 20 {
		t.Errorf("%d routes gave an answer to scan, want more", asked)
	}
	d.stop()
	scan.Clean(t, "the log", []byte(d.lines.String()))
	loaded, err := config.Load(file)
	if err != nil {
		t.Fatal(err)
	}
	scan.CleanFiles(t, loaded.StateDir)
	for _, args := range [][]string{{"--print-config"}, {"--help"}, {"--config", file, "--check"}} {
		out, err := exec.Command("portcullisd", args...).CombinedOutput()
		if err != nil {
			t.Errorf("portcullisd %v: %v\n%s", args, err, out)
		}
		scan.Clean(t, "portcullisd "+args[0], out)
	}
}

// getRoutes returns every path of the interface that GET asks, with names that there are in place of parameters.
func getRoutes(t *testing.T, f *keyFabric) (paths []string) {
	t.Helper()
	doc, err := os.ReadFile("../../docs/reference/openapi.yaml")
	if err != nil {
		t.Fatal(err)
	}
	ends := f.endPorts()
	var path string
	for line := range strings.Lines(string(doc)) {
		line = strings.TrimRight(line, "\n")
		if rest, ok := strings.CutPrefix(line, "  /"); ok && strings.HasSuffix(rest, ":") {
			path = "/" + strings.TrimSuffix(rest, ":")
			continue
		}
		if line != "    get:" || strings.HasSuffix(path, "/watch") {
			continue
		}
		switch {
		case strings.HasSuffix(path, "/routes"):
			path += "?from=" + ends[1].guid.String() + "&to=" + ends[2].guid.String()
		case strings.HasSuffix(path, "/dumps/{name}"):
			for _, name := range []string{"ibnetdiscover", "opensm-subnet-lst", "opensm-lfts", "opensm-fdbs", "opensm-mcfdbs", "guid2lid", "ibdmchk-path-sl", "ibdmchk-sl2vl"} {
				paths = append(paths, strings.Replace(path, "{name}", name, 1))
			}
			continue
		case strings.Contains(path, "/lfts/{"):
			path = path[:strings.Index(path, "{")] + "leaf1"
		}
		paths = append(paths, path)
	}
	return paths
}

// fetchRoute asks the service as its operator.
func fetchRoute(t *testing.T, dir, address, path string) ([]byte, int) {
	t.Helper()
	ca, err := os.ReadFile(filepath.Join(dir, "tls", "ca.pem"))
	if err != nil {
		t.Fatal(err)
	}
	token, err := os.ReadFile(filepath.Join(dir, "operator.token"))
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(ca)
	tr := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS13}}
	defer tr.CloseIdleConnections()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+address+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
	resp, err := (&http.Client{Transport: tr}).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return body, resp.StatusCode
}

// TestSMShowsNoKey: the same of a subnet manager that runs alone: its events, its
// state, its complaints, and a recording, which can be played back.
func TestSMShowsNoKey(t *testing.T) {
	t.Parallel()
	f := servedKeyFabric(t, sim.Modern())
	imports, scan := planted(t, f)
	s := setKeys(t, "m_key_enable: enable", "m_key_mode: random", "import: "+imports)
	events, err := os.Create(filepath.Join(t.TempDir(), "events"))
	if err != nil {
		t.Fatal(err)
	}
	defer events.Close()
	cmd := exec.Command("portcullisd", s.args(f, "--json", "--socket", filepath.Join(s.dir, "sm.sock"))...)
	cmd.Stdout = events
	d := launch(t, cmd)
	held := func() (bool, string) {
		n := 0
		for _, p := range f.endPorts() {
			if p.key != 0 && p.state == ib.PortActive {
				n++
			}
		}
		return n == len(f.endPorts()), d.lines.String()
	}
	eventually(t, "keys on all devices", held)
	scanHeld(scan, f)
	d.stop()
	told, err := os.ReadFile(events.Name())
	if err != nil || !json.Valid([]byte(strings.SplitN(string(told), "\n", 2)[0])) {
		t.Fatalf("no events: %v\n%s", err, told)
	}
	scan.Clean(t, "events", told)
	scan.Clean(t, "the log", []byte(d.lines.String()))
	scan.CleanFiles(t, s.state)
	record := filepath.Join(t.TempDir(), "record")
	capture := filepath.Join(t.TempDir(), "capture")
	out, err := exec.Command("portcullisd", s.args(f, "--once", "--record", record, "--capture", capture)...).CombinedOutput()
	if err != nil {
		t.Errorf("with --record: %v\n%s", err, out)
	}
	if b, err := os.ReadFile(capture); err != nil || len(b) < 10000 {
		t.Errorf("a capture of %d bytes, %v", len(b), err)
	} else {
		scan.Clean(t, "capture", b)
	}
	scan.Clean(t, "what it says of the record", out)
	if b, err := os.ReadFile(record); err != nil || len(b) < 10000 {
		t.Errorf("a record of %d bytes, %v", len(b), err)
	} else {
		scan.Clean(t, "record", b)
		if r, err := smrecord.Replay(bytes.NewReader(b), recordedEngine); err != nil || r.Differs != nil || r.Steps < 20 {
			t.Errorf("replay: %v, %+v", err, r)
		}
	}
	scan.Clean(t, "report", []byte(s.once(t, f)))
	f.held(t)

	// The rest is complaints.
	write(t, filepath.Join(imports, "guid2mkey"), "0x0000000000100000 0x"+keystest.Hex(keystest.Planted(3))+" extra\n")
	for name, args := range map[string][]string{
		"a wrong line": s.args(f, "--once"),
		"no state":     {"sm", "--port", "ibsim:" + f.client.Socket + "/sm", "--config", s.config, "--once"},
	} {
		out, err := exec.Command("portcullisd", args...).CombinedOutput()
		if err == nil {
			t.Errorf("%s: no error\n%s", name, out)
		}
		scan.Clean(t, name, out)
	}
}
