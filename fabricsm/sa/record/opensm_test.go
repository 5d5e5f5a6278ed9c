package record_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"portcullis/fabricsm/driver"
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sa/portindex"
	"portcullis/fabricsm/sa/record"
	"portcullis/fabricsm/sa/satest"
	"portcullis/fabricsm/sim/netlist"
	"portcullis/fabricsm/sm"
	"portcullis/fabricsm/sm/multicast"
	"portcullis/fabricsm/topo"
	"portcullis/fabricsm/transport/ibsim"
	"portcullis/fabricsm/transport/ibsim/ibsimlab"
	"portcullis/fabricsm/transport/ibsim/ibsimtest"
	"portcullis/packaging/testenv"
)

// rids are the lengths of the identifying parts of records.
var rids = map[mad.AttrID]int{
	mad.AttrNodeRecord: 2, mad.AttrSwitchInfoRecord: 2, mad.AttrSMInfoRecord: 2, mad.AttrPortInfoRecord: 3, mad.AttrLinkRecord: 3,
	mad.AttrGUIDInfoRecord: 3, mad.AttrSLtoVLRecord: 4, mad.AttrLinearForwardingRecord: 4, mad.AttrMulticastForwardingRecord: 4,
	mad.AttrVLArbitrationRecord: 4, mad.AttrPKeyTableRecord: 5,
}

// difference is a record on which OpenSM and we do not agree. nil: there is none.
type difference struct {
	theirs, ours []byte
	down         bool // the port is Down
}

// accepted has the reasons why records may differ, by attribute; docs/understand/sa.md has the same table.
var accepted = map[mad.AttrID][]struct {
	why      string
	may      func(d *difference) bool
	byChance bool // there need be none
}{
	mad.AttrPortInfoRecord: {{
		"of a port that is Down OpenSM keeps the states alone, we what it showed",
		func(d *difference) bool {
			return d.down && d.ours != nil && d.theirs != nil && d.ours[36]&0x0F == d.theirs[36] && d.ours[37]&0xF0 == d.theirs[37]
		}, false,
	}, {
		"LocalPortNum of a switch is where the question came in, and each asks on its own way",
		func(d *difference) bool {
			return d.ours != nil && d.theirs != nil && bytes.Equal(d.ours[:32], d.theirs[:32]) && bytes.Equal(d.ours[33:], d.theirs[33:])
		}, true,
	}},
	mad.AttrLinearForwardingRecord: {{
		"among ways of the same length each chooses for itself",
		func(d *difference) bool { return d.ours != nil && d.theirs != nil }, true,
	}},
	mad.AttrMulticastForwardingRecord: {{
		"each has its own way of making trees, and OpenSM has no records of switches that are in none",
		func(d *difference) bool { return d.ours != nil }, true,
	}},
	mad.AttrSMInfoRecord: {{
		"ActCount counts what each of them did",
		func(d *difference) bool {
			return d.ours != nil && d.theirs != nil && slices.Equal(slices.Delete(slices.Clone(d.ours), 20, 24), slices.Delete(slices.Clone(d.theirs), 20, 24))
		}, true,
	}},
	mad.AttrPKeyTableRecord: {{
		"by default OpenSM makes all ports full members of the default partition, we hosts and switches limited ones",
		func(d *difference) bool {
			return d.ours != nil && d.theirs != nil && binary.BigEndian.Uint16(d.ours[8:]) == 0x7fff &&
				binary.BigEndian.Uint16(d.theirs[8:]) == 0xffff && bytes.Equal(d.ours[10:], d.theirs[10:])
		}, false,
	}, {
		"we look after the tables of switch ports with a host, OpenSM after those of all",
		func(d *difference) bool { return d.ours == nil && d.theirs[4] != 0 }, false,
	}},
}

func isZero(p []byte) bool { return !slices.ContainsFunc(p, func(b byte) bool { return b != 0 }) }

// TestAsOpenSM has OpenSM and then ours bring up the same fabric, and compares all
// records. Ours takes over the LIDs that it finds.
func TestAsOpenSM(t *testing.T) {
	ibsimtest.Need(t, "opensm")
	testenv.Program(t, "gcc")
	preload, err := satest.BuildPreload(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	l, err := netlist.FatTree2(netlist.Shape{Hosts: 80, Radix: 36})
	if err != nil {
		t.Fatal(err)
	}
	var text bytes.Buffer
	if _, err := l.WriteTo(&text); err != nil {
		t.Fatal(err)
	}
	used := make(map[string]int)
	for name, tt := range map[string]struct {
		options string
		config  sm.Config
	}{
		"plain":                   {"", sm.Config{}},
		"with quality of service": {strings.Join(oddQoS, "\n"), sm.Config{QoS: odd(t)}},
		"with LMC 1":              {"lmc 1", sm.Config{LMC: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			lab := ibsimtest.Start(t, text.Bytes())
			m, err := (&satest.OpenSM{Preload: preload, Options: tt.options}).Start(t.Context(), lab)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = m.Stop() }) // if it could not be asked
			theirs := askOpenSM(t, lab, l)
			if err := m.Stop(); err != nil {
				t.Fatal(err)
			}
			tt.config.Enforcement = sm.Accepted
			b := portindex.New(nil, runOurs(t, lab, tt.config, &theirs.joins))
			for _, attr := range attrs {
				compareOpenSM(t, b, attr, theirs.all[attr], used)
			}
			for _, p := range theirs.probes {
				compareMatches(t, b, &p)
			}
		})
	}
	for attr, list := range accepted {
		for _, a := range list {
			if used[a.why] == 0 && !a.byChance {
				t.Errorf("%#x: no difference because %s", uint16(attr), a.why)
			}
		}
	}
	t.Logf("accepted differences: %v", used)
}

