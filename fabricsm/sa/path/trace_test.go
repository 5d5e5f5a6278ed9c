package path_test

import (
	"math/rand/v2"
	"testing"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sa/path"
	"portcullis/fabricsm/sa/portindex"
	"portcullis/fabricsm/topo"
)

// traced reads the records of a trace.
func traced(t *testing.T, tr *path.Trace) (all []mad.TraceRecord) {
	t.Helper()
	rec := make([]byte, tr.RecordSize())
	for {
		n, done := tr.Step(rec, 1)
		if done {
			return all
		}
		var r mad.TraceRecord
		if err := mad.Decode(rec[:n], &r); err != nil {
			t.Fatal(err)
		}
		all = append(all, r)
	}
}

// TestTrace follows a path over two switches.
func TestTrace(t *testing.T) {
	l := newLab(t)
	l.cfg.TraceKey = 77
	l.open()
	r := mad.PathRecord{SGID: l.gid(0), DGID: l.gid(2)}
	for _, c := range []struct {
		name   string
		trust  bool
		mask   mad.ComponentMask
		dst    ib.GID
		ports  [][2]ib.PortNum
		status mad.Status
	}{
		{"a path", true, byGID, l.gid(2), [][2]ib.PortNum{{0, 1}, {1, 4}, {3, 1}, {1, 0}}, mad.StatusOK},
		{"not trusted", false, byGID, l.gid(2), nil, mad.StatusDenied},
		{"an end is open", true, mad.PathComponentDGID, l.gid(2), nil, mad.StatusInsufficientComponents},
		{"no path", true, byGID, l.gid(3), nil, mad.StatusOK},
		{"nobody", true, byGID, ib.MakeGID(ib.DefaultPrefix, 0xDEAD), nil, mad.StatusOK},
		{"another subnet", true, byGID, ib.MakeGID(5, 1), nil, mad.StatusInvalidGID},
		{"a group", true, byGID, ib.GID{0xFF, 0x12}, nil, mad.StatusInvalidRequest},
		{"half a ServiceID", true, byGID | mad.PathComponentServiceID8MSB, l.gid(2), nil, mad.StatusInsufficientComponents},
		{"itself", true, byGID, l.gid(0), [][2]ib.PortNum{{0, 0}}, mad.StatusOK},
		{"with a P_Key that none has", true, byGID | mad.PathComponentPKey, l.gid(2), nil, mad.StatusOK},
	} {
		t.Run(c.name, func(t *testing.T) {
			r.DGID = c.dst
			tr, status := l.e.GetTrace(l.b, l.asker(0, c.trust), c.mask, request(&r, c.mask).SAData())
			got := traced(t, &tr)
			if status != c.status || len(got) != len(c.ports) {
				t.Fatalf("%v, %d records; want %v, %d", status, len(got), c.status, len(c.ports))
			}
			ids := make(map[uint64]bool)
			for i, p := range c.ports {
				g := got[i]
				if g.EntryPort != p[0] || g.ExitPort != p[1] || (g.EntryPortID == 0) != (p[0] == 0) || (g.ExitPortID == 0) != (p[1] == 0) || g.GIDPrefix != ib.DefaultPrefix || g.IDGeneration != got[0].IDGeneration {
					t.Errorf("record %d: %+v, want the ports %v", i, g, p)
				}
				if l.v.Fabric.NodeByGUID(ib.GUID(g.NodeID)) != topo.None || ids[g.NodeID] {
					t.Errorf("record %d: NodeID 0x%x is a GUID, or that of another node", i, g.NodeID)
				}
				ids[g.NodeID] = true
			}
		})
	}
}

// TestTraceAgainstSlowJudge compares traces on random fabrics with where packets go.
func TestTraceAgainstSlowJudge(t *testing.T) {
	long := 0
	for seed := range uint64(60) {
		rng := rand.New(rand.NewPCG(seed, 7))
		_, v := drawn(t, rng)
		e, err := path.New(path.Config{})
		if err != nil {
			t.Fatal(err)
		}
		b := portindex.New(nil, v)
		f := v.Fabric
		ends := f.EndPorts()
		for range 40 {
			x, y := b.EndPort(ends[rng.IntN(len(ends))]), b.EndPort(ends[rng.IntN(len(ends))])
			if x == nil || y == nil {
				continue
			}
			r := mad.PathRecord{SLID: x.LID, DLID: y.LID}
			m := request(&r, mad.PathComponentSLID|mad.PathComponentDLID)
			a := &portindex.Asker{Port: topo.None, Trusted: true}
			tr, status := e.GetTrace(b, a, m.ComponentMask(), m.SAData())
			got := traced(t, &tr)
			if gets, _ := e.Get(b, nil, a, m); status != mad.StatusOK || (gets == mad.StatusOK) != (len(got) > 0) {
				t.Fatalf("seed %d: %v and %d nodes, but Get says %v", seed, status, len(got), gets)
			}
			if len(got) == 0 {
				continue
			}
			long = max(long, len(got))
			at := x.Node
			for i, g := range got {
				n := f.Node(at)
				if g.NodeType != n.Type {
					t.Fatalf("seed %d: node %d is a %v, want %v", seed, i, g.NodeType, n.Type)
				}
				if i == len(got)-1 {
					break
				}
				if n.Type == ib.NodeSwitch && v.Tables.LFT(at)[y.LID] != g.ExitPort {
					t.Fatalf("seed %d: node %d is left by %v", seed, i, g.ExitPort)
				}
				peer := f.LinkUp(f.PortOf(at, g.ExitPort))
				if got[i+1].EntryPort != f.Port(peer).Num {
					t.Fatalf("seed %d: node %d is entered by %v", seed, i+1, got[i+1].EntryPort)
				}
				at = f.Port(peer).Node
			}
			if at != y.Node {
				t.Fatalf("seed %d: the trace does not end at the destination", seed)
			}
		}
	}
	if long < 5 {
		t.Errorf("the longest path has %d nodes", long)
	}
}
