package netdiff_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"portcullis/fabricsm/sim/netlist"
	"portcullis/fabricsm/sim/netlist/netdiff"
)

const before = `switchguid=0x100
Switch 8 "leaf1"	# "leaf1" base port 0 lid 1 lmc 0
[1] "h1"[1]	# "h1" lid 4 4xEDR
[2] "h2"[1]	# "h2" lid 5 4xEDR
[7] "spine"[1]	# "spine" lid 3 4xEDR
[8] "spine"[2]	# "spine" lid 3 4xEDR

switchguid=0x200
Switch 8 "leaf2"	# "leaf2" base port 0 lid 2 lmc 0
[1] "h3"[1]	# "h3" lid 6 4xEDR
[7] "spine"[3]	# "spine" lid 3 4xEDR

switchguid=0x300
Switch 8 "spine"	# "spine" base port 0 lid 3 lmc 0
[1] "leaf1"[7]	# "leaf1" lid 1 4xEDR
[2] "leaf1"[8]	# "leaf1" lid 1 4xEDR
[3] "leaf2"[7]	# "leaf2" lid 2 4xEDR

caguid=0x1000
Ca 1 "h1"	# "h1"
[1] "leaf1"[1]	# lid 4 lmc 0 "leaf1" lid 1 4xEDR

caguid=0x2000
Ca 1 "h2"	# "h2"
[1] "leaf1"[2]	# lid 5 lmc 0 "leaf1" lid 1 4xEDR

caguid=0x3000
Ca 1 "h3"	# "h3"
[1] "leaf2"[1]	# lid 6 lmc 0 "leaf2" lid 2 4xEDR
`

func parse(t *testing.T, text string) *netlist.Netlist {
	t.Helper()
	l, err := netlist.Parse("net", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func TestCompare(t *testing.T) {
	replace := func(pairs ...string) string { return strings.NewReplacer(pairs...).Replace(before) }
	for _, tt := range []struct {
		name string
		now  string
		opts netdiff.Options
		want []string
	}{
		{"nothing", before, netdiff.Options{Names: true, LIDs: true}, nil},
		{"host gone", replace("[2] \"h2\"[1]	# \"h2\" lid 5 4xEDR\n", "", "caguid=0x2000\nCa 1 \"h2\"	# \"h2\"\n[1] \"leaf1\"[2]	# lid 5 lmc 0 \"leaf1\" lid 1 4xEDR\n", ""), netdiff.Options{}, []string{
			"gone CA h2 was at leaf1/2",
		}},
		{"host moved", replace("[2] \"h2\"[1]	# \"h2\" lid 5 4xEDR\n", "", "[1] \"h3\"[1]", "[5] \"h2\"[1]	# \"h2\" lid 5 4xEDR\n[1] \"h3\"[1]", "\"leaf1\"[2]	# lid 5 lmc 0 \"leaf1\" lid 1", "\"leaf2\"[5]	# lid 5 lmc 0 \"leaf2\" lid 2"), netdiff.Options{}, []string{
			"moved CA h2/1 from leaf1/2 to leaf2/5",
		}},
		{"trunk gone", replace("[8] \"spine\"[2]	# \"spine\" lid 3 4xEDR\n", "", "[2] \"leaf1\"[8]	# \"leaf1\" lid 1 4xEDR\n", ""), netdiff.Options{}, []string{
			"gone link leaf1/8 - spine/2 ",
		}},
		{"trunk slower", replace("[8] \"spine\"[2]	# \"spine\" lid 3 4xEDR", "[8] \"spine\"[2]	# \"spine\" lid 3 1xEDR", "[2] \"leaf1\"[8]	# \"leaf1\" lid 1 4xEDR", "[2] \"leaf1\"[8]	# \"leaf1\" lid 1 1xEDR"), netdiff.Options{}, []string{
			"slower link leaf1/8 - spine/2 1xEDR, was 4xEDR",
		}},
		{"trunk no longer slow", replace("4xEDR", "4xHDR"), netdiff.Options{}, nil},
		{"new name and LID", replace("Ca 1 \"h1\"	# \"h1\"", "Ca 1 \"h1\"	# \"compute-1\"", "lid 4", "lid 9"), netdiff.Options{Names: true, LIDs: true}, []string{
			`renamed CA compute-1 was "h1"`, "lid CA compute-1 port 1 has LID 9, had 4",
		}},
		{"name and LID do not matter", replace("Ca 1 \"h1\"	# \"h1\"", "Ca 1 \"h1\"	# \"compute-1\"", "lid 4", "lid 9"), netdiff.Options{}, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var got []string
			for _, c := range netdiff.Compare(parse(t, before), parse(t, tt.now), tt.opts) {
				got = append(got, fmt.Sprintf("%v %s %s %s", c.Kind, c.What, c.Name, c.Detail))
			}
			if d := cmp.Diff(got, tt.want); d != "" {
				t.Errorf("(-got +want):\n%s", d)
			}
			for _, c := range netdiff.Compare(parse(t, tt.now), parse(t, before), tt.opts) {
				if c.Kind == netdiff.Gone && tt.name == "host gone" {
					t.Errorf("the other way round: %+v, want it new", c)
				}
			}
		})
	}
}

// TestSwappedCables: two swapped cables are reported as two moves.
func TestSwappedCables(t *testing.T) {
	swapped := strings.NewReplacer(
		"[1] \"h1\"[1]	# \"h1\" lid 4", "[1] \"h2\"[1]	# \"h2\" lid 5", "[2] \"h2\"[1]	# \"h2\" lid 5", "[2] \"h1\"[1]	# \"h1\" lid 4",
		"\"leaf1\"[1]	# lid 4", "\"leaf1\"[2]	# lid 4", "\"leaf1\"[2]	# lid 5", "\"leaf1\"[1]	# lid 5").Replace(before)
	got := netdiff.Compare(parse(t, before), parse(t, swapped), netdiff.Options{})
	if len(got) != 2 || got[0].Kind != netdiff.Moved || got[0].Name != "h1/1" || got[1].Name != "h2/1" {
		t.Errorf("got %+v, want h1 and h2 moved", got)
	}
}
