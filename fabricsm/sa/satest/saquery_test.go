package satest_test

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/sa/satest"
	"portcullis/fabricsm/sim/netlist"
	"portcullis/fabricsm/transport/ibsim/ibsimlab"
	"portcullis/fabricsm/transport/ibsim/ibsimtest"
)

// call is one of saquery.
type call struct {
	host string
	args []string
}

func (c *call) String() string {
	return fmt.Sprintf("saquery %s, from %s", strings.Join(c.args, " "), c.host)
}

// heard is the output of saquery.
type heard struct {
	records []string // that it printed, or lines
	failed  string   // its error message
}

// saqueryTimeout is the timeout of saquery, in milliseconds. It is long, as a busy machine must not look like a manager that does not answer. The
// nine queries without an answer take the whole timeout.
const saqueryTimeout = "4000"

// calls returns all options of saquery, with their possible combinations.
func (p *place) calls(host string, key string) (calls []call) {
	add := func(args ...string) {
		if key != "" {
			args = append([]string{"--smkey", key}, args...)
		}
		calls = append(calls, call{host, append([]string{"-t", saqueryTimeout}, args...)})
	}
	lid := func(h string) string { return fmt.Sprint(p.lid(h)) }
	gid := func(h string) string {
		g := uint64(p.guid(h))
		return fmt.Sprintf("fe80::%x:%x:%x:%x", g>>48, g>>32&0xffff, g>>16&0xffff, g&0xffff)
	}
	sw := ""
	for i := range p.list.Nodes {
		if n := &p.list.Nodes[i]; n.Type == ib.NodeSwitch {
			sw = fmt.Sprint(p.lids[n.GUID])
			break
		}
	}
	for _, one := range []string{"-p", "-N", "-s", "-g", "-m", "-x", "-c", "-S", "-I", "--list", "-D"} {
		add(one)
	}
	add("-K", "-s")
	add("-L", "h9")
	add("-l", "h9")
	add("-G", "h9")
	add("-L", "nobody")
	add("-O", lid("h9"))
	add("-U", fmt.Sprintf("%#x", uint64(p.guid("h9"))))
	add("h9")
	add(lid("h9"))
	add("-m", "0xc000")
	add("--src-to-dst", lid(host)+":"+lid("h9"))
	add("--src-to-dst", host+":h9")
	add("--src-to-dst", "sm:h2")
	add("--sgid-to-dgid", gid(host)+"-"+gid("h9"))
	add("--sgid-to-dgid", gid("h2")+"-"+gid("h4"))
	for _, kind := range []struct {
		names []string
		args  []string
	}{
		{[]string{"ClassPortInfo", "CPI"}, nil},
		{[]string{"NodeRecord", "NR"}, []string{lid("h9"), sw, "1911"}},
		{[]string{"PortInfoRecord", "PIR"}, []string{lid("h9"), sw, sw + "/1", sw + "/0", sw + "/77", lid("h9") + "/1/0x80", lid("h9") + "/1/0"}},
		{[]string{"SL2VLTableRecord", "SL2VL"}, []string{lid("h9"), sw + "/1", sw + "/1/2"}},
		{[]string{"PKeyTableRecord", "PKTR"}, []string{lid("h9"), lid("h9") + "/1", lid("h9") + "/1/0", sw + "/1", sw + "/1/0"}},
		{[]string{"VLArbitrationTableRecord", "VLAR"}, []string{lid("h9"), sw, sw + "/1", sw + "/1/1"}},
		{[]string{"InformInfoRecord", "IIR"}, []string{gid(host)}},
		{[]string{"LinkRecord", "LR"}, []string{lid("h9"), sw, sw + "/1"}},
		{[]string{"ServiceRecord", "SR"}, nil},
		{[]string{"PathRecord", "PR"}, nil},
		{[]string{"MCMemberRecord", "MCMR"}, nil},
		{[]string{"LFTRecord", "LFTR"}, []string{sw, sw + "/0", sw + "/700", lid("h9")}},
		{[]string{"MFTRecord", "MFTR"}, []string{"0xC000", "0xC000/0", sw, sw + "/0/0"}},
		{[]string{"GUIDInfoRecord", "GIR"}, []string{lid("h9"), lid("h9") + "/0", lid("h9") + "/1"}},
		{[]string{"SwitchInfoRecord", "SWIR"}, []string{sw, lid("h9")}},
		{[]string{"SMInfoRecord", "SMIR"}, []string{lid("sm"), lid("h9")}},
	} {
		for _, n := range kind.names {
			add(n)
		}
		for _, a := range kind.args {
			add(kind.names[1], a)
		}
	}
	add("LR", sw+"/1", lid("h9"))
	add("LR", sw, lid("h2")+"/1")
	path := func(args ...string) { add(append([]string{"PR"}, args...)...) }
	path("--slid", lid(host))
	path("--dlid", lid("h9"))
	path("--slid", lid(host), "--dlid", lid("h9"))
	path("--sgid", gid(host))
	path("--dgid", gid("h9"))
	path("--sgid", gid(host), "--dgid", gid("h9"))
	for _, one := range [][]string{
		{"--reversible", "1"},
		{"--reversible", "0"},
		{"--numb_path", "1"},
		{"--numb_path", "3"},
		{"--pkey", "0xffff"},
		{"--pkey", "0x8001"},
		{"--pkey", "0x7fff"},
		{"--qos_class", "0"},
		{"--sl", "0"},
		{"--sl", "1"},
		{"--mtu", "0x84"},
		{"--mtu", "0x03"},
		{"--mtu", "0x44"},
		{"--mtu", "0xc4"},
		{"--rate", "0x83"},
		{"--rate", "0x02"},
		{"--rate", "0x43"},
		{"--rate", "0xd0"},
		{"--pkt_lifetime", "0x92"},
		{"--pkt_lifetime", "0x01"},
		{"--pkt_lifetime", "0x53"},
		{"--tclass", "0"},
		{"--tclass", "1"},
		{"--flow_label", "0"},
		{"--flow_label", "1"},
		{"--hop_limit", "0"},
		{"--hop_limit", "1"},
		{"--service_id", "1"},
	} {
		path(append([]string{"--slid", lid(host), "--dlid", lid("h9")}, one...)...)
	}
	group := func(args ...string) { add(append([]string{"MCMR"}, args...)...) }
	for _, one := range [][]string{
		{"--mlid", "0xC000"},
		{"--mlid", "0xC3FF"},
		{"--mgid", "ff12:401b:ffff::ffff:ffff"},
		{"--mgid", "ff12::1"},
		{"--gid", gid(host)},
		{"--gid", gid("h9")},
		{"--pkey", "0xffff"},
		{"--pkey", "0x8001"},
		{"--mtu", "0x84"},
		{"--mtu", "0x04"},
		{"--mtu", "0x45"},
		{"--rate", "0x83"},
		{"--rate", "0x02"},
		{"--pkt_lifetime", "0x92"},
		{"--pkt_lifetime", "0x12"},
		{"--qkey", "0xb1b"},
		{"--qkey", "1"},
		{"--tclass", "0"},
		{"--flow_label", "0"},
		{"--hop_limit", "0"},
		{"--scope", "2"},
		{"--scope", "5"},
		{"--join_state", "1"},
		{"--join_state", "4"},
		{"--proxy_join", "0"},
		{"--proxy_join", "1"},
		{"--sl", "0"},
		{"--sl", "3"},
	} {
		group(one...)
	}
	return calls
}

