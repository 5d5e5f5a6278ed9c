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
	"portcullis/api/apitest"
	"portcullis/api/inventory"
	"portcullis/api/store"
	"portcullis/api/store/memory"
	"portcullis/api/store/storetest"
	v1 "portcullis/api/v1"
	"portcullis/attest"
	"portcullis/attest/attesttest"
	"portcullis/attest/tpm/tpmtest"
	"portcullis/packaging/parttest"
)

const (
	walkerNode = 0x0002_c903_00ab_0000
	walkerPort = walkerNode + 1
)

// TestWalkthrough attests a host with tpm2-tools, openssl and curl alone: what
// docs/evidence.md says of every byte is enough to be accepted.
func TestWalkthrough(t *testing.T) {
	t.Parallel()
	for _, tool := range []string{"bash", "curl", "openssl", "tpm2_quote", "tpm2_send"} {
		parttest.Program(t, tool)
	}
	dev := tpmtest.New(t, tpmtest.Options{P256: true})
	records := store.New(memory.New(time.Now), "")
	signer := newResults(t, records)
	svc := walkthroughService(t, dev, records, signer)
	server := apitest.Start(t, svc, func(o *api.Options) { o.Results = signer })

	run := walkthrough(t, dev, server)
	out, err := run.CombinedOutput()
	t.Logf("%s", out)
	if err != nil {
		t.Fatal(err)
	}
	h, err := svc.Host(t.Context(), "walker")
	if err != nil || h.Status.Phase != v1.PhaseVerified || h.Status.Sealed.IsZero() {
		t.Fatalf("host %+v, %v; want its evidence accepted and sealed", h, err)
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

// walkthroughService expects the host "walker" with this TPM.
func walkthroughService(t *testing.T, dev *tpmtest.TPM, records *store.Store, signer admission.Results) *admission.Service {
	t.Helper()
	policy := attest.DefaultPolicy()
	policy.Assurance, policy.RequireLock = attest.AssuranceNone, false
	roots, err := dev.RootsPEM()
	fatal(t, err)
	fatal(t, policy.AddCertificates(roots))
	trusted := attesttest.References()[0]
	_, err = records.Update(t.Context(), func(tx *store.Tx) error {
		return admission.References().Put(tx, admission.ReferenceKey(trusted.Class, trusted.Version), trusted)
	})
	fatal(t, err)
	svc := admission.New(admission.Options{Store: records, Policy: policy, Log: storetest.Quiet(), Results: signer})
	digest := dev.EKDigest()
	file := fmt.Sprintf(`hosts:
- id: walker
  ek_sha256: %s
  hcas:
  - {node_guid: 0x%016x, ports: [{port: 1, guid: 0x%016x, cable: 0x10/1}]}
`, digest, walkerNode, walkerPort)
	ctx := t.Context()
	_, err = svc.ImportInventory(ctx, "alice", []inventory.File{{Name: "hosts.yaml", Data: []byte(file)}}, v1.RepairTicket{}, false)
	fatal(t, err)
	_, err = svc.CreateTenant(ctx, "alice", v1.NewTenant{Name: "acme"})
	fatal(t, err)
	_, err = svc.CreateCluster(ctx, "alice", v1.NewCluster{Name: "train", Tenant: "acme"})
	fatal(t, err)
	_, err = svc.Assign(ctx, "alice", "walker", v1.Assignment{Cluster: "train"})
	fatal(t, err)
	return svc
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

// overTCP relays a software TPM's two sockets from two TCP ports in a row, as
// tpm2-tools want them, and gives the first.
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

// relay serves one connection after another, as the software TPM does.
func relay(t *testing.T, l net.Listener, socket string) {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			if err := forward(ctx, c, socket); err != nil {
				t.Errorf("relay to %s: %v", socket, err)
			}
		}
	}()
	t.Cleanup(func() { stop(); l.Close(); <-done })
}

func forward(ctx context.Context, c net.Conn, socket string) error {
	defer c.Close()
	s, err := new(net.Dialer).DialContext(ctx, "unix", socket)
	if err != nil {
		return errors.Join(err, ctx.Err())
	}
	defer s.Close()
	unblock := context.AfterFunc(ctx, func() { c.Close(); s.Close() })
	defer unblock()
	go func() {
		_, _ = io.Copy(s, c) // ends with either connection
		s.Close()
	}()
	_, _ = io.Copy(c, s)
	return nil
}

func fatal(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
