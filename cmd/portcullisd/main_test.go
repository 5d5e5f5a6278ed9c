package main

import (
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// TestMain puts this program into the path of tests, as portcullisd.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"portcullisd": main})
}

func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{Dir: "testdata", RequireUniqueNames: true})
}
