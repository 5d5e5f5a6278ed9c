package main

import (
	"strings"
	"testing"
	"time"

	"portcullis/cmd/portcullisd/command"

	"github.com/google/go-cmp/cmp"
)

func TestCommandLine(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, args     string
		code           int
		stdout, stderr string // the first line of each
	}{
		{"help", "--help", command.ExitOK, "Usage:", ""},
		{"help of sm", "sm --help", command.ExitOK, "Usage:", ""},
		{"help of token", "token -h", command.ExitOK, "Usage:", ""},
		{"near an option", "sm --prot x", command.ExitUsage, "", "portcullisd: unknown option --prot; did you mean --port?"},
		{"near no option", "--zzzzzzzz", command.ExitUsage, "", "portcullisd: unknown option --zzzzzzzz"},
		{"no value", "sm --port", command.ExitUsage, "", "portcullisd: --port wants a value"},
		{"wrong value", "sm --port sim:x --priority high", command.ExitUsage, "", `portcullisd: --priority "high": want a number`},
		{"wrong switch", "--check=maybe", command.ExitUsage, "", `portcullisd: --check "maybe": want true or false`},
		{"operand", "sm start", command.ExitUsage, "", `portcullisd: unexpected argument "start"`},
		{"unknown command", "go", command.ExitUsage, "", `portcullisd: unknown command "go": want certificate, cluster, init, observe, restore, sm or token, or options alone to run the service`},
		{"near a command", "tokn", command.ExitUsage, "", `portcullisd: unknown command "tokn"; did you mean token?`},
		{"operand of the service", "--check now", command.ExitUsage, "", `portcullisd: unexpected argument "now"`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var stdout, stderr strings.Builder
			code := run(t.Context(), strings.Fields(tt.args), time.Now, nil, &stdout, &stderr)
			out, _, _ := strings.Cut(stdout.String(), "\n")
			errs, rest, _ := strings.Cut(stderr.String(), "\n")
			if diff := cmp.Diff([]any{tt.code, tt.stdout, tt.stderr}, []any{code, out, errs}); diff != "" {
				t.Errorf("run (-want +got):\n%s", diff)
			}
			if tt.code == command.ExitUsage && !strings.HasPrefix(rest, "portcullisd: hint: portcullisd ") {
				t.Errorf("the error is followed by %q, want a hint", rest)
			}
		})
	}
}
