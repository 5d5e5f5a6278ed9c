// Command tally runs "go test" with the arguments it is given and tells a
// person what came of it: a line for each package, the whole output of what
// failed, the reason of what was skipped, and how many there were of each.
//
// Where PORTCULLIS_REAL_PARTS says required, a skipped test is a failed one.
package main

import (
	"fmt"
	"io"
	"os"
	"os/exec"

	"portcullis/packaging/parttest"
)

func main() {
	os.Exit(run(os.Args[1:], os.Stdout, os.Stderr, parttest.Required()))
}

func run(args []string, stdout, stderr io.Writer, required bool) int {
	cmd := exec.Command("go", append([]string{"test", "-json"}, args...)...)
	cmd.Stderr = stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		fmt.Fprintf(stderr, "tally: %v\n", err)
		return 1
	}
	if err := cmd.Start(); err != nil {
		fmt.Fprintf(stderr, "tally: start go test: %v\n", err)
		return 1
	}
	t := newTally(stdout)
	readErr := t.read(out)
	waitErr := cmd.Wait()
	t.sum(required)
	switch {
	case readErr != nil:
		fmt.Fprintf(stderr, "tally: read what go test says: %v\n", readErr)
	case t.count["pass"] == 0:
		fmt.Fprintln(stderr, "tally: no test was run")
	case waitErr == nil && !(required && t.count["skip"] > 0):
		return 0
	}
	return 1
}
