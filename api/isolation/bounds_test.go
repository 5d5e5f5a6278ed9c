package isolation_test

import (
	"slices"
	"testing"

	"portcullis/api/fabric/records"
	"portcullis/api/isolation"
	v1 "portcullis/api/v1"
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/proof"
	"portcullis/fabricsm/proof/reader"
)

// TestDriftIsShared cuts a list of which one port has most rows: the others keep theirs.
func TestDriftIsShared(t *testing.T) {
	t.Parallel()
	list := func(ports ...int) (rows []v1.Drift) {
		for i, n := range ports {
			for k := range n {
				rows = append(rows, v1.Drift{Place: ib.Place{Switch: 7, Port: ib.PortNum(i + 1)}, PKey: ib.PKey(k + 1)})
			}
		}
		return rows
	}
	for _, c := range []struct{ ports, want []int }{
		{[]int{3, 2}, []int{3, 2}},
		{[]int{900, 2, 5}, []int{4, 2, 4}},
		{[]int{2, 900, 5}, []int{2, 4, 4}},
		{[]int{9, 9, 9}, []int{3, 3, 3}},
		{[]int{1, 9, 9}, []int{1, 4, 4}},
		{[]int{10}, []int{10}},
		{[]int{11}, []int{10}},
		{slices.Repeat([]int{2}, 12), slices.Repeat([]int{1}, 10)},
	} {
		rows := list(c.ports...)
		got := isolation.Shared(rows, 10)
		if !slices.Equal(got, list(c.want...)) {
			t.Errorf("of %v rows are left %d, which are not %v", c.ports, len(got), c.want)
		}
		if len(got) > 0 {
			got[0].Host = "another"
			if rows[0].Host != "" {
				t.Error("the list is no copy")
			}
		}
	}
}

// TestLongTable has an adapter, and a port where nothing is declared, show long P_Key tables: at most 128 rows of each.
func TestLongTable(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	in := b.intent()
	found := owned(b.read(in, v1.IsolationQuery{}))
	var long []ib.PKey
	for i := range 1000 {
		long = append(long, ib.PKey(0x8300+i))
	}
	lies := 0
	for _, e := range found.Ends {
		if port := &found.Fabric.Devices[e.Port.Device].Ports[e.Port.Port]; port.Owner.Kind == proof.Tenant {
			port.PKeys.Value = append(slices.Clone(port.PKeys.Value), long...)
			lies++
		}
	}
	p, err := isolation.Prove(in, found, isolation.Span{})
	if err != nil {
		t.Fatal(err)
	}
	rows := map[ib.Place]int{}
	for _, d := range p.Drift() {
		rows[d.Place]++
	}
	if len(rows) != lies || lies < 4 {
		t.Errorf("%d ports have rows, want %d", len(rows), lies)
	}
	for at, n := range rows {
		if n != 128 {
			t.Errorf("port %v has %d rows", at, n)
		}
	}
}

// TestLongTableOfNoHost is the same where no host is declared.
func TestLongTableOfNoHost(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.records.Inventory.Hosts = b.records.Inventory.Hosts[:0]
	for i := range 300 {
		g := b.records.Grants[0]
		g.Value.Limited = false
		k, err := records.ParseKey(g.Key)
		if err != nil {
			t.Fatal(err)
		}
		k.PKey = ib.PKey(0x300 + i)
		g.Key = k.String()
		b.records.Grants = append(b.records.Grants, g)
	}
	in := b.intent()
	found := owned(b.read(in, v1.IsolationQuery{}))
	for _, e := range found.Ends {
		port := &found.Fabric.Devices[e.Port.Device].Ports[e.Port.Port]
		front := &found.Fabric.Devices[port.Cable.Device].Ports[port.Cable.Port]
		for i := range 300 {
			port.PKeys.Value = append(slices.Clone(port.PKeys.Value), ib.PKey(0x8300+i))
			front.PKeys.Value = append(slices.Clone(front.PKeys.Value), ib.PKey(0x8300+i))
		}
	}
	p, err := isolation.Prove(in, found, isolation.Span{})
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string]int{}
	for _, d := range p.Drift() {
		rows[d.Place.String()+" "+d.In]++
	}
	if len(rows) < 6 {
		t.Errorf("rows of %v", rows)
	}
	for at, n := range rows {
		if n > 128 {
			t.Errorf("%s has %d rows", at, n)
		}
	}
}