// untrustedCalls are those of a host without the SA_Key, or with a wrong one: some that the
// enhanced trust model lets pass, and some that it does not.
func (p *place) untrustedCalls(host string) (calls []call) {
	ends := fmt.Sprintf("%v:%v", p.lid(host), p.lid("h9"))
	for _, args := range [][]string{
		{"-c"},
		{"--src-to-dst", ends},
		{"PR", "--slid", fmt.Sprint(p.lid(host)), "--dlid", fmt.Sprint(p.lid("h9")), "--pkey", "0x8001", "--numb_path", "1"},
		{"-p"},
		{"-N"},
		{"-g"},
		{"-s"},
		{"PKTR"},
		{"--smkey", "0x77", "-c"},
		{"--smkey", "1", "--src-to-dst", ends},
	} {
		calls = append(calls, call{host, append([]string{"-t", saqueryTimeout}, args...)})
	}
	return calls
}

// said lists accepted differences of the output of saquery, by the beginning of their rows in docs/understand/sa.md.
var said = []struct {
	told  string
	where func(c *call, theirs, ours *heard) bool
}{
	{"| untrusted requests outside a short table |", func(c *call, _, ours *heard) bool {
		return c.host == "h7" && strings.Contains(ours.failed, "timed out")
	}},
	{"| ClassPortInfo |", func(c *call, _, ours *heard) bool { return ours.failed == "" && c.asks("-c", "CPI", "ClassPortInfo") }},
	{"| all paths at once |", func(c *call, _, ours *heard) bool {
		return c.asks("-p", "PR", "PathRecord") && strings.Contains(ours.failed, "0x0700")
	}},
	{"| P_KeyTable of switch ports towards switches", func(c *call, theirs, ours *heard) bool {
		return c.asks("PKTR", "PKeyTableRecord") && ours.failed == "" && contains(theirs.records, ours.records)
	}},
	{"| MulticastForwarding of switches in no tree |", func(c *call, theirs, ours *heard) bool {
		return c.asks("MFTR", "MFTRecord") && ours.failed == "" && len(theirs.records) == 0
	}},
	{"| SMInfoRecord, Priority |", func(c *call, _, ours *heard) bool {
		return c.asks("SMIR", "SMInfoRecord") && ours.failed == "" && len(ours.records) == 1
	}},
	{"| records of switches and of links to them |", func(c *call, theirs, ours *heard) bool {
		about := []string{"-x", "LR", "LinkRecord", "PIR", "PortInfoRecord", "SL2VL", "SL2VLTableRecord", "VLAR", "VLArbitrationTableRecord"}
		return c.host == "h7" && c.asks(about...) && contains(theirs.records, ours.records)
	}},
	{"| groups by JoinState or ProxyJoin |", func(c *call, _, _ *heard) bool { return c.host == "h7" && c.asks("--join_state", "--proxy_join") }},
	{"| groups of more than a packet lifetime |", func(c *call, theirs, ours *heard) bool {
		return c.asks("MCMR") && c.asks("0x12") && len(ours.records) == 0 && len(theirs.records) > 0
	}},
	{"| P_Key asked for with the other membership |", func(c *call, _, ours *heard) bool {
		return c.asks("--pkey") && ours.failed == "" && len(ours.records) == 1
	}},
}

