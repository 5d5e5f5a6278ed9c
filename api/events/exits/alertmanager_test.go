package exits

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"portcullis/api/events"
	"portcullis/api/events/cloudevent"
	v1 "portcullis/api/v1"
	"portcullis/api/webhook"
	"portcullis/fabricsm/ib"
	"portcullis/packaging/testenv"
)

const inTime = 30 * time.Second

// until asks until cond holds.
func until(t *testing.T, what string, cond func() bool) {
	t.Helper()
	late, tick := time.After(inTime), time.NewTicker(20*time.Millisecond)
	defer tick.Stop()
	for !cond() {
		select {
		case <-tick.C:
		case <-late:
			t.Fatalf("%s did not come about", what)
		}
	}
}

// body returns an event as it is kept until it is sent.
func body(t *testing.T, e v1.Event) []byte {
	t.Helper()
	e.ID = "5f0c2a7be1d94c36-1042-9a3c5d0b77e1f204"
	out, err := json.Marshal(cloudevent.Of(&e))
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func newAlertmanager(t *testing.T, o AlertmanagerOptions) *Alertmanager {
	t.Helper()
	a, err := NewAlertmanager(o)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func TestPosts(t *testing.T) {
	t.Parallel()
	status := http.StatusOK
	var asked []*http.Request
	var got [][]Alert
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var list []Alert
		data, err := io.ReadAll(r.Body)
		if err == nil {
			err = json.Unmarshal(data, &list)
		}
		if err != nil || !strings.HasPrefix(string(data), "[") {
			t.Errorf("%v: %s", err, data)
		}
		asked, got = append(asked, r), append(got, list)
		w.Header().Set("Location", "https://elsewhere.example/")
		w.WriteHeader(status)
	}))
	defer s.Close()
	roots := x509.NewCertPool()
	roots.AddCert(s.Certificate())
	conf := &tls.Config{RootCAs: roots}
	a := newAlertmanager(t, AlertmanagerOptions{URL: s.URL + "/am/", TLS: conf, Bearer: ib.NewSecretText("hidden"), Labels: map[string]string{"fabric": "a"}})
	if err := a.Send(t.Context(), "x", noon, body(t, of(events.LockChanged, "epoch", "h1", 0))); err != nil {
		t.Fatal(err)
	}
	r := asked[0]
	if r.Method != "POST" || r.URL.Path != "/am/api/v2/alerts" || r.Header.Get("Content-Type") != "application/json" || r.Header.Get("Authorization") != "Bearer hidden" {
		t.Errorf("%s %s %v", r.Method, r.URL, r.Header)
	}
	equal(t, "sent", got[0], "alertname=lock.changed cause=epoch fabric=a host=h1 severity=critical 0s 1h0m0s")

	// All events on record come in several requests, and none of them in an empty one.
	var all []v1.Event
	for n := range perRequest + 3 {
		all = append(all, of(events.EvidenceOutdated, "ek", fmt.Sprint("h", n), 600))
	}
	if err := a.Refresh(t.Context(), noon, all); err != nil || len(got) != 3 || len(got[1]) != perRequest || len(got[2]) != 3 {
		t.Errorf("%v, %d requests", err, len(got))
	}
	if err := a.Refresh(t.Context(), noon, nil); err != nil || len(got) != 4 || len(got[3]) != 0 {
		t.Errorf("%v, %d requests", err, len(got))
	}
	for code, about := range map[int]bool{http.StatusBadRequest: true, http.StatusTemporaryRedirect: false, http.StatusInternalServerError: false} {
		status = code
		err := a.Send(t.Context(), "x", noon, body(t, of(events.LockChanged, "epoch", "h1", 0)))
		if err == nil || webhook.AboutMessage(err) != about || strings.Contains(err.Error(), "elsewhere") {
			t.Errorf("%d: %v", code, err)
		}
	}
	// The longest alerts there can be fit into what a proxy takes.
	status = http.StatusOK
	most, large := strings.Repeat("x", 515), []v1.Event(nil)
	for n := range perRequest {
		e := of(events.DriftFound, "stray", fmt.Sprint(strings.Repeat("h", 60), n), 1)
		e.Expected, e.Seen, e.Do = most, most, most
		large = append(large, e)
	}
	if err := a.Refresh(t.Context(), noon, large); err != nil || asked[len(asked)-1].ContentLength > 1<<20 {
		t.Errorf("%v, %d bytes", err, asked[len(asked)-1].ContentLength)
	}
	if text := fmt.Sprintf("%v %+v", a.o, a.o); strings.Contains(text, "hidden") {
		t.Errorf("%s has the token", text)
	}
	stranger := newAlertmanager(t, AlertmanagerOptions{URL: s.URL})
	if err := stranger.Refresh(t.Context(), noon, nil); err == nil || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("a server that no CA knows: %v", err)
	}
}

