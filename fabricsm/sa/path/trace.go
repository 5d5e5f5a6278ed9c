package path

import (
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sa/portindex"
	"portcullis/fabricsm/topo"
)

// TraceSize is the length of a TraceRecord in a table, in bytes.
const TraceSize = 48

// Trace returns the nodes on a path, from source to destination. It keeps the book that it was made with.
type Trace struct {
	e     *Engine
	b     *portindex.Book
	to    *portindex.EndPort
	dlid  ib.LID
	node  topo.NodeID // the next
	entry ib.PortNum  // by which it is entered, 0 at the source
	exit  ib.PortNum  // of the source, if it is no switch
	left  int         // nodes at most; 0: there are no more
	rows  int
}

// GetTrace answers a GetTraceTable, which asks by a PathRecord. With StatusOK the trace returns a TraceRecord for each node
// on the path that a Get would return. mask and data are those of the PathRecord. Identifiers distinguish nodes and ports,
// and are not their GUIDs.
//
// An untrusted requester gets StatusDenied: tenants need not know the route through switches. StatusInsufficientComponents:
// an end is left open. Other statuses are as for Get, but without a path the table is empty.
func (e *Engine) GetTrace(b *portindex.Book, a *portindex.Asker, mask mad.ComponentMask, data []byte) (t Trace, status mad.Status) {
	var q query
	q.begin(e, b, a)
	q.mask = mask
	if !q.trusted {
		return t, mad.StatusDenied
	}
	if mad.Decode(data, &q.rec) != nil {
		return t, mad.StatusInvalidRequest
	}
	if status = q.valid(); status != mad.StatusOK {
		return t, status
	}
	if q.toGroup() {
		return t, mad.StatusInvalidRequest // a tree is no path
	}
	const from, to = mad.PathComponentSGID | mad.PathComponentSLID, mad.PathComponentDGID | mad.PathComponentDLID
	if q.mask&from == 0 || q.mask&to == 0 {
		return t, mad.StatusInsufficientComponents
	}
	src, dst, status := q.sides()
	if status == mad.StatusNoRecords {
		return t, mad.StatusOK
	}
	if status != mad.StatusOK {
		return t, status
	}
	var out mad.PathRecord
	p := pairsOf(&src, &dst)
	for range mostPairs {
		slid, dlid, ok := p.next()
		if !ok {
			break
		}
		if q.path(&src, &dst, slid, dlid, &out) {
			return traceOf(e, b, src.port, dst.port, dlid), mad.StatusOK
		}
	}
	return t, mad.StatusOK
}

func traceOf(e *Engine, b *portindex.Book, x, y *portindex.EndPort, dlid ib.LID) Trace {
	t := Trace{e: e, b: b, to: y, dlid: dlid, node: x.Node, left: 1}
	if x != y {
		t.left = len(b.View.Fabric.Switches()) + 2
		t.exit = b.View.Fabric.Port(x.Port).Num
	}
	return t
}

// RecordSize is the length of each record in bytes.
func (t *Trace) RecordSize() int { return TraceSize }

// Step is Next in the form of [Cursor.Step]: a record takes one step.
func (t *Trace) Step(dst []byte, _ int) (n int, done bool) {
	n, ok := t.Next(dst)
	return n, !ok
}

// Steps is how many links were followed.
func (t *Trace) Steps() int { return t.rows }

// Next writes the next record to dst, which must have RecordSize bytes, and returns its length. It returns false when there
// is none left. It does not allocate.
func (t *Trace) Next(dst []byte) (n int, ok bool) {
	if t.left == 0 || len(dst) < TraceSize {
		return 0, false
	}
	t.left--
	t.rows++
	f := t.b.View.Fabric
	node := f.Node(t.node)
	r := mad.TraceRecord{
		GIDPrefix: t.e.cfg.Prefix, IDGeneration: uint16(t.id(0) >> 48), NodeType: node.Type,
		NodeID: t.id(uint64(node.GUID)), ChassisID: t.id(uint64(node.SystemImageGUID)), EntryPort: t.entry,
	}
	if t.entry != 0 {
		r.EntryPortID = t.portID(t.entry)
	}
	if out := t.out(); out != 0 && t.left > 0 {
		r.ExitPort, r.ExitPortID = out, t.portID(out)
		t.follow(f.PortOf(t.node, out))
	} else {
		t.left = 0
	}
	clear(dst[:TraceSize])
	if mad.Encode(dst, &r) != nil {
		return 0, false
	}
	return TraceSize, true
}

// out returns the port by which packets leave the current node, or 0 if they end or are dropped there.
func (t *Trace) out() ib.PortNum {
	f := t.b.View.Fabric
	if f.Node(t.node).Type != ib.NodeSwitch {
		if t.rows == 1 {
			return t.exit
		}
		return 0
	}
	lft := t.b.View.Tables.LFT(t.node)
	if int(t.dlid) >= len(lft) || lft[t.dlid] == ib.NoPort {
		return 0
	}
	return lft[t.dlid]
}

// follow goes over the link of a port to the next node.
func (t *Trace) follow(p topo.PortID) {
	f := t.b.View.Fabric
	peer := topo.PortID(topo.None)
	if p != topo.None {
		peer = f.LinkUp(p)
	}
	if peer == topo.None {
		t.left = 0
		return
	}
	t.node, t.entry = f.Port(peer).Node, f.Port(peer).Num
}

// id returns the identifier that stands for a GUID. Different GUIDs have different identifiers.
func (t *Trace) id(guid uint64) uint64 {
	return scramble(scramble(guid^t.e.cfg.TraceKey) + t.e.cfg.TraceKey)
}

// portID returns the identifier of a port of the current node.
func (t *Trace) portID(p ib.PortNum) uint64 {
	return scramble(t.id(uint64(t.b.View.Fabric.Node(t.node).GUID)) + uint64(p))
}

// scramble spreads bits over the whole word, different words to different ones.
func scramble(x uint64) uint64 {
	x ^= x >> 30
	x *= 0xbf58476d1ce4e5b9
	x ^= x >> 27
	x *= 0x94d049bb133111eb
	return x ^ x>>31
}