// asks reports whether a call has one of some arguments.
func (c *call) asks(any ...string) bool {
	return slices.ContainsFunc(c.args, func(a string) bool { return slices.Contains(any, a) })
}

// contains reports whether all of some records are among others.
func contains(all, some []string) bool {
	return !slices.ContainsFunc(some, func(r string) bool { return !slices.Contains(all, r) })
}

func saidOtherwise(c *call, theirs, ours *heard) string {
	for _, d := range said {
		if d.where(c, theirs, ours) {
			return d.told
		}
	}
	return ""
}

// hear runs saquery, and once more if it dies: libumad2sim dies when a packet arrives for the program that had its slot
// before.
func hear(t testing.TB, lab *ibsimlab.Lab, pre satest.Preload, c *call) (h heard) {
	t.Helper()
	for range 3 {
		if h = hearOnce(t, lab, pre, c); !strings.Contains(h.failed, "signal: segmentation fault") {
			break
		}
	}
	return h
}

func hearOnce(t testing.TB, lab *ibsimlab.Lab, pre satest.Preload, c *call) (h heard) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd, err := lab.Client().Command(ctx, c.host, "saquery", c.args...)
	if err != nil {
		t.Fatal(err)
	}
	pre.Apply(cmd)
	var complaint strings.Builder
	cmd.Stderr = &complaint
	out, err := cmd.Output()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatalf("%v: %v", c, err)
	}
	if err != nil || complaint.Len() > 0 {
		h.failed = fmt.Sprintf("%v: %s", err, withoutPID(complaint.String()))
	}
	h.records = recordsOf(string(out))
	return h
}

// withoutPID takes the number of the process out of complaints.
func withoutPID(s string) string {
	var b strings.Builder
	for line := range strings.Lines(s) {
		if head, rest, ok := strings.Cut(line, "] "); ok && strings.Contains(head, ": [") {
			line = rest
		}
		b.WriteString(line)
	}
	return strings.TrimSpace(b.String())
}

