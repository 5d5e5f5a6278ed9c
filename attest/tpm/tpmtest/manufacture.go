package tpmtest

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
)

// manufacture makes the TPM's state and has its EKs certified by the vendor.
// It reports whether the TPM is new.
func (t *TPM) manufacture(ctx context.Context, o Options) (fresh bool, err error) {
	state, certs := filepath.Join(t.dir, "state"), filepath.Join(t.dir, "certs")
	if len(t.control()) > 107 {
		return false, fmt.Errorf("socket path of %d bytes, at most 107 are possible: use a shorter folder", len(t.control()))
	}
	for _, dir := range []string{t.ca, state, certs} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return false, err
		}
	}
	if exists(filepath.Join(state, "tpm2-00.permall")) {
		return false, nil
	}
	if err := t.writeConfig(); err != nil {
		return false, err
	}
	// swtpm_localca makes its own CA on first use and counts serial numbers in
	// a file: TPMs of one vendor are made one after the other.
	unlock, err := lock(filepath.Join(t.ca, ".lock"))
	if err != nil {
		return false, err
	}
	defer unlock()
	run := func() error { return setup(ctx, t.setupArgs(o, state, certs)) }
	switch {
	case o.NoEKCert:
		return true, run()
	case o.CA == "":
		return true, withVendor(t.ca, run)
	}
	if err := makeVendor(t.ca); err != nil {
		return false, err
	}
	return true, run()
}

func (t *TPM) setupArgs(o Options, state, certs string) []string {
	name := o.Name
	if name == "" {
		name = "host"
	}
	args := []string{
		"--tpm2", "--config", filepath.Join(t.dir, "setup.conf"), "--tpmstate", state,
		"--vmid", name, "--pcr-banks", "sha256,sha384", "--overwrite",
	}
	if os.Getuid() == 0 {
		args = append(args, "--runas", "root")
	}
	if !o.NoEKCert {
		args = append(args, "--create-ek-cert", "--lock-nvram", "--write-ek-cert-files", certs)
	}
	return args
}

func setup(ctx context.Context, args []string) error {
	out, err := exec.CommandContext(ctx, "swtpm_setup", args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("swtpm_setup: %w: %s", err, bytes.TrimSpace(out))
	}
	return nil
}

func (t *TPM) writeConfig() error {
	localca, err := exec.LookPath("swtpm_localca")
	if err != nil {
		return err
	}
	in := func(dir, name string) string { return filepath.Join(dir, name) }
	for name, lines := range map[string][]string{
		"setup.conf": {
			"create_certs_tool = " + localca,
			"create_certs_tool_config = " + in(t.dir, "localca.conf"),
			"create_certs_tool_options = " + in(t.dir, "localca.options"),
			"active_pcr_banks = sha256,sha384",
		},
		"localca.conf": {
			"statedir = " + t.ca,
			"signingkey = " + in(t.ca, "signkey.pem"),
			"issuercert = " + in(t.ca, "issuercert.pem"),
			"certserial = " + in(t.ca, "certserial"),
		},
		"localca.options": {
			"--platform-manufacturer Example", "--platform-version 1.0", "--platform-model BareMetalHost",
		},
	} {
		if err := os.WriteFile(in(t.dir, name), []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
			return err
		}
	}
	return nil
}

// RootsPEM is what a site configures to trust the vendor: its root and its
// issuing CA.
func (t *TPM) RootsPEM() ([]byte, error) {
	root, err := os.ReadFile(filepath.Join(t.ca, "swtpm-localca-rootca-cert.pem"))
	if err != nil {
		return nil, fmt.Errorf("software TPM vendor: %w", err)
	}
	issuer, err := os.ReadFile(filepath.Join(t.ca, "issuercert.pem"))
	if err != nil {
		return nil, fmt.Errorf("software TPM vendor: %w", err)
	}
	return append(root, issuer...), nil
}

// lock takes an exclusive lock between processes.
func lock(path string) (unlock func(), err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX); err != nil {
		f.Close()
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	return func() { f.Close() }, nil
}
