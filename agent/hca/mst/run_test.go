package mst

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"portcullis/agent/hca/register"
)

// install writes scripts as tools into a folder and finds them there.
func install(t *testing.T, scripts map[string]string) *Suite {
	t.Helper()
	dir := t.TempDir()
	if _, ok := scripts["mstflint"]; !ok {
		scripts["mstflint"] = `echo "mstflint, mstflint 4.36.0, Git SHA Hash: b9d9e84"`
	}
	for name, script := range scripts {
		must(t, os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+script+"\n"), 0o755))
	}
	s, err := Find(t.Context(), []string{"/nowhere", dir})
	must(t, err)
	return s
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// query has the tool answer a query with a script of its own.
func query(script string) map[string]string {
	return map[string]string{"mstflint": `if [ "$1" = --version ]; then echo "mstflint, mstflint 4.36.0, x"; exit; fi
` + script}
}

func TestEnvironment(t *testing.T) {
	t.Setenv("MFT_CR_ACCESS", "attack")
	t.Setenv("FLINT_ARGS", "attack")
	t.Setenv("LD_LIBRARY_PATH", "/tmp/attack")
	t.Setenv("LC_ALL", "de_DE.UTF-8")
	s := install(t, query(`echo "PSID: $(env | grep -v -e ^_= -e ^PWD= | sort | tr '\n' ' ')"; echo "Device: $*"; [ -t 0 ] || echo "FW Version: no terminal"`))
	q, err := s.Query(t.Context(), "0000:17:00.0")
	must(t, err)
	if got, _ := q.Get(KeyPSID); got != "HOME=/ LC_ALL=C PATH=/usr/sbin:/usr/bin:/sbin:/bin" {
		t.Errorf("the tool sees %q", got)
	}
	if got, _ := q.Get("Device"); got != "-d 0000:17:00.0 query full" {
		t.Errorf("arguments %q", got)
	}
	if got, _ := q.Get(KeyVersion); got != "no terminal" {
		t.Error("the tool has a terminal")
	}
}

// TestGroupKilled checks that a tool ends after its time limit, together with the processes that it started. Both hold a
// pipe open, which ends when no process holds it.
func TestGroupKilled(t *testing.T) {
	fifo := filepath.Join(t.TempDir(), "held")
	must(t, syscall.Mkfifo(fifo, 0o600))
	s := install(t, query(`exec 9>`+fifo+`; sleep 1000 & echo started >&9; sleep 1000`))
	held, err := os.OpenFile(fifo, os.O_RDWR, 0) // not blocking for a writer
	must(t, err)
	defer held.Close()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { _, err := s.Query(ctx, "0000:17:00.0"); ended <- err }()
	reader, err := os.Open(fifo)
	must(t, err)
	defer reader.Close()
	line := make([]byte, 16)
	if _, err := reader.Read(line); err != nil { // "started"
		t.Fatal(err)
	}
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	held.Close()
	if n, err := reader.Read(line); n != 0 || err == nil { // until the last writer is gone
		t.Errorf("read %d bytes, %v; want the end", n, err)
	}
}

func TestDeadline(t *testing.T) {
	s := install(t, query(`exec sleep 1000`))
	_, err := s.runner.run(t.Context(), time.Millisecond, s.flint, "-d", "x", "query")
	if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "after 1ms") {
		t.Errorf("got %v", err)
	}
}

func TestOutputRefused(t *testing.T) {
	for name, tt := range map[string]struct {
		script string
		want   error
	}{
		"without end":         {`exec cat /dev/zero`, errTooMuch},
		"errors without end":  {`exec cat /dev/zero >&2`, errTooMuch},
		"terminal codes":      {`printf 'PSID: \033[2J\n'`, errNotText},
		"bytes that are none": {`printf 'PSID: \377\n'`, errNotText},
		"nothing":             {`true`, errNotQuery},
	} {
		s := install(t, query(tt.script))
		if _, err := s.Query(t.Context(), "0000:17:00.0"); !errors.Is(err, tt.want) {
			t.Errorf("%s: got %v, want %v", name, err, tt.want)
		}
	}
}

// TestMessages checks the messages that version 4.36 was seen to print, and its codes.
func TestMessages(t *testing.T) {
	for _, tt := range []struct {
		text string
		code int
		want error
	}{
		{"-E- Cannot open Device: fwctl0. HW access is disabled on the device.\n-E- Run \"mstflint -d fwctl0 hw_access enable\" in order to enable HW access.", 1, ErrLocked},
		{"-E- Failed to execute command hw_access. Enable HW access failed: The given key is incorrect", 1, ErrWrongKey},
		{"-E- Failed to find Param / TLV with name 'X' port 0 module -1", 3, ErrUnknownParameter},
		{"-E- The Device doesn't support X parameter", 3, ErrNoParameter},
		{"Applying... Failed!\n-E- Failed to set nv_host_sm_conf settings Register access bad parameter (265)", 3, register.ErrBadParameter},
		{"-E- Failed to get nv_host_sm_conf settings Register not supported (262)", 3, register.ErrNotSupported},
		{"-E- Error applying the component: Rejected authentication", 3, ErrAuthentication},
		{"-E- Error applying the component: The component is not signed", 3, ErrNotSigned},
		{"-E- Cannot open Device: 0000:00:00.0. Operation not supported. MFE_CR_ERROR", 1, ErrOpen},
		{"-E- Failed to open the device", 3, ErrOpen},
		{"-E- Failed to send access register: Register access failed, device is busy", 1, register.ErrBusy},
		{"-E- Timed out trying to take the ICMD semaphore", 1, register.ErrBusy},
	} {
		err := error(failed("mstflint", tt.code, tt.text))
		if !errors.Is(err, tt.want) || !strings.Contains(err.Error(), "ended with code") {
			t.Errorf("%q: got %v, want %v", tt.text, err, tt.want)
		}
	}
	if err := failed("mstflint", 1, "-E- Something new"); err.Err != nil || !strings.Contains(err.Error(), "Something new") {
		t.Errorf("got %v", err)
	}
}

func TestDeviceNames(t *testing.T) {
	for _, name := range []string{"0000:17:00.0", "mlx5_0", "fwctl0", "/dev/fwctl/fwctl0"} {
		if err := checkDevice(name); err != nil {
			t.Errorf("%q: %v", name, err)
		}
	}
	for _, name := range []string{"", "--help", "-d", "a b", "a;b", "a\nb", strings.Repeat("x", 60)} {
		if err := checkDevice(name); err == nil {
			t.Errorf("%q: got no error", name)
		}
	}
}