func TestURLs(t *testing.T) {
	t.Parallel()
	for url, want := range map[string]string{
		"https://am.example.org:9093": "", "https://am.example.org/prefix/": "", "http://127.0.0.1:9093": "", "http://[::1]:9093": "",
		"http://am.example.org:9093": "over http", "http://localhost:9093": "over http", "https://u:p@am.example.org": "password", "": "want https", "ftp://h/": "want https",
		"https://h/?token=x": "want https", "https://h/#x": "want https", "https://h?": "want https", "https://h/#": "want https", "https://h:65536": "want https", "https://h:0": "want https", "https://h:": "want https",
		"https://h/am/api/v2/alerts/": "without /api/v2/alerts",
	} {
		if err := CheckURL(url); (err == nil) != (want == "") || err != nil && (!strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "u:p")) {
			t.Errorf("%q: %v, want %q", url, err, want)
		}
	}
}

// shown is an alert as Alertmanager has it.
type shown struct {
	Labels map[string]string `json:"labels"`
	Status struct {
		State string `json:"state"`
	} `json:"status"`
}

// startAlertmanager runs Debian's Alertmanager, and returns its URL.
func startAlertmanager(t *testing.T) string {
	t.Helper()
	program, dir := testenv.Program(t, "prometheus-alertmanager"), t.TempDir()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	l.Close()
	config := filepath.Join(dir, "am.yml")
	if err := os.WriteFile(config, []byte("route: {receiver: none}\nreceivers: [{name: none}]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	cmd := exec.Command(program, "--config.file="+config, "--storage.path="+filepath.Join(dir, "data"), "--web.listen-address="+address, "--cluster.listen-address=")
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait() // how it ends is its own affair
		if t.Failed() {
			t.Logf("Alertmanager said:\n%s", out.String())
		}
	})
	return "http://" + address
}

// TestRealAlertmanager has Alertmanager take what begins, what ends and what is repeated.
func TestRealAlertmanager(t *testing.T) {
	t.Parallel()
	url := startAlertmanager(t)
	a := newAlertmanager(t, AlertmanagerOptions{URL: url, Labels: map[string]string{"fabric": "hall-2"}})
	now := time.Now().UTC()
	at := func(kind, cause, host string, ago time.Duration) v1.Event {
		e := of(kind, cause, host, 0)
		e.First, e.Last = now.Add(-ago), now.Add(-ago)
		return e
	}
	firing := func() string {
		resp, err := http.Get(url + "/api/v2/alerts")
		if err != nil {
			return err.Error()
		}
		defer resp.Body.Close()
		var list []shown
		if err := json.NewDecoder(resp.Body).Decode(&list); err != nil {
			return err.Error()
		}
		var names []string
		for i := range list {
			l := list[i].Labels
			names = append(names, l["alertname"]+"/"+l["host"]+"/"+l["fabric"]+"/"+l["severity"]+"/"+list[i].Status.State)
		}
		return strings.Join(names, " ")
	}
	until(t, "an answer", func() bool { return a.Refresh(t.Context(), now, nil) == nil })
	send := func(e v1.Event) {
		t.Helper()
		if err := a.Send(t.Context(), "x", now, body(t, e)); err != nil {
			t.Fatal(err)
		}
	}
	send(at(events.DriftFound, "stray", "h1", 10*time.Minute))
	until(t, "an alert that fires", func() bool { return firing() == "drift.found/h1/hall-2/warning/active" })
	send(at(events.DriftEnded, "missing", "h1", 0)) // of another cause
	send(at(events.LockChanged, "epoch", "h2", 3*time.Hour))
	until(t, "a moment that is sent late", func() bool {
		got := firing()
		return strings.Contains(got, "drift.found/h1/hall-2/warning/active") && strings.Contains(got, "lock.changed/h2/hall-2/critical/active")
	})
	send(at(events.DriftEnded, "stray", "h1", time.Second))
	until(t, "the end", func() bool { return firing() == "lock.changed/h2/hall-2/critical/active" })
	// What stands is repeated: one that Alertmanager forgot fires again, and an end that it missed is the end.
	send(at(events.FabricBlind, "nodes", "", 20*time.Minute))
	until(t, "another one", func() bool { return strings.Contains(firing(), "fabric.blind//hall-2/critical/active") })
	all := []v1.Event{
		at(events.FabricBlind, "nodes", "", 20*time.Minute), at(events.FabricSeen, "back", "", time.Minute),
		at(events.StoreShort, "soon", "", 20*time.Minute), at(events.LockChanged, "epoch", "h2", 3*time.Hour),
	}
	if err := a.Refresh(t.Context(), now, all); err != nil {
		t.Fatal(err)
	}
	until(t, "what stands", func() bool {
		got := firing()
		return !strings.Contains(got, "fabric.blind") && strings.Contains(got, "store.short//hall-2/warning/active") && strings.Contains(got, "lock.changed/h2")
	})
	if err := a.Send(t.Context(), "x", now, []byte(`{"data":{"type":"webhook.test","severity":"info","last":"`+now.Format(time.RFC3339)+`"}}`)); err != nil {
		t.Errorf("a test: %v", err)
	}
}