// said is an answer of OpenSM.
type said struct {
	all    map[mad.AttrID][][]byte
	probes []probe
	joins  sm.GroupsSet // of the groups that it was asked for
}

// probe is a question for records with one component of a record that there is.
type probe struct {
	question satest.Question
	records  [][]byte
}

// askOpenSM creates some groups and returns all records.
func askOpenSM(t *testing.T, lab *ibsimlab.Lab, l *netlist.Netlist) (s said) {
	t.Helper()
	c, err := satest.Dial(t.Context(), lab.Socket(), "h7")
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}()
	ask := func(q satest.Question) *satest.Answer {
		t.Helper()
		a, err := c.Ask(q)
		for until := time.Now().Add(time.Minute); err == nil && a.Silent() && time.Now().Before(until); {
			a, err = c.Ask(q) // it drops requests under load
		}
		if err != nil || a.Silent() || a.Status != mad.StatusOK {
			t.Fatalf("%v of %v: %v, %v", q.Method, q.Attr, a.Status, err)
		}
		return &a
	}
	for i := range byte(40) {
		for _, host := range []string{"h7", "h30"} {
			g := mad.MCMemberRecord{
				MGID: ib.GID{0xFF, 0x12, 0xA0, 0x1C, 15: i}, PortGID: ib.MakeGID(ib.DefaultPrefix, l.Find(host).PortGUID(1)),
				QKey: 5, PKey: 0xffff, JoinState: ib.FullMember,
			}
			a := ask(satest.Question{Method: mad.MethodSet, Attr: mad.AttrMCMemberRecord, Mask: mad.MCMemberCreate, Record: encode(t, g)})
			if err := mad.Decode(a.Data, &g); err != nil {
				t.Fatal(err)
			}
			s.joins.Joins = append(s.joins.Joins, multicast.Join{MLID: g.MLID, GUID: g.PortGID.GUID(), State: ib.FullMember})
			if host == "h7" {
				s.joins.MLIDs = append(s.joins.MLIDs, g.MLID)
			}
		}
	}
	// Tables follow the joins a little later.
	for until := time.Now().Add(time.Minute); time.Now().Before(until); {
		mft := ask(satest.Question{Method: mad.MethodGetTable, Attr: mad.AttrMulticastForwardingRecord})
		if slices.ContainsFunc(mft.Records(), func(r []byte) bool { return r[3] == 1 && !isZero(r[8:]) }) {
			break
		}
	}
	s.all = make(map[mad.AttrID][][]byte)
	for _, attr := range attrs {
		all := ask(satest.Question{Method: mad.MethodGetTable, Attr: attr, Key: ib.NewSAKey(1)}).Records()
		if s.all[attr] = all; len(all) == 0 {
			t.Fatalf("%v: OpenSM has none", attr)
		}
		for _, at := range []int{0, len(all) / 3, len(all) - 1} {
			for bit := range mad.Components(attr) {
				if compared(attr).Has(1 << bit) {
					q := satest.Question{Method: mad.MethodGetTable, Attr: attr, Key: ib.NewSAKey(1), Mask: 1 << bit, Record: all[at]}
					s.probes = append(s.probes, probe{q, ask(q).Records()})
				}
			}
		}
	}
	isSM := mad.PortInfoRecord{PortInfo: mad.PortInfo{CapabilityMask: mad.IsSM}}
	q := satest.Question{
		Method: mad.MethodGetTable, Attr: mad.AttrPortInfoRecord, Mod: mad.PortInfoMatchBits,
		Mask: mad.PortInfoComponentCapabilityMask, Record: encode(t, isSM),
	}
	s.probes = append(s.probes, probe{q, ask(q).Records()})
	return s
}

