package main

import (
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"testing"

	"portcullis/api/apitest"
)

// TestDoctorBehindProxy has the real program reach the service as a run does, with a proxy in
// its environment.
func TestDoctorBehindProxy(t *testing.T) {
	t.Parallel()
	s := apitest.Start(t, apitest.NewSite(t))
	_, port, err := net.SplitHostPort(strings.TrimPrefix(s.URL, "https://"))
	if err != nil {
		t.Fatal(err)
	}
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "not from here", http.StatusForbidden)
	}))
	t.Cleanup(proxy.Close)
	address := strings.TrimPrefix(proxy.URL, "http://")
	cmd := exec.CommandContext(t.Context(), "portcullis-agent", "doctor", "--host", "compute-01", "--sysfs", t.TempDir(),
		"--tpm", "/nonexistent/tpm", "--state-dir", t.TempDir(), "--service", "https://portcullis.test:"+port, "--ca", s.CAFile)
	cmd.Env = append(os.Environ(), "HTTPS_PROXY=http://fabric:s3cret@"+address, "NO_PROXY=", "https_proxy=", "no_proxy=")
	out, err := cmd.CombinedOutput()
	if e, ok := errors.AsType[*exec.ExitError](err); !ok || e.ExitCode() != 1 {
		t.Fatalf("%v: %s", err, out)
	}
	for _, want := range []string{
		`failed   service: https://portcullis.test:` + port + ` sent no verdict in time: reach the service at portcullis.test:` + port +
			` through the proxy http://` + address + `: the proxy refuses: "403 Forbidden"`,
		"hint: check HTTPS_PROXY and NO_PROXY, and that the proxy connects to portcullis.test:" + port,
	} {
		if !strings.Contains(string(out), want) {
			t.Errorf("want %q in\n%s", want, out)
		}
	}
	if strings.Contains(string(out), "s3cret") {
		t.Errorf("credentials are shown:\n%s", out)
	}
}
