package main

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/sim"
	"portcullis/fabricsm/sim/netlist"
	"portcullis/fabricsm/sim/simtest"
	"portcullis/fabricsm/transport/ibsim/ibsimlab"
	"portcullis/fabricsm/transport/ibsim/ibsimtest"
)

// electionKey is the SM_Key of these tests.
const electionKey = "0x5ec4e7ed5ec4e7ed"

// stage is a fabric on which subnet managers compete.
type stage struct {
	t      *testing.T
	list   *netlist.Netlist
	client ibsimlab.Client
	lab    *ibsimlab.Lab     // nil: our simulator
	ports  func() []seenPort // as the simulator itself has them
	dir    string
}

// seenPort is a port with a cable, or port 0 of a switch.
type seenPort struct {
	node, num, state string
	lid, smLID       string // of an end port
}

// newStage starts ibsim.
func newStage(t *testing.T) *stage {
	t.Helper()
	ibsimtest.Need(t, "opensm", "sminfo")
	s := &stage{t: t, list: stageFabric(t), dir: t.TempDir()}
	var text strings.Builder
	if _, err := s.list.WriteTo(&text); err != nil {
		t.Fatal(err)
	}
	lab := ibsimtest.Start(t, []byte(text.String()))
	s.lab, s.client = lab, lab.Client()
	s.ports = func() []seenPort { return dumped(ibsimtest.Console(t, lab, "dump")) }
	return s
}

// newOwnStage starts our simulator in place of ibsim, which drops every TrapRepress. An OpenSM that asks a master to hand
// over sends a trap, waits for it to be repressed, and never does anything else.
func newOwnStage(t *testing.T) *stage {
	t.Helper()
	ibsimtest.Need(t, "opensm", "sminfo")
	s := &stage{t: t, list: stageFabric(t), dir: t.TempDir()}
	f := sim.New(s.list)
	s.client = simtest.Serve(t, f)
	s.ports = func() (all []seenPort) {
		for i := range s.list.Nodes {
			n := &s.list.Nodes[i]
			for num := range n.Ports {
				sw := n.Type == ib.NodeSwitch
				if num == 0 && !sw || num > 0 && n.Ports[num].Peer == "" {
					continue
				}
				pi := f.PortInfo(n.Name, ib.PortNum(num))
				p := seenPort{node: n.Name, num: fmt.Sprint(num), state: pi.PortState.String()}
				if (num == 0) == sw {
					p.lid, p.smLID = pi.LID.String(), pi.MasterSMLID.String()
				}
				all = append(all, p)
			}
		}
		return all
	}
	return s
}

func stageFabric(t *testing.T) *netlist.Netlist {
	t.Helper()
	l, err := netlist.FatTree2(netlist.Shape{Hosts: 4, Radix: 4})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func (s *stage) guid(node string) ib.GUID { return s.list.Find(node).PortGUID(1) }

// politely is how long OpenSM may take to end on SIGTERM.
const politely = 5 * time.Second

var smInfoLine = regexp.MustCompile(`sm guid (0x[0-9a-f]+), .* priority (\d+) .* (SMINFO_\w+)`)

// master asks, with sminfo at several nodes, which SM is master there.
func (s *stage) master() string {
	var found []string
	for _, node := range []string{"sm", "h1", "h3"} {
		out, err := s.client.Diag(s.t.Context(), node, "sminfo")
		m := smInfoLine.FindStringSubmatch(string(out))
		switch {
		case err != nil || m == nil:
			found = append(found, "none")
		default:
			found = append(found, m[1]+" "+m[3])
		}
	}
	found = slices.Compact(found)
	return strings.Join(found, ", ")
}

// moment waits until it is time to look again. To ask with sminfo meanwhile takes more of the machine than all that is measured.
func moment(t *testing.T) {
	t.Helper()
	select {
	case <-time.After(20 * time.Millisecond):
	case <-t.Context().Done():
	}
}

// ruled waits until every participant reports that the SM at a node is master, all ports are Active, and everything has a
// LID and knows the master's.
func (s *stage) ruled(c *contender, within time.Duration) map[string]string {
	s.t.Helper()
	lids, hung := s.ruledOrHung(c, within)
	if hung != "" {
		s.t.Fatal(hung)
	}
	return lids
}

// ruledOrHung does as ruled, but returns the evidence when the SM is an OpenSM that provably hangs.
func (s *stage) ruledOrHung(c *contender, within time.Duration) (lids map[string]string, hung string) {
	s.t.Helper()
	want := fmt.Sprintf("0x%x SMINFO_MASTER", uint64(s.guid(c.node)))
	deadline := time.Now().Add(within)
	for {
		lids, wrong := s.look(c.node)
		if len(wrong) == 0 && s.master() == want {
			return lids, ""
		}
		if hung := c.wire.hung(); hung != "" {
			return nil, hung
		}
		if time.Now().After(deadline) {
			s.t.Fatalf("master is %s, want %s (%s); wrong on the fabric: %q", s.master(), want, c.node, wrong)
		}
		moment(s.t)
	}
}

var (
	dumpNode = regexp.MustCompile(`^(?:Switch|Ca) \d+ "([^"]+)"`)
	dumpPort = regexp.MustCompile(`^[0-9a-f]+\t\[(\d+)\]\t"[^"]+"\[\d+\]\t(?: lid (\d+) lmc \d+ smlid (\d+))? .* (\w+)/(\w+)$`)
)

// dumped reads what ibsim's console says to "dump".
func dumped(out string) (all []seenPort) {
	node := ""
	for line := range strings.Lines(out) {
		line = strings.TrimRight(line, "\n")
		if m := dumpNode.FindStringSubmatch(line); m != nil {
			node = m[1]
		}
		if m := dumpPort.FindStringSubmatch(line); m != nil && m[5] == "LinkUp" {
			all = append(all, seenPort{node: node, num: m[1], lid: m[2], smLID: m[3], state: m[4]})
		}
	}
	return all
}

// look returns the LID of each node, and each difference from a fabric that the SM at a node rules.
func (s *stage) look(master string) (lids map[string]string, wrong []string) {
	lids = make(map[string]string)
	smLIDs := make(map[string]string)
	owner := make(map[string]string)
	for _, p := range s.ports() {
		if p.state != "Active" {
			wrong = append(wrong, fmt.Sprintf("%s[%s] is %s", p.node, p.num, p.state))
		}
		if p.lid == "" {
			continue
		}
		lids[p.node], smLIDs[p.node] = p.lid, p.smLID
		if owner[p.lid] != "" || p.lid == "0" {
			wrong = append(wrong, fmt.Sprintf("%s has LID %s of %q", p.node, p.lid, owner[p.lid]))
		}
		owner[p.lid] = p.node
	}
	for n, l := range smLIDs {
		if l != lids[master] {
			wrong = append(wrong, fmt.Sprintf("%s has the SM LID %s", n, l))
		}
	}
	if len(lids) != len(s.list.Nodes) {
		wrong = append(wrong, fmt.Sprintf("%d nodes are shown", len(lids)))
	}
	return lids, wrong
}

var dumpTable = regexp.MustCompile(`(?m)^#\s+Forwarding table (.*)$`)

// routes returns the forwarding tables as ibsim has them, by their order; none of our simulator.
func (s *stage) routes() map[string]string {
	all := make(map[string]string)
	if s.lab != nil {
		for i, m := range dumpTable.FindAllStringSubmatch(ibsimtest.Console(s.t, s.lab, "dump"), -1) {
			all[fmt.Sprint(i)] = m[1]
		}
	}
	return all
}

// beside runs cases at a time: they wait more than they work.
func beside(t *testing.T, atOnce int, names []string, run func(*testing.T, int)) {
	t.Helper()
	slots := make(chan struct{}, atOnce)
	var all sync.WaitGroup
	for i, name := range names {
		all.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			t.Run(name, func(t *testing.T) { run(t, i) })
		})
	}
	all.Wait()
}

