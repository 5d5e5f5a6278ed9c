package satest_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sa/satest"
	"portcullis/fabricsm/transport/ibsim/ibsimtest"
)

// TestProxyJoin lets a trusted client join a group for itself and for another port, and compares the answers of both
// managers: OpenSM and saquery have ProxyJoin in a reserved bit.
func TestProxyJoin(t *testing.T) {
	ibsimtest.Need(t, "opensm", "saquery")
	const at, standard, reserved = 49, 0x80, 0x01 // byte of the record, and bits of that
	const name = "ff12:1234::4d"
	mgid := blank(16).u16(0, 0xFF12).u16(2, 0x1234).u32(12, 0x4d)
	l := small(t)
	s := newSite(t, ibsimtest.Start(t, text(t, l)), openPartitions)
	s.both(t, func(ours bool) {
		c := dial(t, s.lab, "sm")
		p := look(t, c, l, trusted)
		ask := func(m mad.Method, mask mad.ComponentMask, r record) satest.Answer {
			t.Helper()
			a, err := c.Ask(satest.Question{Method: m, Attr: mad.AttrMCMemberRecord, Mask: mask, Record: r, Key: trusted})
			if err != nil || a.Status != mad.StatusOK {
				t.Fatalf("ours %v: %v of mask %#x: %v, %v", ours, m, uint64(mask), a.Status, err)
			}
			return a
		}
		bit := byte(reserved)
		if ours {
			bit = standard
		}
		for _, who := range []string{"sm", "h9"} {
			ask(mad.MethodSet, mcCreate, p.group(mgid, who, 1, 0x8001))
		}
		of := func(r []byte) string {
			switch gid := r[16:32]; {
			case slices.Equal(gid, p.member(mgid, "sm", 0)[16:32]):
				return fmt.Sprintf("sm %#x", r[at])
			case slices.Equal(gid, p.member(mgid, "h9", 0)[16:32]):
				return fmt.Sprintf("h9 %#x", r[at])
			default:
				return fmt.Sprintf("%x", gid)
			}
		}
		members := func(mask mad.ComponentMask, proxy byte) (list []string) {
			table := ask(mad.MethodGetTable, mask, p.member(mgid, "sm", 0).u8(at, proxy))
			for _, r := range table.Records() {
				list = append(list, of(r))
			}
			slices.Sort(list)
			return list
		}
		own, others := "sm 0x0", fmt.Sprintf("h9 %#x", bit)
		if got := members(bits(mcMGID), 0); !slices.Equal(got, []string{others, own}) {
			t.Errorf("ours %v: members %q, want %q and %q", ours, got, others, own)
		}
		saquery := func(args ...string) string {
			h := hear(t, s.lab, s.preload, &call{"sm", append([]string{"-t", saqueryTimeout, "--smkey", fmt.Sprintf("%#x", uint64(trustedKey)), "MCMR", "--mgid", name}, args...)})
			if h.failed != "" {
				t.Errorf("ours %v: saquery %q: %s", ours, args, h.failed)
			}
			return strings.Join(h.records, "")
		}
		printed := strings.Count(saquery(), "ProxyJoin...............0x1")
		if want := map[bool]int{false: 1, true: 0}[ours]; printed != want {
			t.Errorf("ours %v: saquery prints ProxyJoin 0x1 %d times, want %d", ours, printed, want)
		}
		if !ours {
			return // OpenSM has its own flag for this, and returns both or none
		}
		for proxy, want := range map[byte]string{0: own, reserved: others, standard: others} {
			if got := members(bits(mcMGID, mcProxy), proxy); !slices.Equal(got, []string{want}) {
				t.Errorf("members by ProxyJoin %#x: %q, want %q", proxy, got, want)
			}
		}
		if got := saquery("--proxy_join", "1"); !strings.Contains(got, ":901\n") || strings.Contains(got, ":1\n") {
			t.Errorf("saquery --proxy_join 1 prints\n%s\nwant h9 alone", got)
		}
	})
	if doc, err := os.ReadFile("../../../docs/understand/sa.md"); err != nil || !strings.Contains(string(doc), "\n| ProxyJoin | the lowest bit") {
		t.Errorf("docs/understand/sa.md does not tell where ProxyJoin is: %v", err)
	}
}
