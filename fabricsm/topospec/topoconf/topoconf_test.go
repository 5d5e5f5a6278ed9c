package topoconf_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"portcullis/fabricsm/topospec"
	"portcullis/fabricsm/topospec/topoconf"
)

// sample has a trunk, hosts of all types, and ports of all states.
const sample = `0x98039b0300867bba,1,0xb83fd2030080302e,1,Any,Active
0x98039b0300867bba,2,0xf452140300280040,1,Any,Active
0x98039b0300867bba,3,0xf452140300280080,1,Any,No-discover
0x98039b0300867bba,4,-,-,Any,No-discover
0xb83fd2030080302e,1,0x98039b0300867bba,1,Any,Active
0xb83fd2030080302e,26,0xf452140300280041,1,Any,Active
0xb83fd2030080302e,40,-,-,Any,Disabled
`

const a, b, h = "0x98039b0300867bba", "0xb83fd2030080302e", "0xf452140300280040"

func TestRoundTrip(t *testing.T) {
	typed := strings.NewReplacer(b+",1,Any", b+",1,Switch", a+",1,Any", a+",1,Switch", h+",1,Any", h+",1,Ca").Replace(sample)
	for _, tt := range []struct {
		name, text string
		types      topoconf.Types
	}{
		{"any", sample, topoconf.TypesAny},
		{"types", typed, topoconf.TypesKnown},
		{"CRLF", strings.ReplaceAll(sample, "\n", "\r\n"), topoconf.TypesAny},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f, err := topoconf.Parse("f", []byte(tt.text))
			if err != nil {
				t.Fatal(err)
			}
			want := strings.ReplaceAll(tt.text, "\r\n", "\n")
			if diff := cmp.Diff(string(f.AppendTo(nil)), want); diff != "" {
				t.Errorf("written again (-got +want):\n%s", diff)
			}
			r, err := f.Revision("f", "fab")
			if err != nil {
				t.Fatal(err)
			}
			if got := string(topoconf.FromRevision(r, tt.types).AppendTo(nil)); got != want {
				t.Errorf("from the revision (-got +want):\n%s", cmp.Diff(got, want))
			}
		})
	}
}

func TestRevision(t *testing.T) {
	f, err := topoconf.Parse("f", []byte(sample))
	if err != nil {
		t.Fatal(err)
	}
	r, err := f.Revision("f", "fab")
	if err != nil {
		t.Fatal(err)
	}
	got := []string{}
	for _, l := range r.Links {
		got = append(got, l.A.String()+" "+l.B.String()+" "+l.State.String()+" "+l.Class.String())
	}
	none := topospec.End{}.String()
	want := []string{
		a + "/1 " + b + "/1 active trunk", a + "/2 " + h + "/1 active any", a + "/3 0xf452140300280080/1 no_discover any",
		a + "/4 " + none + " no_discover any", b + "/26 0xf452140300280041/1 active any", b + "/40 " + none + " disabled any",
	}
	if diff := cmp.Diff(got, want); diff != "" {
		t.Errorf("links (-got +want):\n%s", diff)
	}
}

