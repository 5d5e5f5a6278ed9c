package sm_test

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sim"
	"portcullis/fabricsm/sim/netlist"
	"portcullis/fabricsm/sm"
)

// TestTranscripts plays the scenarios in testdata: each command is followed by its output. Write them again with -rewrite.
// Commands:
//
//	fabric KIND [hosts=N] [radix=N] [switches=N] [intent-wait] [key=SM_KEY]
//	       KIND: single, tree, chain, islands, dual. Begins a new fabric.
//	start                start the subnet manager, or crash and start it again
//	intent REV [HOST=PKEY[@HOST]]...   grant; @HOST: at the place of that host
//	settle [verbose]     run until settled; verbose shows events about ports
//	run DURATION         let time pass
//	unlink|relink HOST   pull the cable of a host's port 1, and put it back
//	reboot NODE          power-cycle a node
//	rogue HOST PRIORITY [key=SM_KEY]   a program there says it is the master SM;
//	       again: it says something new when it is asked next
//	silent|speaks NODE   its agent stops or begins to answer
//	pkeys HOST           the P_Key tables of HCA and switch port
func TestTranscripts(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		if strings.Contains(path, "fuzz") {
			return
		}
		s := &script{t: t}
		datadriven.RunTest(t, path, s.play)
	})
}

type script struct {
	t      *testing.T
	e      *env
	l      *netlist.Netlist
	before map[string]int
	writes []string // Sets of P_Key tables, in order
}

func (s *script) play(t *testing.T, d *datadriven.TestData) string {
	arg := func(i int) string { return d.CmdArgs[i].Key }
	switch d.Cmd {
	case "fabric":
		s.fabric(d)
	case "start":
		s.e.start()
	case "intent":
		s.e.want(s.intent(d))
	case "settle":
		s.e.run(50 * time.Millisecond) // traps are verified with a pause
		if !s.e.settle(2 * time.Minute) {
			return "NOT SETTLED\n" + s.report(true)
		}
		return s.report(d.HasArg("verbose"))
	case "run":
		dur, err := time.ParseDuration(arg(0))
		s.must(err)
		s.e.run(dur)
		return s.report(d.HasArg("verbose"))
	case "unlink":
		s.must(s.e.fab.Unlink(arg(0), 1))
	case "relink":
		p := s.l.Find(arg(0)).Ports[1]
		s.must(s.e.fab.Relink(arg(0), 1, p.Peer, p.PeerPort))
	case "reboot":
		s.must(s.e.fab.Reboot(arg(0)))
	case "rogue":
		s.rogue(d)
	case "silent", "speaks":
		s.must(s.e.fab.SetFault(arg(0), sim.Fault{Silent: d.Cmd == "silent"}))
	case "pkeys":
		p := s.l.Find(arg(0)).Ports[1]
		return fmt.Sprintf("HCA %v, switch port %v\n", s.e.fab.PKeys(arg(0), 1), s.e.fab.PKeys(p.Peer, p.PeerPort))
	default:
		d.Fatalf(t, "unknown command %s", d.Cmd)
	}
	return ""
}

func (s *script) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
	if s.e != nil {
		s.e.arrive(s.e.st.Take(nil))
	}
}

func (s *script) fabric(d *datadriven.TestData) {
	var sh netlist.Shape
	d.MaybeScanArgs(s.t, "hosts", &sh.Hosts)
	d.MaybeScanArgs(s.t, "radix", &sh.Radix)
	d.MaybeScanArgs(s.t, "switches", &sh.Switches)
	make := map[string]func(netlist.Shape) (*netlist.Netlist, error){
		"single": netlist.Single, "tree": netlist.FatTree2,
		"chain": netlist.Chain, "islands": netlist.Islands, "dual": netlist.DualPort,
	}[d.CmdArgs[0].Key]
	l, err := make(sh)
	s.l = list(s.t, l, err)
	cfg := sm.Config{AuditPeriod: -1}
	if d.HasArg("intent-wait") {
		cfg.IntentWait = 30 * time.Second
	}
	cfg.SMKey = s.key(d)
	s.e = newEnv(s.t, s.l, sim.Options{LoseSilently: true}, cfg, 1)
	s.e.logSend = s.note
	s.before = nil
}

func (s *script) key(d *datadriven.TestData) ib.SMKey {
	var text string
	if d.MaybeScanArgs(s.t, "key", &text); text == "" {
		return ib.SMKey{}
	}
	k, err := strconv.ParseUint(text, 0, 64)
	s.must(err)
	return ib.NewSMKey(k)
}

func (s *script) rogue(d *datadriven.TestData) {
	priority, err := strconv.ParseUint(d.CmdArgs[1].Key, 10, 4)
	s.must(err)
	says := mad.SMInfo{SMKey: s.key(d), Priority: uint8(priority), SMState: ib.SMMaster}
	for _, r := range s.e.rogues {
		if r.st.Node() == d.CmdArgs[0].Key {
			says.GUID = r.says.GUID
			r.says = says
			return
		}
	}
	s.e.addRogue(d.CmdArgs[0].Key, says)
}

// note remembers writes of P_Key tables: their order is what access control
// rests on.
func (s *script) note(r *sm.Request) {
	var table mad.PKeyTable
	if r.MAD.Method() != mad.MethodSet || r.MAD.Attr() != mad.AttrPKeyTable || mad.Decode(r.MAD.Data(), &table) != nil {
		return
	}
	var keys []string
	for _, k := range table.PKey {
		if k != 0 {
			keys = append(keys, k.String())
		}
	}
	where := fmt.Sprintf("end port at route %v", r.MAD.Route())
	if port := r.MAD.Mod() >> 16; port != 0 {
		where = fmt.Sprintf("switch port %d at route %v", port, r.MAD.Route())
	}
	s.writes = append(s.writes, fmt.Sprintf("Set P_KeyTable block %d of %s: %s", r.MAD.Mod()&0xFFFF, where, strings.Join(keys, " ")))
}

func (s *script) intent(d *datadriven.TestData) (in sm.Intent) {
	rev, err := strconv.ParseInt(d.CmdArgs[0].Key, 10, 64)
	s.must(err)
	in.Revision = rev
	for _, a := range d.CmdArgs[1:] {
		key, at, elsewhere := strings.Cut(a.Vals[0], "@")
		k, err := ib.ParsePKey(key)
		s.must(err)
		h := s.host(a.Key)
		g := h.grant(k)
		if elsewhere {
			g.Place = s.host(at).place
		}
		in.Grants = append(in.Grants, g)
	}
	return in
}

func (s *script) host(name string) *endPort {
	for _, h := range hosts(s.l) {
		if h.node.Name == name && h.num == 1 {
			return &h
		}
	}
	s.t.Fatalf("no host %s", name)
	return nil
}

// report returns the events, the writes of P_Key tables and the requests since the last report.
func (s *script) report(verbose bool) string {
	var b strings.Builder
	for _, ev := range s.e.takeEvents() {
		if _, ok := ev.(*sm.PortPlaced); ok && !verbose {
			continue
		}
		fmt.Fprintln(&b, ev)
	}
	if verbose {
		for _, w := range s.writes {
			fmt.Fprintln(&b, w)
		}
	}
	s.writes = nil
	for _, k := range slices.Sorted(maps.Keys(s.e.smps)) {
		if n := s.e.smps[k] - s.before[k]; n > 0 {
			fmt.Fprintf(&b, "  %4d %s\n", n, k)
		}
	}
	s.before = maps.Clone(s.e.smps)
	return b.String()
}
