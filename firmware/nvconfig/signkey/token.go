package signkey

import (
	"bytes"
	"context"
	"crypto"
	"crypto/rsa"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// Token is a key in a PKCS#11 token. It implements crypto.Signer for PKCS#1
// v1.5 with SHA-256 and SHA-512.
type Token struct {
	uri     URI
	tool    string
	timeout time.Duration
	public  *rsa.PublicKey
}

// OpenToken reads the public half of a key, which shows that token and key are
// there. The PIN is read when something is signed.
func OpenToken(u URI, o Options) (*Token, error) {
	t := &Token{uri: u, tool: o.Tool, timeout: o.Timeout}
	if t.timeout == 0 {
		t.timeout = 30 * time.Second
	}
	if t.tool == "" {
		path, err := exec.LookPath("pkcs11-tool")
		if err != nil {
			return nil, errors.New("PKCS#11: pkcs11-tool is not installed: install OpenSC (Debian: opensc)")
		}
		t.tool = path
	}
	der, err := t.run(nil, nil, "--read-object", "--type", "pubkey", "--id", hex.EncodeToString(u.ID))
	if err != nil {
		return nil, fmt.Errorf("%v: read public key: %w", u, err)
	}
	if t.public, err = publicDER(der); err != nil {
		return nil, fmt.Errorf("%v: public key: %w", u, err)
	}
	return t, nil
}

// Public implements crypto.Signer.
func (t *Token) Public() crypto.PublicKey { return t.public }

// digestInfos are the DER that PKCS#1 v1.5 puts before a digest (RFC 8017, 9.2).
// The token pads and signs what it is given (CKM_RSA_PKCS): that every token can.
var digestInfos = map[crypto.Hash]string{
	crypto.SHA256: "3031300d060960864801650304020105000420",
	crypto.SHA512: "3051300d060960864801650304020305000440",
}

// Sign implements crypto.Signer. No randomness is used. A signature that the public
// key does not verify is an error: the token was asked for one key by its id, and
// may have used another.
func (t *Token) Sign(_ io.Reader, digest []byte, opts crypto.SignerOpts) ([]byte, error) {
	hash := opts.HashFunc()
	if _, pss := opts.(*rsa.PSSOptions); pss || digestInfos[hash] == "" || len(digest) != hash.Size() {
		return nil, fmt.Errorf("%v: want PKCS#1 v1.5 over a digest of SHA-256 or SHA-512", t.uri)
	}
	in, err := hex.DecodeString(digestInfos[hash])
	if err != nil {
		return nil, err
	}
	pin, err := t.pin()
	if err != nil {
		return nil, fmt.Errorf("%v: PIN: %w", t.uri, err)
	}
	defer clear(pin)
	sig, err := t.run(pin, append(in, digest...), "--login", "--pin", "env:"+pinVariable, "--sign", "--mechanism", "RSA-PKCS", "--id", hex.EncodeToString(t.uri.ID))
	if err != nil {
		return nil, fmt.Errorf("%v: sign: %w", t.uri, err)
	}
	if err := rsa.VerifyPKCS1v15(t.public, hash, digest, sig); err != nil {
		return nil, fmt.Errorf("%v: its signature does not verify with the public key of the same id: it used another key", t.uri)
	}
	return sig, nil
}

// pin reads the PIN: the content of its file without the end of the line.
func (t *Token) pin() ([]byte, error) {
	data, err := readSecret(t.uri.PINFile, 256)
	if err != nil {
		return nil, err
	}
	pin := bytes.TrimRight(data, "\r\n")
	if len(pin) == 0 || bytes.ContainsAny(pin, "\x00\r\n") {
		return nil, fmt.Errorf("%s: want one line", t.uri.PINFile)
	}
	return pin, nil
}

// pinVariable carries the PIN to the tool. The kernel shows the environment of a process only to its own user and root; it
// shows a command line to all.
const pinVariable = "PORTCULLIS_PKCS11_PIN"

// maxAnswer bounds what the tool may print.
const maxAnswer = 64 << 10

// run starts the tool on the token, and returns its output. A tool that does not end in time is killed, with all that it
// started.
func (t *Token) run(pin, stdin []byte, args ...string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(context.Background(), t.timeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, t.tool, append([]string{"--module", t.uri.Module, "--token-label", t.uri.Token}, args...)...)
	cmd.Env = append(os.Environ(), "LC_ALL=C")
	if pin != nil {
		cmd.Env = append(cmd.Env, pinVariable+"="+string(pin))
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second
	out, complaint := &bounded{limit: maxAnswer}, &bounded{limit: maxAnswer}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(stdin), out, complaint
	err := cmd.Run()
	switch {
	case ctx.Err() != nil:
		return nil, fmt.Errorf("%s did not end within %v", t.tool, t.timeout)
	case err != nil:
		return nil, fmt.Errorf("%s: %w: %s", t.tool, err, oneLine(complaint.b))
	case out.over:
		return nil, fmt.Errorf("%s printed more than %d bytes", t.tool, maxAnswer)
	case len(out.b) == 0:
		return nil, fmt.Errorf("%s printed nothing: %s", t.tool, oneLine(complaint.b))
	}
	return out.b, nil
}

// bounded keeps the first bytes that are written to it.
type bounded struct {
	b     []byte
	limit int
	over  bool
}

func (w *bounded) Write(p []byte) (int, error) {
	if room := w.limit - len(w.b); len(p) > room {
		w.b, w.over = append(w.b, p[:room]...), true
		return len(p), nil
	}
	w.b = append(w.b, p...)
	return len(p), nil
}

// oneLine returns a program's error output as one line of plain text.
func oneLine(b []byte) string {
	text := strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return ' '
		}
		return r
	}, string(b))
	return clip(strings.Join(strings.Fields(text), " "))
}
