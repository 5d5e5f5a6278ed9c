//go:build vm

package machine

import (
	"context"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TPM is a software TPM with an endorsement key and its certificate. Its state outlives the machines it is put in.
type TPM struct {
	dir    string // state, sockets and logs
	ca     string
	cancel context.CancelFunc
	ended  chan struct{}
	cmd    *exec.Cmd
}

// NewTPM makes a TPM, whose certificate a CA of its own signed.
func NewTPM(t testing.TB) *TPM {
	t.Helper()
	dir := t.TempDir()
	p := &TPM{dir: dir, ca: filepath.Join(dir, "ca")}
	for _, d := range []string{p.ca, filepath.Join(dir, "state")} {
		if err := os.Mkdir(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	files := map[string]string{
		"localca.conf": fmt.Sprintf("statedir = %[1]s\nsigningkey = %[1]s/signkey.pem\nissuercert = %[1]s/issuercert.pem\ncertserial = %[1]s/certserial\n", p.ca),
		"options":      "--platform-manufacturer Portcullis\n--platform-version 1\n--platform-model vm\n",
		"setup.conf": fmt.Sprintf("create_certs_tool = /usr/bin/swtpm_localca\ncreate_certs_tool_config = %[1]s/localca.conf\n"+
			"create_certs_tool_options = %[1]s/options\nactive_pcr_banks = sha256\n", dir),
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command("swtpm_setup", "--tpm2", "--tpmstate", filepath.Join(dir, "state"), "--create-ek-cert", "--create-platform-cert",
		"--ecc", "--config", filepath.Join(dir, "setup.conf"), "--write-ek-cert-files", dir)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("swtpm_setup: %v\n%s", err, out)
	}
	return p
}

// Roots returns the certificates of the CA that signed the endorsement key's certificate, as PEM.
func (p *TPM) Roots(t testing.TB) []byte {
	t.Helper()
	var pem []byte
	for _, name := range []string{"issuercert.pem", "swtpm-localca-rootca-cert.pem"} {
		b, err := os.ReadFile(filepath.Join(p.ca, name))
		if err != nil {
			t.Fatal(err)
		}
		pem = append(pem, b...)
	}
	return pem
}

// EK returns the SHA-256 of the elliptic endorsement key's SubjectPublicKeyInfo in hexadecimal, as an inventory has it.
func (p *TPM) EK(t testing.TB) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(p.dir, "ek-secp*.crt"))
	if err != nil || len(files) != 1 {
		t.Fatalf("certificates of endorsement keys: %v (%v), want one", files, err)
	}
	der, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(cert.RawSubjectPublicKeyInfo)
	return hex.EncodeToString(sum[:])
}

func (p *TPM) control() string { return filepath.Join(p.dir, "sock") }

// start starts the TPM for one machine. swtpm ends with the machine's connection.
func (p *TPM) start(t testing.TB) {
	t.Helper()
	p.stop()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	cmd := exec.CommandContext(ctx, "swtpm", "socket", "--tpm2", "--tpmstate", "dir="+filepath.Join(p.dir, "state"),
		"--ctrl", "type=unixio,path="+p.control(), "--log", "level=1,file="+filepath.Join(p.dir, "log"), "--terminate")
	var said strings.Builder
	cmd.Stderr = &said
	if err := cmd.Start(); err != nil {
		t.Fatalf("start swtpm: %v", err)
	}
	p.cancel, p.ended, p.cmd = cancel, make(chan struct{}), cmd
	go func() {
		defer close(p.ended)
		_ = cmd.Wait()
	}()
	for deadline := time.Now().Add(10 * time.Second); ; {
		if _, err := os.Stat(p.control()); err == nil {
			return
		}
		select {
		case <-p.ended:
			t.Fatalf("swtpm ended: %s", said.String())
		case <-time.After(20 * time.Millisecond):
		}
		if time.Now().After(deadline) {
			t.Fatal("swtpm has no socket after 10 s")
		}
	}
}

// Signal sends a signal to the running TPM: SIGSTOP makes one that never answers.
func (p *TPM) Signal(s os.Signal) error { return p.cmd.Process.Signal(s) }

func (p *TPM) stop() {
	if p.cancel == nil {
		return
	}
	p.cancel()
	<-p.ended
	p.cancel = nil
	_ = os.Remove(p.control())
}
