package main

import (
	"context"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"portcullis/packaging/testenv"
)

// TestMain puts this program into the path of tests, as portcullisd, and the strangers of BenchmarkStrangers.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"portcullisd": offset, "strangers": strangers})
}

func TestScripts(t *testing.T) {
	t.Parallel()
	testscript.Run(t, testscript.Params{Dir: "testdata", RequireUniqueNames: true})
}

// built builds the program of operators once for all tests, beside the portcullisd of TestMain, and returns its file.
var built = sync.OnceValues(func() (string, error) {
	service, err := exec.LookPath("portcullisd")
	if err != nil {
		return "", err
	}
	dir := filepath.Dir(service)
	return filepath.Join(dir, "portcullis"), testenv.Build(context.Background(), dir, "cmd/portcullis")
})

// operatorProgram returns the file of the program of operators.
func operatorProgram(t *testing.T) string {
	t.Helper()
	program, err := built()
	if err != nil {
		t.Fatal(err)
	}
	return program
}
