package sim_test

import (
	"testing"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sim"
)

func TestDirectedRoutes(t *testing.T) {
	f := tree(t, sim.Options{})
	s := station(t, f, "sm", false)
	for _, tt := range []struct {
		name  string
		route []ib.PortNum
		want  ib.GUID
		port  ib.PortNum
		back  string
	}{
		{"ourselves", nil, 0x0020000000000000, 1, "0"},
		{"the leaf", []ib.PortNum{1}, 0x0010000100000001, 1, "0,1"},
		{"the neighbour", []ib.PortNum{1, 2}, 0x0020000000000100, 1, "0,1,1"},
		{"the spine", []ib.PortNum{1, 4}, 0x0010000200000001, 2, "0,1,2"},
		{"a far host", []ib.PortNum{1, 3, 3, 2}, 0x0020000000000300, 1, "0,1,1,3,1"},
		{"there and back", []ib.PortNum{1, 3, 1, 1}, 0x0020000000000000, 1, "0,1,1,3,1"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			in := only(t, s, directed(mad.Header{Method: mad.MethodGet, Attr: mad.AttrNodeInfo, TID: 5}, tt.route...))
			var ni mad.NodeInfo
			if err := mad.Decode(in.MAD.Data(), &ni); err != nil {
				t.Fatal(err)
			}
			if ni.NodeGUID != tt.want || ni.LocalPortNum != tt.port {
				t.Errorf("reached %v by port %d, want %v by %d", ni.NodeGUID, ni.LocalPortNum, tt.want, tt.port)
			}
			m := &in.MAD
			if got := m.ReturnRoute().String(); got != tt.back || m.HopPointer() != 0 || !m.Returning() || uint32(m.TID()) != 5 {
				t.Errorf("answer: return path %s, want %s; hop pointer %d, returning %v, TID %v", got, tt.back, m.HopPointer(), m.Returning(), m.TID())
			}
		})
	}
}

// Routes that begin or end by LID, as "smpquery --combined" has them. In tree, LIDs 1
// to 3 are of sm, h1 and leaf1; here 5 is of spine1, too, beyond leaf1's port 4.
func TestRoutesPartlyByLID(t *testing.T) {
	const own = 1
	for _, tt := range []struct {
		name           string
		from           string
		to             ib.LID // of the packet itself
		drSLID, drDLID ib.LID
		route          []ib.PortNum
		want           ib.GUID // 0: it comes back undelivered
	}{
		{"by LID to a switch, then by path", "sm", 3, own, ib.PermissiveLID, []ib.PortNum{2}, 0x0020000000000100},
		{"two links of path", "sm", 3, own, ib.PermissiveLID, []ib.PortNum{4, 2}, 0x0010000100000001},
		{"by path to a switch, then by LID", "sm", ib.PermissiveLID, ib.PermissiveLID, 2, []ib.PortNum{1}, 0x0020000000000100},
		{"by LID, path and LID", "sm", 3, own, 3, []ib.PortNum{4}, 0x0010000100000001},
		{"path of no links", "sm", 3, own, ib.PermissiveLID, nil, 0x0010000100000001},
		{"path of no links behind a switch", "sm", 3, own, 2, nil, 0x0020000000000100},
		{"from another host", "h1", 3, 2, ib.PermissiveLID, []ib.PortNum{1}, 0x0020000000000000},
		{"path that begins at an HCA", "sm", 2, own, ib.PermissiveLID, []ib.PortNum{1}, 0},
		{"path that ends at an HCA", "sm", ib.PermissiveLID, ib.PermissiveLID, 3, []ib.PortNum{1, 2}, 0},
		{"to a switch that is not there", "sm", 17, own, ib.PermissiveLID, []ib.PortNum{2}, 0},
		{"on to a LID that nobody has", "sm", ib.PermissiveLID, ib.PermissiveLID, 17, []ib.PortNum{1}, 0},
		{"without a switch to begin at", "sm", ib.PermissiveLID, own, ib.PermissiveLID, []ib.PortNum{2}, 0},
		{"back to somebody else", "sm", 3, 17, ib.PermissiveLID, []ib.PortNum{2}, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := tree(t, sim.Options{})
			sm := station(t, f, "sm", false)
			forward(t, sm)
			// The spine knows the way to the leaf, and the leaf that to the spine.
			lft(t, sm, 3, 2, 1, 4)
			lft(t, sm, 5, 4, 1)
			if status := portSet(t, sm, 0, func(pi *mad.PortInfo) { pi.LID = 5 }, 1, 4); status != mad.StatusOK {
				t.Fatalf("LID of the spine: %v", status)
			}
			p := directed(mad.Header{Method: mad.MethodGet, Attr: mad.AttrNodeInfo, TID: 9}, tt.route...)
			p.LID = tt.to
			p.MAD.SetDrSLID(tt.drSLID)
			p.MAD.SetDrDLID(tt.drDLID)
			in := only(t, station(t, f, tt.from, false), p)
			if tt.want == 0 {
				if !in.Undelivered {
					t.Errorf("answered by LID %v", in.LID)
				}
				return
			}
			var ni mad.NodeInfo
			if err := mad.Decode(in.MAD.Data(), &ni); err != nil {
				t.Fatal(err)
			}
			if in.Undelivered || in.MAD.Method() != mad.MethodGetResp || ni.NodeGUID != tt.want {
				t.Errorf("undelivered %v, %v by %v, want %v", in.Undelivered, in.MAD.Method(), ni.NodeGUID, tt.want)
			}
		})
	}
}

// A host cannot pass for local by a route whose directed part has no links.
func TestRoutesByLIDAreNotLocal(t *testing.T) {
	f := tree(t, sim.Options{LoseSilently: true})
	sm, host := station(t, f, "sm", false), station(t, f, "h1", false)
	forward(t, sm)
	activate(t, sm)
	protect(t, sm, 2, 0, 1)
	p := directed(mad.Header{Method: mad.MethodGet, Attr: mad.AttrNodeInfo})
	p.LID = 3
	p.MAD.SetDrSLID(2)
	if ask(t, host, p) != nil {
		t.Error("a host reads a protected switch without the key")
	}
	if ask(t, host, keyed(p, rightKey)) == nil {
		t.Error("the right key does not help")
	}
}
