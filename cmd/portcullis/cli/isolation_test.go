package cli_test

import (
	"errors"
	"strings"
	"testing"

	v1 "portcullis/api/v1"
	"portcullis/cmd/portcullis/cli"
)

// A host is as well isolated as its worst port. What cannot be seen is not said to be isolated.
func TestHostIsolation(t *testing.T) {
	t.Parallel()
	good := v1.IsolationPortVerdict{GUID: 1, Verdict: v1.Isolated, Held: v1.HeldByEach}
	bad := v1.IsolationPortVerdict{GUID: 2, Verdict: v1.Leaks, End: v1.EndReceives, Other: "blue"}
	dark := v1.IsolationPortVerdict{GUID: 3, Verdict: v1.Unproven, Cause: v1.PortNotFound}
	strange := v1.IsolationPortVerdict{GUID: 4, Verdict: "splendid"}
	for name, test := range map[string]struct {
		ports []v1.IsolationPortVerdict
		err   error
		want  string
	}{
		"isolated":  {[]v1.IsolationPortVerdict{good, good}, nil, "isolated, 2 ports, examined 1m5s ago"},
		"leaks":     {[]v1.IsolationPortVerdict{good, dark, bad}, nil, "NOT ISOLATED: port 0x0000000000000002: a packet passes from blue; examined"},
		"unproven":  {[]v1.IsolationPortVerdict{good, dark}, nil, "not proven: port 0x0000000000000003: the port was not found where it is declared; examined"},
		"strange":   {[]v1.IsolationPortVerdict{good, strange}, nil, "not proven: port 0x0000000000000004"},
		"no port":   {nil, nil, "not proven: the newest examination was about no port"},
		"never":     {nil, &v1.Problem{Status: 404, Code: v1.CodeNotExamined}, "not proven: nothing was examined"},
		"forbidden": {nil, &v1.Problem{Status: 403, Code: v1.CodeForbidden}, ""},
		"elsewhere": {nil, &v1.Problem{Status: 503, Code: v1.CodeSMElsewhere}, ""},
		"broken":    {nil, errors.New("broken"), "not known: broken"},
	} {
		got := cli.HostIsolation(&v1.IsolationPorts{Age: 65, Items: test.ports}, test.err)
		if !strings.HasPrefix(got, test.want) || (test.want == "") != (got == "") {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}
