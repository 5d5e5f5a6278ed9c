package doctor

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"encoding/pem"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"portcullis/agent/checklist"
	"portcullis/api"
	"portcullis/api/apitest"
	"portcullis/api/client"
	"portcullis/api/credential"
	v1 "portcullis/api/v1"
	"portcullis/cmd/internal/version"
	"portcullis/cmd/portcullis/cli"
)

// doctorOf runs the command, and returns its output and exit code.
func doctorOf(t *testing.T, args ...string) (stdout string, code int) {
	t.Helper()
	var out, errs bytes.Buffer
	env := cli.New(strings.NewReader(""), &out, &errs)
	root := cli.Group("portcullis", "test", Commands(env)...)
	root.SilenceErrors, root.SilenceUsage = true, true
	env.Flags(root)
	root.SetArgs(args)
	cmd, err := root.ExecuteContextC(t.Context())
	code = env.Report(cmd, err)
	return out.String() + errs.String(), code
}

func wantText(t *testing.T, what, text string, parts ...string) {
	t.Helper()
	for _, p := range parts {
		if !strings.Contains(text, p) {
			t.Errorf("%s lacks %q:\n%s", what, p, text)
		}
	}
}

// TestDoctorOfAService: a real service, as callers with a right, a wrong and no way see it.
func TestDoctorOfAService(t *testing.T) {
	t.Setenv("HOME", t.TempDir())
	store := v1.Condition{Name: "store", OK: true}
	s := apitest.Start(t, apitest.NewSite(t), func(o *api.Options) {
		o.Ready = func(context.Context) []v1.Condition { return []v1.Condition{{Name: "api", OK: true}, store} }
	})
	flags := []string{"--service", s.URL, "--ca", s.CAFile, "--token-file", s.OperatorFile, "doctor"}
	out, code := doctorOf(t, flags...)
	wantText(t, "the output", out,
		"ok       service: it answers\n", "ok       service-certificate: it is from a trusted CA", "ok       clock: ", "ok       credential: olga with the role operator",
		"ok       ready-store: it does its job\n", "skipped  backup: ", "ok       brakes: none is engaged", "failed   subnet-manager: it is ", "\n         hint: see portcullis sm show\n")
	if code != 1 {
		t.Errorf("with a failed check: exit %d", code)
	}
	store = v1.Condition{Name: "store", Detail: "no quorum"}
	out, code = doctorOf(t, flags...)
	wantText(t, "without its store", out, "failed   ready-store: no quorum\n")
	if code != 1 {
		t.Errorf("without its store: exit %d", code)
	}
	wrong := filepath.Join(t.TempDir(), "token")
	secret, _ := credential.New()
	if err := os.WriteFile(wrong, []byte(secret), 0o600); err != nil {
		t.Fatal(err)
	}
	out, code = doctorOf(t, "--service", s.URL, "--ca", s.CAFile, "--token-file", wrong, "doctor")
	if wantText(t, "a wrong token", out, "failed   credential: "); code != 1 || strings.Contains(out, "ready-store") {
		t.Errorf("a wrong token: exit %d\n%s", code, out)
	}
	if err := s.Stop(); err != nil {
		t.Fatal(err)
	}
	out, code = doctorOf(t, append(flags, "-o", "json")...)
	var found diagnosis
	if err := json.Unmarshal([]byte(out), &found); err != nil || found.OK || code != 1 || len(found.Checks) != 1 || found.Checks[0].Result != checklist.Failed {
		t.Errorf("a service that is away: exit %d, %v\n%s", code, err, out)
	}
}

