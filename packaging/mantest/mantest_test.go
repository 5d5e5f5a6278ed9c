package mantest

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// helps are the help texts of a program, by command.
var helps = map[string]string{
	"":     "Usage:\n  tool [command]\n\nAvailable Commands:\n  help   Help\n  host   Hosts\n  sm     Alone\n\nFlags:\n  -h, --help\n  -o, --output FORMAT\n",
	"host": "Usage:\n  tool host list [--all]\n  tool host show NAME\n",
	"sm":   "Usage:\n  tool sm --port PORT [--once]\n",
}

func help(args ...string) string {
	path := strings.TrimSpace(strings.TrimSuffix(strings.Join(args, " "), "--help"))
	return helps[path]
}

func TestDiffer(t *testing.T) {
	const whole = `.Nm
.Cm host list | show
.Bl -tag -width Ds
.It Fl o , -output Cm table | json
.It Cm host list Op Fl -all , Cm host show Ar name
.It Cm sm Fl -port Ar port Op Fl -once
Plays what
.Nm other Fl -record
wrote.
`
	for _, tt := range []struct {
		name, was, is string
		want          []string
	}{
		{"the same", "", "", nil},
		{"a command is missing", " , Cm host show Ar name", "", []string{"does not name the command host show"}},
		{"an option is missing", " Op Fl -once", "", []string{"does not name the option --once"}},
		{"an option is gone", "-once", "-twice", []string{"does not name the option --once", "names the option --twice, which no --help has"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if d := cmp.Diff(differ("tool", strings.Replace(whole, tt.was, tt.is, 1), help), tt.want); d != "" {
				t.Errorf("-got +want:\n%s", d)
			}
		})
	}
}