// electionTime bounds each change of master. OpenSM looks every second here,
// and so many things run at once that each of them may have to wait.
const electionTime = 60 * time.Second

func (s *stage) same(when string, before, now map[string]string) {
	s.t.Helper()
	if d := cmp.Diff(before, now); d != "" {
		s.t.Errorf("change %s (-before +now):\n%s", when, d)
	}
}

// atMost holds that something takes no longer than it may. A machine with much
// else to do makes it slower, never faster: of several times the quickest counts.
func atMost(t *testing.T, limit time.Duration, do func() time.Duration) {
	t.Helper()
	var all []time.Duration
	for range tries {
		took := do()
		if t.Failed() || took <= limit {
			return
		}
		all = append(all, took)
		t.Logf("anew on a fresh fabric: it took %v, more than %v", took, limit)
	}
	t.Errorf("it took %v, want %v at most", all, limit)
}

// takeOver has two of ours compete on a fresh fabric and kills the winner. It returns how long the fabric had no master.
func takeOver(t *testing.T, first, second string, p1, p2 int, wins string) time.Duration {
	s := newStage(t)
	a := s.ours(first, p1, second)
	before := s.ruled(a, electionTime)
	b := s.ours(second, p2, first)
	winner, loser := a, b
	if wins == second {
		winner, loser = b, a
	}
	loser.awaitState("standby", electionTime)
	s.same("when both were there", before, s.ruled(winner, electionTime))
	masters := loser.count("master")
	killed := time.Now()
	winner.end(syscall.SIGKILL)
	s.same("after the takeover", before, s.ruled(loser, electionTime))
	took := loser.last("master").Sub(killed)
	t.Logf("%s was master %v after the kill", loser.node, took.Round(time.Millisecond))
	if n := loser.count("master"); n != masters+1 || winner.count("master") != 1 {
		t.Errorf("mastership went to and fro: %q and %q", winner.history(), loser.history())
	}
	return took
}

// handOver stops a master that has a standby, on a fresh fabric, and returns how long the fabric had none.
func handOver(t *testing.T) time.Duration {
	s := newStage(t)
	a := s.ours("sm", 9, "h2")
	before := s.ruled(a, electionTime)
	b := s.ours("h2", 5, "sm")
	b.awaitState("standby", electionTime)
	told := func() bool {
		a.mu.Lock()
		defer a.mu.Unlock()
		return strings.Contains(a.said.String(), "is Standby with priority 5; trusted")
	}
	for deadline := time.Now().Add(electionTime); !told(); {
		if time.Now().After(deadline) {
			t.Fatal("the master does not see its standby")
		}
		moment(t)
	}
	asked := time.Now()
	a.end(syscall.SIGTERM)
	s.same("after the handover", before, s.ruled(b, electionTime))
	took := b.last("master").Sub(asked)
	t.Logf("master %v after SIGTERM; %q, %q", took.Round(time.Millisecond), a.history(), b.history())
	if h := a.history(); h[len(h)-1] != "standby" {
		t.Errorf("the master ended as %q", h)
	}
	return took
}

// takeOverTime is the time that the machine of the test may need to discover again, and to report it.
const takeOverTime = time.Second