// TestJudgements: what each check makes of what it finds.
func TestJudgements(t *testing.T) {
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	problem := func(status int, code string) error { return &v1.Problem{Status: status, Code: code} }
	for _, tt := range []struct {
		name string
		do   func(*doctor)
		want checklist.Result
	}{
		{"certificate of years", func(d *doctor) { d.certificate(now.AddDate(1, 0, 0)) }, checklist.OK},
		{"certificate of days", func(d *doctor) { d.certificate(now.AddDate(0, 0, 29)) }, checklist.Warning},
		{"certificate that ended", func(d *doctor) { d.certificate(now) }, checklist.Failed},
		{"clocks", func(d *doctor) { d.clocks(now, now.Add(5*time.Second)) }, checklist.OK},
		{"clocks apart", func(d *doctor) { d.clocks(now, now.Add(6*time.Second)) }, checklist.Warning},
		{"clocks far apart", func(d *doctor) { d.clocks(now, now.Add(-61*time.Second)) }, checklist.Failed},
		{"a clock far behind", func(d *doctor) { d.clocks(now, now.Add(61*time.Second)) }, checklist.Failed},
		{"same version", func(d *doctor) { d.version(&v1.Version{Version: version.Short()}) }, checklist.OK},
		{"other version", func(d *doctor) { d.version(&v1.Version{Version: "v0"}) }, checklist.Warning},
		{"steady clock", func(d *doctor) { d.serviceClock(&v1.Clock{State: "steady"}) }, checklist.OK},
		{"clock behind", func(d *doctor) { d.serviceClock(&v1.Clock{State: "behind"}) }, checklist.Failed},
		{"master", func(d *doctor) { d.manager(&v1.SM{State: "Master", Settled: true}) }, checklist.OK},
		{"not settled", func(d *doctor) { d.manager(&v1.SM{State: "Master"}) }, checklist.Warning},
		{"problems", func(d *doctor) { d.manager(&v1.SM{State: "Master", Settled: true, Problems: []string{"x"}}) }, checklist.Warning},
		{"standby", func(d *doctor) { d.manager(&v1.SM{State: "Standby", Settled: true}) }, checklist.Failed},
		{"none leads", func(d *doctor) {
			d.manager(&v1.SM{State: "Master", Settled: true, Leadership: v1.Leadership{Instances: make([]v1.Instance, 3)}})
		}, checklist.Failed},
		{"brakes", func(d *doctor) { d.brakes(&v1.Brakes{Items: []v1.Brake{{Class: "drift"}}}) }, checklist.OK},
		{"engaged", func(d *doctor) { d.brakes(&v1.Brakes{Items: []v1.Brake{{Class: "drift", Engaged: true}}}) }, checklist.Warning},
		{"no backup", func(d *doctor) { d.backup(&v1.List[v1.Backup]{}) }, checklist.Warning},
		{"a backup", func(d *doctor) { d.backup(&v1.List[v1.Backup]{Items: []v1.Backup{{Time: now.Add(-48 * time.Hour)}}}) }, checklist.OK},
		{"an old one", func(d *doctor) { d.backup(&v1.List[v1.Backup]{Items: []v1.Backup{{Time: now.Add(-49 * time.Hour)}}}) }, checklist.Warning},
		{"a broken one", func(d *doctor) { d.backup(&v1.List[v1.Backup]{Items: []v1.Backup{{Time: now, Problem: "short"}}}) }, checklist.Warning},
		{"profile", func(d *doctor) { d.profile(&v1.SecurityProfile{}) }, checklist.OK},
		{"rules fail", func(d *doctor) { d.profile(&v1.SecurityProfile{Count: v1.ProfileCount{Fails: 1}}) }, checklist.Warning},
		{"forbidden", func(d *doctor) { d.refused("x", problem(403, v1.CodeForbidden)) }, checklist.Skipped},
		{"not there", func(d *doctor) { d.refused("x", problem(503, v1.CodeUnavailable)) }, checklist.Skipped},
		{"no leader", func(d *doctor) { d.refused("x", problem(503, v1.CodeNoLeader)) }, checklist.Failed},
		{"a fault", func(d *doctor) { d.refused("x", problem(500, v1.CodeInternal)) }, checklist.Failed},
		{"cut", func(d *doctor) { d.refused("x", errors.New("cut")) }, checklist.Failed},
	} {
		d := &doctor{now: func() time.Time { return now }}
		tt.do(d)
		if len(d.checks) != 1 || d.checks[0].Result != tt.want || d.checks[0].Detail == "" && !strings.HasPrefix(d.checks[0].Name, "x") {
			t.Errorf("%s: %+v, want %s", tt.name, d.checks, tt.want)
		} else if c := d.checks[0]; c.Result == checklist.Warning && c.Hint == "" {
			t.Errorf("%s: no hint", tt.name)
		}
	}
	for state, want := range map[string]checklist.Result{v1.RuleHolds: checklist.OK, v1.RuleFails: checklist.Warning, v1.RuleUnknown: checklist.Skipped} {
		d := &doctor{}
		if d.profile(&v1.SecurityProfile{Rules: []v1.ProfileFinding{{Rule: "escrow-rehearsed", State: state}}}); d.checks[0].Name != "escrow" || d.checks[0].Result != want {
			t.Errorf("escrow %s: %+v", state, d.checks)
		}
	}
}

// canaries are secrets of every form that is known.
func canaries() []string {
	token, _ := credential.New()
	key := strings.ReplaceAll(string(pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: bytes.Repeat([]byte("canary"), 20)})), "\r", "")
	return []string{
		token, "eyJhbGciOiJFUzI1NiJ9.eyJzdWIiOiJjYW5hcnkifQ.Y2FuYXJ5", key,
		"AGE-SECRET-KEY-1CANARYCANARYCANARY", "Bearer canary-of-a-proxy.token", "whsec_Y2FuYXJ5+Y2FuYXJ5/Y2FuYXJ5Y2FuYXJ5==", "https://olga:canary-password@proxy.example:3128/x",
	}
}

// plant puts text into each string of a value, as deep as it goes.
func plant(v reflect.Value, text string, depth int) {
	switch v.Kind() {
	case reflect.String:
		v.SetString(text)
	case reflect.Pointer:
		if depth > 0 && v.Type().Elem().Kind() != reflect.Pointer {
			v.Set(reflect.New(v.Type().Elem()))
			plant(v.Elem(), text, depth-1)
		}
	case reflect.Slice:
		if depth > 0 && v.Type().Elem().Kind() != reflect.Uint8 {
			v.Set(reflect.MakeSlice(v.Type(), 1, 1))
			plant(v.Index(0), text, depth-1)
		}
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			return
		}
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				plant(v.Field(i), text, depth)
			}
		}
	default:
	}
}

