package api_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"portcullis/api"
	"portcullis/api/admission"
	"portcullis/api/admission/admissiontest"
	"portcullis/api/apitest"
	"portcullis/api/results"
	v1 "portcullis/api/v1"
	"portcullis/attest/tpm/tpmtest"
	"portcullis/packaging/testenv"
)

const walkerNode = 0x0002_c903_00ab_0000

// TestWalkthrough attests a host with tpm2-tools, openssl and curl alone: the description of every byte in
// docs/reference/evidence.md is enough to be accepted.
func TestWalkthrough(t *testing.T) {
	t.Parallel()
	for _, tool := range []string{"bash", "curl", "openssl", "tpm2_quote", "tpm2_send"} {
		testenv.Program(t, tool)
	}
	dev := tpmtest.New(t, tpmtest.Options{P256: true})
	var signer *results.Service
	site := admissiontest.NewWith(t, admissiontest.Host{ID: "walker", TPM: dev, Node: walkerNode}, func(o *admission.Options) {
		signer = apitest.NewResults(t, o.Store)
		o.Results, o.Policy.RequireLock = signer, false
	})
	server := apitest.Start(t, apitest.Real{Service: site.Service()}, func(o *api.Options) { o.Results = signer })

	run := walkthrough(t, dev, server)
	out, err := run.CombinedOutput()
	t.Logf("%s", out)
	if err != nil {
		t.Fatal(err)
	}
	if h := site.Host("walker"); h.Status.Phase != v1.PhaseVerified || h.Status.Sealed.IsZero() {
		t.Fatalf("host %+v; want its evidence accepted and sealed", h)
	}
	if !strings.Contains(string(out), `"name":"sealed","met":true`) {
		t.Error("the status that the host reads does not say that it is sealed")
	}
	// openssl verifies the result; it is a warning, since this policy demands nothing of
	// adapters.
	for _, want := range []string{"Verified OK", "result of walker by https://portcullis.example, verified: warning"} {
		if !strings.Contains(string(out), want) {
			t.Errorf("the script does not say %q", want)
		}
	}

	// The register is capped: nothing more is attested in this boot.
	out, err = walkthrough(t, dev, server).CombinedOutput()
	if err == nil || !strings.Contains(string(out), "does not hold this statement alone") {
		t.Errorf("a second time: %v, %s", err, out)
	}
}

// walkthrough is the script, for this TPM and service.
func walkthrough(t *testing.T, dev *tpmtest.TPM, server *apitest.Server) *exec.Cmd {
	t.Helper()
	dir := t.TempDir()
	plantHost(t, dir, walkerNode, dev)
	cmd := exec.CommandContext(t.Context(), "bash", "../packaging/walkthrough/attest.sh")
	cmd.Env = append(os.Environ(),
		"SERVICE="+server.URL, "CA="+server.CAFile, "HOST=walker", "SYSFS="+dir+"/sys", "PROCFS="+dir+"/proc",
		fmt.Sprintf("TPM2TOOLS_TCTI=swtpm:host=127.0.0.1,port=%d", overTCP(t, dev)))
	cmd.WaitDelay = time.Second
	return cmd
}

// overTCP relays a software TPM's two sockets from two TCP ports in a row, as tpm2-tools want them, and returns the first.
func overTCP(t *testing.T, dev *tpmtest.TPM) int {
	t.Helper()
	socket := strings.TrimPrefix(dev.Device(), "unix:")
	for range 100 {
		first, err := net.Listen("tcp", "127.0.0.1:0")
		fatal(t, err)
		port := first.Addr().(*net.TCPAddr).Port
		second, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port+1))
		if err != nil {
			first.Close()
			continue
		}
		relay(t, first, socket)
		relay(t, second, socket+".ctrl")
		return port
	}
	t.Fatal("no two free TCP ports in a row")
	return 0
}

// relay serves connections out of those to a socket.
func relay(t *testing.T, l net.Listener, socket string) {
	t.Helper()
	tpmtest.ServeInTurn(t, l, func(ctx context.Context, c net.Conn) {
		s, err := new(net.Dialer).DialContext(ctx, "unix", socket)
		if err != nil {
			t.Errorf("relay to %s: %v", socket, errors.Join(err, ctx.Err()))
			return
		}
		defer s.Close()
		go func() {
			_, _ = io.Copy(s, c) // ends with either connection
			s.Close()
		}()
		_, _ = io.Copy(c, s)
	})
}

func fatal(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
