package page

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const sample = `# A configuration.
# All of it.

# Where it listens. A socket
# comes first.
listen: 127.0.0.1:8443

# The first section.
first:
  # Two files. ".pem" ends them.
  cert: ""
  key: ""
  second:
    # A list of
    #   {one: 1}
    #   'two
    # as above.
    list: []

# At the end.
last: 5s
`

// A comment is about the keys that follow it, sections are headings, and what mdoc would take for a request is text.
func TestOf(t *testing.T) {
	t.Parallel()
	got, err := Of(sample)
	if err != nil {
		t.Fatal(err)
	}
	got, _ = strings.CutPrefix(got, head)
	got, _ = strings.CutSuffix(got, foot)
	want := `.Ss The service
.Bl -tag -width Ds
.It Ic listen
Where it listens.
A socket comes first.
Default: 127.0.0.1:8443.
.El
.Ss first
The first section.
.Bl -tag -width Ds
.It Ic first.cert , Ic first.key
Two files.
\(dq.pem\(dq ends them.
Default: none.
.El
.Ss first.second
.Bl -tag -width Ds
.It Ic first.second.list
A list of
.Bd -literal -offset Ds
{one: 1}
\&'two
.Ed
as above.
Default: none.
.El
.Ss The service, continued
.Bl -tag -width Ds
.It Ic last
At the end.
Default: 5s.
.El
`
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("page (-want +got):\n%s", d)
	}
}

// A key that no comment is about would be a key without an explanation.
func TestKeyWithoutAComment(t *testing.T) {
	t.Parallel()
	for _, config := range []string{"# A file.\n\nlisten: 1\n", "# A file.\n\n# A key.\nlisten: 1\n\nother: 2\n", "# A file.\n\nno key\n", "# A file."} {
		if p, err := Of(config); err == nil {
			t.Errorf("%q is taken:\n%s", config, p)
		}
	}
}