// compared are the components by which OpenSM looks for records as we do. It does not
// look at the content of tables, or at GUIDs; it takes the LID in PortInfo for another
// field, and ActCount is its own affair.
func compared(attr mad.AttrID) mad.ComponentMask {
	switch attr {
	case mad.AttrPortInfoRecord:
		const localPortNum = 1 << 10
		return ^(mad.PortInfoComponentLID | localPortNum)
	case mad.AttrSMInfoRecord:
		return ^mad.SMInfoComponentActCount
	case mad.AttrLinearForwardingRecord:
		return mad.ForwardingComponentLID | mad.ForwardingComponentBlockNum
	case mad.AttrGUIDInfoRecord:
		return mad.GUIDInfoComponentLID | mad.GUIDInfoComponentBlockNum
	case mad.AttrNodeRecord, mad.AttrSwitchInfoRecord, mad.AttrLinkRecord:
		return ^mad.ComponentMask(0)
	default:
		return 0 // records that not both have
	}
}

// compareMatches compares which records match a question, but for those of ports that
// are Down.
func compareMatches(t *testing.T, b *portindex.Book, p *probe) {
	t.Helper()
	attr := p.question.Attr
	q := record.Query{Attr: attr, Method: mad.MethodGetTable, Mod: p.question.Mod, Mask: p.question.Mask}
	copy(q.Data[:], p.question.Record)
	which := func(records [][]byte) (list []string) {
		for _, r := range records {
			if attr != mad.AttrPortInfoRecord || !isDown(b, ib.LID(binary.BigEndian.Uint16(r)), ib.PortNum(r[2])) {
				list = append(list, fmt.Sprintf("%x", r[:rids[attr]]))
			}
		}
		slices.Sort(list)
		return list
	}
	theirs, ours := which(p.records), which(tableOf(b, q))
	if len(theirs) == 0 && attr == mad.AttrLinkRecord && slices.ContainsFunc(b.EndPorts(), func(e *portindex.EndPort) bool { return e.LMC > 0 }) {
		return // OpenSM clears the bits of the LMC in the LIDs of a query, and finds no switch with an odd LID
	}
	if !slices.Equal(theirs, ours) {
		t.Errorf("%v by %v of %x: OpenSM gives %d\n%v\nwe %d\n%v", attr, q.Mask.Names(attr), p.question.Record, len(theirs), theirs, len(ours), ours)
	}
}

// tableOf returns all matching records, for a trusted requester.
func tableOf(b *portindex.Book, q record.Query) [][]byte {
	all, _ := (&bed{book: b}).ask(&portindex.Asker{Port: topo.None, Trusted: true}, q)
	return all
}

// runOurs returns a view of the fabric under our Subnet Manager.
func runOurs(t *testing.T, lab *ibsimlab.Lab, cfg sm.Config, joins *sm.GroupsSet) (v *sm.View) {
	t.Helper()
	port, err := ibsim.Dial(t.Context(), ibsim.Options{Socket: lab.Socket(), Node: "sm", AsSM: true})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	inputs := make(chan sm.Input, 1)
	inputs <- joins
	done := false
	err = driver.Run(ctx, driver.Options{Port: port, Core: cfg, Inputs: inputs, Until: func(w *sm.View) bool {
		v, done = w, w.Settled && w.Multicast != nil && len(w.Multicast.Trees) >= len(joins.MLIDs)
		for _, n := range w.Fabric.Nodes() {
			done = done && n.Description != "" // names come last
		}
		return done
	}}, nil)
	if err != nil || !done {
		t.Fatalf("ours did not bring the fabric up: %v", err)
	}
	return v
}

// compareOpenSM reports differences that are not accepted.
func compareOpenSM(t *testing.T, b *portindex.Book, attr mad.AttrID, theirs [][]byte, used map[string]int) {
	t.Helper()
	ours := make(map[string][]byte)
	for _, r := range tableOf(b, record.Query{Attr: attr}) {
		ours[string(r[:rids[attr]])] = r
	}
	judge := func(theirs, ours []byte) {
		r := theirs
		if r == nil {
			r = ours
		}
		d := difference{theirs: theirs, ours: ours, down: isDown(b, ib.LID(binary.BigEndian.Uint16(r)), ib.PortNum(r[2]))}
		for _, a := range accepted[attr] {
			if a.may(&d) {
				used[a.why]++
				return
			}
		}
		t.Errorf("%v:\ntheirs %x\n  ours %x", attr, theirs, ours)
	}
	for _, r := range theirs {
		id := string(r[:rids[attr]])
		if o := ours[id]; !bytes.Equal(o, r) {
			judge(r, o)
		}
		delete(ours, id)
	}
	for _, o := range ours {
		judge(nil, o)
	}
}

// isDown reports whether a port is Down, by the LID of its switch or its own.
func isDown(b *portindex.Book, lid ib.LID, num ib.PortNum) bool {
	e := b.ByLID(lid)
	if e == nil {
		return false
	}
	p := b.View.Fabric.PortOf(e.Node, num)
	return p != topo.None && b.View.Fabric.Port(p).State == ib.PortDown
}