// recordsOf splits the output of saquery at lines that are not indented, and sorts the parts: tables have no order. It
// removes counters, and the fields that say where a switch was asked.
func recordsOf(out string) (records []string) {
	for line := range strings.Lines(out) {
		if strings.Contains(line, "ActCount") || strings.Contains(line, "act_count") || strings.Contains(line, "LocalPort:") || strings.Contains(line, "port_num....") {
			continue
		}
		if indented := strings.TrimLeft(line, " \t") != line; indented && len(records) > 0 {
			records[len(records)-1] += line
		} else {
			records = append(records, line)
		}
	}
	slices.Sort(records)
	return records
}

// disagree describes how two answers to the same query differ, or returns the empty string.
func disagree(c *call, theirs, ours *heard) string {
	if theirs.failed == ours.failed && slices.Equal(theirs.records, ours.records) {
		return ""
	}
	only := func(a, b []string) (s string) {
		n := 0
		for _, r := range a {
			if !slices.Contains(b, r) {
				if n++; n <= 2 {
					s += "\n" + r
				}
			}
		}
		return fmt.Sprintf("%d of %d records: %s", n, len(a), s)
	}
	return fmt.Sprintf("%v:\nOpenSM: %s only it has %s\nours:   %s only we have %s", c,
		theirs.failed, only(theirs.records, ours.records), ours.failed, only(ours.records, theirs.records))
}

// TestSaqueryAgrees runs saquery with each of its options under OpenSM and under us, and compares the output record by
// record. It runs as a trusted client. With the enhanced trust model off, which OpenSM does not have, it also runs as an
// untrusted one.
func TestSaqueryAgrees(t *testing.T) {
	ibsimtest.Need(t, "opensm", "saquery")
	l := small(t)
	var mu sync.Mutex
	used := map[string]int{}
	tests := []struct {
		name  string
		args  []string
		calls func(*place) []call
	}{
		{"trusted", nil, func(p *place) []call {
			return append(p.calls("sm", fmt.Sprintf("%#x", uint64(trustedKey))), p.untrustedCalls("h7")...)
		}},
		{"untrusted", []string{"--sa-enhanced-trust-model=false"}, func(p *place) []call { return p.calls("h7", "") }},
	}
	t.Run("clients", func(t *testing.T) {
		for _, tt := range tests {
			t.Run(tt.name, func(t *testing.T) {
				t.Parallel()
				s := newSite(t, ibsimtest.Start(t, text(t, l)), openPartitions)
				s.ours.Args = append(s.ours.Args, tt.args...)
				accepted := s.saquery(t, l, tt.calls)
				mu.Lock()
				defer mu.Unlock()
				for _, told := range accepted {
					used[told]++
				}
			})
		}
	})
	for _, d := range said {
		if used[d.told] == 0 {
			t.Errorf("nothing that saquery prints differs any more as docs/understand/sa.md tells: %s", d.told)
		}
	}
	t.Logf("accepted differences: %v", used)
}

// saquery queries both managers, and returns what the page says of each accepted difference.
func (s *site) saquery(t *testing.T, l *netlist.Netlist, of func(*place) []call) (accepted []string) {
	t.Helper()
	var calls []call
	var both [2][]heard
	s.both(t, func(ours bool) {
		who := 0
		if ours {
			who = 1
		} else {
			calls = of(look(t, dial(t, s.lab, "sm"), l, trusted))
			if h := hear(t, s.lab, s.preload, &call{"sm", []string{"-p"}}); len(h.records) < len(l.Nodes)*len(l.Nodes)/2 {
				t.Errorf("saquery -p prints %d paths of OpenSM's", len(h.records))
			}
		}
		for i := range calls {
			both[who] = append(both[who], hear(t, s.lab, s.preload, &calls[i]))
		}
	})
	for i := range calls {
		d := disagree(&calls[i], &both[0][i], &both[1][i])
		if d == "" {
			continue
		}
		if told := saidOtherwise(&calls[i], &both[0][i], &both[1][i]); told != "" {
			accepted = append(accepted, told)
			continue
		}
		t.Error(d)
	}
	t.Logf("%d calls", len(calls))
	return accepted
}