// planted is a service that has all canaries in each text that it shows.
func planted(t *testing.T, text string) *httptest.Server {
	t.Helper()
	answers := map[string]any{
		"/readyz": &v1.Readiness{}, "/version": &v1.Version{}, "/v1/whoami": &v1.WhoAmI{}, "/v1/clock": &v1.Clock{}, "/v1/sm": &v1.SM{},
		"/v1/admission/brake": &v1.Brakes{}, "/v1/backups": &v1.List[v1.Backup]{}, "/v1/profile": &v1.SecurityProfile{}, "/v1/events": &v1.List[v1.Event]{},
		"/v1/fabric/health": &v1.Page[v1.FabricHealth]{},
	}
	for _, a := range answers {
		plant(reflect.ValueOf(a).Elem(), text, 6)
	}
	answers["/readyz"].(*v1.Readiness).Ready = true
	answers["/v1/events"].(*v1.List[v1.Event]).Next = ""
	answers["/v1/fabric/health"].(*v1.Page[v1.FabricHealth]).Next = ""
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/metrics" {
			w.Header().Set("Content-Type", "text/plain")
			_, _ = io.WriteString(w, "# HELP x "+text+"\n")
			return
		}
		answer, known := answers[r.URL.Path]
		if !known {
			t.Errorf("asked for %s", r.URL.Path)
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(answer)
	}))
	t.Cleanup(s.Close)
	return s
}

// TestBundleHasNoSecrets plants keys and tokens into all that a bundle is made of, and looks for them in it.
func TestBundleHasNoSecrets(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("XDG_CONFIG_HOME", home)
	secrets := canaries()
	s := planted(t, strings.Join(secrets, "\n"))
	t.Setenv("CANARY", secrets[0])
	ca, token := filepath.Join(home, "ca.pem"), filepath.Join(home, "token")
	pair := append(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}), secrets[2]...)
	if err := errors.Join(os.WriteFile(ca, pair, 0o600), os.WriteFile(token, []byte(secrets[0]), 0o600)); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(home, "b.tar.gz")
	flags := []string{"--service", s.URL, "--ca", ca, "--token-file", token, "doctor", "--bundle", file}
	if out, _ := doctorOf(t, flags...); !strings.Contains(out, file+" is written") {
		t.Fatalf("%s", out)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	parts := unpack(t, file)
	want := []string{
		"backup.json", "brakes.json", "credential.json", "doctor.json", "events.json", "fabric-health.json", "metrics.txt", "profile.json", "program.json",
		"ready.json", "service-clock.json", "subnet-manager.json", "version.json",
	}
	var names []string
	for name, text := range parts {
		names = append(names, name)
		if name != "program.json" && !strings.Contains(text, "[removed]") {
			t.Errorf("%s has nothing of what was planted:\n%s", name, text)
		}
		for _, secret := range secrets {
			for _, word := range append(strings.Fields(strings.NewReplacer("-----BEGIN EC PRIVATE KEY-----", "", "-----END EC PRIVATE KEY-----", "").Replace(secret)), "canary-password", "CANARY", "Y2FuYXJ5") {
				if !strings.HasPrefix(word, "https://") && word != "Bearer" && len(word) > 5 && strings.Contains(text, word) {
					t.Errorf("%s has %q", name, word)
				}
			}
		}
	}
	if slices.Sort(names); !slices.Equal(names, want) {
		t.Errorf("parts %v, want %v", names, want)
	}
	if out, code := doctorOf(t, flags...); code == 0 || strings.Contains(out, "is written") {
		t.Errorf("the bundle was overwritten: exit %d", code)
	}
}

func unpack(t *testing.T, file string) map[string]string {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	z, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		out[strings.TrimPrefix(h.Name, "portcullis-doctor/")] = string(text)
	}
}

// TestBundleOfNoService: a bundle has the results also where no service answers.
func TestBundleOfNoService(t *testing.T) {
	c, err := client.New(client.Options{URL: "https://127.0.0.1:1", Timeout: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	d := &doctor{c: c, now: time.Now, answers: map[string]any{}}
	file := filepath.Join(t.TempDir(), "b.tar.gz")
	if err := d.bundle(t.Context(), file, d.examine(t.Context())); err != nil {
		t.Fatal(err)
	}
	if parts := unpack(t, file); len(parts) != 2 || !strings.Contains(parts["doctor.json"], `"ok": false`) {
		t.Errorf("%v", parts)
	}
}

// FuzzScrub: no text keeps a token, wherever it stands.
func FuzzScrub(f *testing.F) {
	f.Add("a ", " b")
	f.Add("\"", "\\n")
	f.Add("://x:", "@host")
	token, _ := credential.New()
	f.Fuzz(func(t *testing.T, before, after string) {
		if got := scrub([]byte(before + token + after)); bytes.Contains(got, []byte(token)) {
			t.Errorf("%q is left", got)
		}
	})
}
