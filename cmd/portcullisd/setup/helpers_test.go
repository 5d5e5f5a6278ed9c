package setup

import (
	"errors"
	"io"
	"os"
	"testing"

	"portcullis/cmd/portcullisd/command"
)

func write(t testing.TB, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// run runs a subcommand of this package, and returns the exit code of the program.
func run(args []string, stdout, stderr io.Writer) int {
	verbs := map[string]func([]string, io.Writer, io.Writer) error{"init": Init, "certificate": Certificate, "token": Token}
	err := verbs[args[0]](args[1:], stdout, stderr)
	switch {
	case err == nil:
		return command.ExitOK
	case errors.Is(err, command.ErrUsage):
		return command.ExitUsage
	default:
		command.Report(stderr, err)
		return command.ExitError
	}
}