// TestCableToNowhere proves again after a port changed whose cable leads to no device.
func TestCableToNowhere(t *testing.T) {
	t.Parallel()
	for _, cable := range []proof.Place{{Device: 99, Port: 1}, {Device: -1, Port: 1}, {Device: 0, Port: 77}} {
		b := newBed(t)
		in := b.intent()
		found := owned(b.read(in, v1.IsolationQuery{}))
		end := found.Ends[slices.IndexFunc(found.Ends, func(e reader.End) bool {
			return found.Fabric.Devices[e.Port.Device].Ports[e.Port.Port].Owner.Kind == proof.Tenant
		})]
		found.Fabric.Devices[end.Port.Device].Ports[end.Port.Port].Cable = cable
		p, err := isolation.Prove(in, found, isolation.Span{})
		if err != nil {
			t.Fatal(err)
		}
		said(p, v1.IsolationQuery{})
		next := owned(found)
		port := &next.Fabric.Devices[end.Port.Device].Ports[end.Port.Port]
		port.PKeys.Value = append(slices.Clone(port.PKeys.Value), 0x8777)
		again, ok := p.Again(in, next, isolation.Span{})
		whole, err := isolation.Prove(in, next, isolation.Span{})
		if err != nil || !ok {
			t.Fatalf("cable to %v: proven again is %t, %v", cable, ok, err)
		}
		for _, line := range disagree(again, whole, v1.IsolationQuery{}) {
			t.Errorf("cable to %v: %s", cable, line)
		}
	}
}

// TestDigestOfLanes: what was read of SLtoVL tables is part of the digest, and whether it was.
func TestDigestOfLanes(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	found := b.read(b.intent(), v1.IsolationQuery{})
	if len(found.Lanes) < 5 {
		t.Fatalf("%d tables were read", len(found.Lanes))
	}
	first := isolation.DigestOf(found)
	seen := map[isolation.Digest]string{first: "as read"}
	for name, change := range map[string]func(l *reader.Lanes){
		"a lane":   func(l *reader.Lanes) { l.Table.Value.VL[15]++ },
		"ingress":  func(l *reader.Lanes) { l.In++ },
		"egress":   func(l *reader.Lanes) { l.Port.Port += 100 },
		"not read": func(l *reader.Lanes) { l.Table.How = proof.NotRead },
		"changed":  func(l *reader.Lanes) { l.Table.How = proof.Inconsistent },
	} {
		other := *found
		other.Lanes = slices.Clone(found.Lanes)
		change(&other.Lanes[3])
		d := isolation.DigestOf(&other)
		if was, known := seen[d]; known {
			t.Errorf("%s has the digest of %s", name, was)
		}
		seen[d] = name
	}
	if isolation.DigestOf(found) != first {
		t.Error("the same reading has another digest")
	}
}

// TestBlame names a value on which packets depend, where others of the same port were not read either.
func TestBlame(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	in := b.intent()
	found := owned(b.read(in, v1.IsolationQuery{}))
	at := found.Ends[slices.IndexFunc(found.Ends, func(e reader.End) bool {
		return found.Fabric.Devices[e.Port.Device].Ports[e.Port.Port].Owner == proof.Owner{Kind: proof.Tenant, Name: "red"}
	})]
	port := &found.Fabric.Devices[at.Port.Device].Ports[at.Port.Port]
	port.PKeys.How, found.Fabric.Devices[port.Cable.Device].Ports[port.Cable.Port].PKeys.How = proof.NotRead, proof.NotRead
	for _, what := range []string{"alias GUIDs", "SLtoVL table", "P_Key table"} {
		found.Unknown = append(found.Unknown, reader.Unknown{Port: at.Port, Where: "adapter", What: what, Cause: reader.Silent})
	}
	p, err := isolation.Prove(in, found, isolation.Span{})
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range p.Ports() {
		if row.GUID == at.GUID && (row.Verdict != v1.Unproven || row.Detail != "P_Key table of adapter: the device did not answer") {
			t.Errorf("%+v", row)
		}
	}
}

// TestUnreadThatMattersIsListed: tables that no packet depends on do not take the place of one that it does.
func TestUnreadThatMattersIsListed(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	in := b.intent()
	found := b.read(in, v1.IsolationQuery{})
	for i := range 150 {
		found.Unknown = append(found.Unknown, reader.Unknown{Port: proof.Place{Port: ib.PortNum(i)}, Where: "switch", What: "SLtoVL table", Cause: reader.Refused})
	}
	found.Unknown = append(found.Unknown, reader.Unknown{Where: "adapter", What: "P_Key table", Cause: reader.Silent})
	p, err := isolation.Prove(in, found, isolation.Span{})
	if err != nil {
		t.Fatal(err)
	}
	out := p.Report(v1.IsolationQuery{})
	if len(out.Unread) != 100 || out.Unread[0].What != "P_Key table" || out.Unread[1].What != "SLtoVL table" || out.Unread[99].What != "SLtoVL table" || out.Bounds.Unread != 151 {
		t.Errorf("of %d values that were not read %d are listed: %v", out.Bounds.Unread, len(out.Unread), out.Unread)
	}
}
