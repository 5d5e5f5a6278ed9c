//go:build vm

package umad_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"portcullis/packaging/vm/inside/guest"
)

// TestBringUp is items 1 and 2 of step 3, judged by every one of Debian's tools from another node.
func TestBringUp(t *testing.T) {
	newFabric(t, ourNode, tester)
	m := manage(t, ours)
	t.Logf("%+v", m.settled(0))
	judge(t, netlist(t))
	judgeMore(t)
	if out := guest.Do(t, "portcullis", "fabric", "show", "--socket", m.socket); !strings.Contains(out, "6 switches, 12 CAs") ||
		!strings.Contains(out, "56 with a cable, 56 Active") || !regexp.MustCompile(`Problems +none`).MatchString(out) {
		t.Errorf("portcullis says:\n%s", out)
	}
	t.Run("kernel", func(t *testing.T) {
		lid := port(t, ours, "lid")
		for file, want := range map[string]string{
			"state": "4: ACTIVE", "sm_lid": lid, "gids/0": "fe80:0000:0000:0000:0020:0000:0000:0101", "pkeys/0": "0x7fff", "lid_mask_count": "0",
		} {
			if got := port(t, theirs, file); got != want {
				t.Errorf("%s of the other node is %s, want %s", file, got, want)
			}
		}
		if got := port(t, ours, "pkeys/0"); got != "0xffff" {
			t.Errorf("P_Key 0 of the Subnet Manager's own port is %s, want that of a full member", got)
		}
	})
	t.Run("ibping", func(t *testing.T) {
		program(t, "ibping", "-C", theirs, "-S")
		var out string
		guest.Eventually(t, patience, "no answer", func() bool {
			e := guest.Try(t, "ibping", "-C", ours, "-c", "2", port(t, theirs, "lid"))
			out = e.All
			return e.Code == 0
		})
		if !strings.Contains(out, "0% packet loss") {
			t.Errorf("ibping says:\n%s", out)
		}
	})
}

// judge asks Debian's tools from the other node, and compares what they say with the netlist.
func judge(t *testing.T, file string) {
	t.Helper()
	cables := cablesOf(guest.Read(t, file))
	t.Run("sminfo", func(t *testing.T) {
		out := guest.Do(t, "sminfo", "-C", theirs)
		if !strings.Contains(out, "sm guid 0x20000000000001") || !strings.Contains(out, "SMINFO_MASTER") {
			t.Errorf("it says %s", out)
		}
	})
	t.Run("ibstat", func(t *testing.T) {
		out := guest.Do(t, "ibstat", theirs)
		for _, part := range []string{"State: Active", "Physical state: LinkUp", "Rate: 100", "Link layer: InfiniBand", "Port GUID: 0x0020000000000101"} {
			if !strings.Contains(out, part) {
				t.Errorf("it does not say %q:\n%s", part, out)
			}
		}
	})
	t.Run("ibnetdiscover", func(t *testing.T) {
		if got := cablesOf(guest.Do(t, "ibnetdiscover", "-C", theirs)); !slices.Equal(got, cables) {
			t.Errorf("it found cables\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(cables, "\n"))
		}
	})
	t.Run("iblinkinfo", func(t *testing.T) {
		out := guest.Do(t, "iblinkinfo", "-C", theirs)
		if n := strings.Count(out, "Active/  LinkUp)==>"); n != 2*len(cables) {
			t.Errorf("it shows %d ends of cables as Active, want %d:\n%s", n, 2*len(cables), out)
		}
		if strings.Contains(out, "Initialize") || strings.Contains(out, "Armed") {
			t.Errorf("ports are not Active:\n%s", out)
		}
	})
}

// judgeMore asks the other tools.
func judgeMore(t *testing.T) {
	t.Helper()
	t.Run("smpquery", func(t *testing.T) {
		if out := guest.Do(t, "smpquery", "-C", theirs, "-D", "nodedesc", "0,1"); !strings.Contains(out, "leaf1") {
			t.Errorf("by a directed route it says %s", out)
		}
		if out := guest.Do(t, "smpquery", "-C", theirs, "nodedesc", decimal(port(t, ours, "lid"))); !strings.Contains(out, ourNode) {
			t.Errorf("by LID it says %s", out)
		}
	})
	t.Run("ibaddr", func(t *testing.T) {
		out := guest.Do(t, "ibaddr", "-C", theirs)
		if want := "LID start " + port(t, theirs, "lid"); !strings.Contains(out, want) {
			t.Errorf("it says %s, want %s", out, want)
		}
	})
	t.Run("ibtracert", func(t *testing.T) {
		to := lidOf(t, "0,1,5,3,2") // the third host behind the second leaf, by a spine
		out := guest.Do(t, "ibtracert", "-C", theirs, decimal(port(t, theirs, "lid")), to)
		if n := strings.Count(out, "->"); n != 4 || !strings.Contains(out, `"h4"`) {
			t.Errorf("its way has %d cables, want 4 to h4:\n%s", n, out)
		}
	})
	t.Run("perfquery", func(t *testing.T) {
		out := guest.Do(t, "perfquery", "-C", theirs, decimal(port(t, ours, "lid")), "1")
		if !strings.Contains(out, "PortXmitPkts:") {
			t.Errorf("it says %s", out)
		}
	})
}

// lidOf asks for the LID of the port that a directed route from the other node leads to.
func lidOf(t testing.TB, route string) string {
	t.Helper()
	out := guest.Do(t, "smpquery", "-C", theirs, "-D", "portinfo", route)
	_, rest, found := strings.Cut(out, "\nLid:")
	lid, _, _ := strings.Cut(rest, "\n")
	if !found {
		t.Fatalf("no LID in\n%s", out)
	}
	return strings.Trim(lid, ".")
}

// decimal returns a number of the kernel as tools take it.
func decimal(hex string) string {
	var n int
	if _, err := fmt.Sscanf(hex, "0x%x", &n); err != nil {
		return hex
	}
	return fmt.Sprint(n)
}

var (
	nodeLine = regexp.MustCompile(`^(?:Ca|Switch)\s+\d+\s+"([^"]+)"\s*# "([^"]+)"`)
	portLine = regexp.MustCompile(`^\[(\d+)\](?:\([0-9a-f]+\))?\s+"([^"]+)"\[(\d+)\]`)
)

// cablesOf returns the cables in a netlist or in what ibnetdiscover printed, each once, in order.
func cablesOf(text string) []string {
	names, node := map[string]string{}, ""
	var ends [][4]string
	for line := range strings.Lines(text) {
		if m := nodeLine.FindStringSubmatch(line); m != nil {
			node = m[1]
			names[node] = m[2]
		}
		if m := portLine.FindStringSubmatch(line); m != nil {
			ends = append(ends, [4]string{node, m[1], m[2], m[3]})
		}
	}
	var out []string
	for _, e := range ends {
		a, b := names[e[0]]+"/"+e[1], names[e[2]]+"/"+e[3]
		if a < b {
			out = append(out, a+" "+b)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}