func TestRefused(t *testing.T) {
	line := a + ",1," + h + ",1,Any,Active\n"
	for _, tt := range []struct{ name, text, want string }{
		{"empty", "", "f: empty"},
		{"byte order mark", "\uFEFF" + line, "f:1: it begins with a byte order mark"},
		{"no end", strings.TrimSuffix(line, "\n"), "f:1: the last line has no end"},
		{"comment", "# x\n" + line, "f:1: comment; the format has none"},
		{"empty line", line + "\n", "f:2: empty line"},
		{"spaces", a + ", 1," + h + ",1,Any,Active\n", "f:1: \"" + a + ", 1"},
		{"five fields", a + ",1," + h + ",1,Any\n", "f:1: 5 fields; want six"},
		{"seven fields", a + ",1," + h + ",1,Any,Active,\n", "f:1: 7 fields"},
		{"short GUID", "0x98039b0300867,1," + h + ",1,Any,Active\n", `f:1: switch port: GUID "0x98039b0300867": want 0x and 16`},
		{"four digits", a + ",1,0x0040,1,Any,Active\n", `f:1: switch ` + a + ` port 1: neighbour: GUID "0x0040"`},
		{"no 0x", "98039b0300867bba00,1," + h + ",1,Any,Active\n", "want 0x and 16"},
		{"zero GUID", a + ",1,0x0000000000000000,1,Any,Active\n", "GUID 0x0000000000000000 is zero"},
		{"all ones", a + ",1,0xffffffffffffffff,1,Any,Active\n", "is all ones"},
		{"group", a + ",1,0x0100000000000001,1,Any,Active\n", "has the group bit set"},
		{"port 0", a + ",0," + h + ",1,Any,Active\n", "want a port from 1 to 254"},
		{"port 255", a + ",255," + h + ",1,Any,Active\n", "want a port from 1 to 254"},
		{"port 01", a + ",01," + h + ",1,Any,Active\n", "want a port from 1 to 254"},
		{"hexadecimal port", a + ",0x1," + h + ",1,Any,Active\n", "want a port from 1 to 254"},
		{"half a neighbour", a + ",1," + h + ",-,Any,Active\n", "write both fields"},
		{"unknown type", a + ",1," + h + ",1,ANY,Active\n", `neighbour type "ANY"; want Any, Ca`},
		{"Activ", a + ",1," + h + ",1,Any,Activ\n", `link state "Activ"; want Active, Disabled, No-discover`},
		{"active in small", a + ",1," + h + ",1,Any,active\n", `link state "active"`},
		{"Active with nobody", a + ",1,-,-,Any,Active\n", "Active without a neighbour"},
		{"loop", a + ",1," + a + ",1,Any,Active\n", "cabled to itself"},
		{"duplicate", line + line, "f:2: switch " + a + " port 1: listed in line 1, too"},
		{"two ports of one neighbour port", line + a + ",2," + h + ",1,Any,Active\n", "is used by the link"},
		{"one-sided trunk", a + ",1," + b + ",1,Any,Active\n" + b + ",2," + h + ",1,Any,Active\n", "f:1: switch " + a + " port 1: the trunk to " + b + "/1 is not listed from its other side"},
		{"one-sided by type", a + ",1," + b + ",1,Switch,Active\n", "not listed from its other side"},
		{"crossed trunk", a + ",1," + b + ",1,Any,Active\n" + b + ",1," + a + ",2,Any,Active\n", "which line 2 says is cabled to " + a + "/2"},
		{"two states", a + ",1," + b + ",1,Any,Active\n" + b + ",1," + a + ",1,Any,Disabled\n", "Active here and Disabled in line 2"},
		{"two types", a + ",1," + h + ",1,Ca,Active\n" + a + ",2," + h + ",2,Router,Active\n", "is of type Router here and Ca in line 1"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f, err := topoconf.Parse("f", []byte(tt.text))
			if err == nil {
				_, err = f.Revision("f", "fab")
			}
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want %q", err, tt.want)
			}
		})
	}
}

func TestAllProblemsTogether(t *testing.T) {
	_, err := topoconf.Parse("f", []byte(strings.Repeat("nonsense\n", 200)))
	if got := strings.Count(err.Error(), "\n") + 1; got != topospec.MaxProblems {
		t.Errorf("%d problems, want %d", got, topospec.MaxProblems)
	}
}

// TestTruncated cuts a file at every byte: it is rejected, or cut between lines, and then has fewer links than before,
// which the coverage guard counts.
func TestTruncated(t *testing.T) {
	for n := range len(sample) {
		f, err := topoconf.Parse("f", []byte(sample[:n]))
		if err == nil {
			_, err = f.Revision("f", "fab")
		}
		if err == nil && (sample[n-1] != '\n' || len(f) >= strings.Count(sample, "\n")) {
			t.Errorf("cut after %d bytes it is taken", n)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(sample))
	f.Add([]byte(a + ",1," + h + ",1,Any,Activ\n"))
	f.Add([]byte("\uFEFF\r\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		file, err := topoconf.Parse("f", data)
		if err != nil {
			return
		}
		again, err := topoconf.Parse("f", file.AppendTo(nil))
		if err != nil {
			t.Fatalf("what was written is refused: %v", err)
		}
		if diff := cmp.Diff(again, file); diff != "" {
			t.Fatalf("written and read (-got +want):\n%s", diff)
		}
		r, err := file.Revision("f", "fab")
		if err != nil {
			return
		}
		projected, err := topoconf.FromRevision(r, topoconf.TypesKnown).Revision("f", "fab")
		if err != nil {
			t.Fatalf("the projection is refused: %v", err)
		}
		if projected.Digest() == r.Digest() {
			return
		}
		for i := range projected.Links {
			if projected.Links[i].A != r.Links[i].A || projected.Links[i].B != r.Links[i].B || projected.Links[i].State != r.Links[i].State {
				t.Fatalf("link %d: got %+v, want %+v", i, projected.Links[i], r.Links[i])
			}
		}
	})
}
