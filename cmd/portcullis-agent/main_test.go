package main

import (
	"bytes"
	"errors"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"portcullis/attest/tpm/tpmtest"
	"portcullis/packaging/testenv"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"portcullis-agent": main})
}

// TestScripts runs the real main. In scripts
//
//	exits CODE ARGS...   runs portcullis-agent and wants this exit code
//	tpm                  starts a real software TPM and sets $TPM and $EK
//	card                 serves a simulated adapter and sets $CARDS
//	compile OUT FILES... compiles a policy of a base and modules, without a look at neverallow rules
//	library DIR          makes what a site knows of firmware, with an image of the adapter
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: "testdata",
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits":   exits,
			"tpm":     func(ts *testscript.TestScript, _ bool, _ []string) { startTPM(t, ts) },
			"card":    func(ts *testscript.TestScript, _ bool, _ []string) { startCard(t, ts) },
			"compile": compilePolicy,
			"library": func(ts *testscript.TestScript, _ bool, args []string) { makeLibrary(ts, ts.MkAbs(args[0])) },
		},
		Condition: func(cond string) (bool, error) {
			switch cond {
			case "tpm":
				return tpmReady(), nil
			case "secilc":
				_, err := exec.LookPath(cond)
				return err == nil || testenv.Required(), nil
			}
			return false, errors.New("no such condition")
		},
	})
}

// tpmReady reports whether scripts that need a TPM run: where one is required
// they do, and fail if it is missing.
func tpmReady() bool {
	return tpmtest.Missing() == nil || testenv.Required()
}

func compilePolicy(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 1 {
		ts.Fatalf("usage: compile OUT FILES...")
	}
	base, err := filepath.Abs("../../agent/selinux/testdata/base.cil")
	ts.Check(err)
	ts.Check(ts.Exec("secilc", append([]string{"-N", "-M", "true", "-c", "33", "-o", args[0], "-f", "/dev/null", base}, args[1:]...)...))
}

func startTPM(t *testing.T, ts *testscript.TestScript) {
	dev, err := tpmtest.Start(t.Context(), tpmtest.Options{Dir: tpmtest.ShortDir(t)})
	ts.Check(err)
	ts.Defer(func() { ts.Check(dev.Stop()) })
	ts.Setenv("TPM", dev.Device())
	ts.Setenv("EK", dev.EKDigest())
}

func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 1 {
		ts.Fatalf("usage: exits CODE ARGS...")
	}
	err := ts.Exec("portcullis-agent", args[1:]...)
	code := "0"
	if e, ok := errors.AsType[*exec.ExitError](err); ok {
		code = strings.TrimPrefix(e.ProcessState.String(), "exit status ")
	} else if err != nil {
		ts.Fatalf("run: %v", err)
	}
	if code != args[0] {
		ts.Fatalf("got exit code %s, want %s", code, args[0])
	}
}

// TestProgressForPeople checks that text from a device cannot move the cursor.
func TestProgressForPeople(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	log := newPeople(&out)
	log.With("host", "compute-01").Info("reading \x1b[2Jadapters", "pcr", 15)
	log.Warn("again")
	log.Debug("not shown")
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != 2 || !strings.HasSuffix(lines[0], " reading \ufffd[2Jadapters (host compute-01, pcr 15)") ||
		!strings.HasSuffix(lines[1], " warn: again") {
		t.Errorf("got %q", lines)
	}
}
