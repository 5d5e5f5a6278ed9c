package main

import (
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// TestMain puts this program into the path of tests, as portcullisd, and the strangers of BenchmarkStrangers.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"portcullisd": offset, "strangers": strangers})
}

func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{Dir: "testdata", RequireUniqueNames: true})
}
