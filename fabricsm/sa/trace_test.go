package sa_test

import (
	"testing"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/rmpp"
)

// Only trusted requesters get the route of packets, node by node.
func TestTraceIsForTheTrusted(t *testing.T) {
	r := newRig(t, nil)
	r.Grant(r.GrantOf("h1", 1, 0x8001), r.GrantOf("h5", 1, 0x8001))
	r.settle()
	mask, fill := paths(r.GUID("h1", 1), r.GUID("h5", 1))
	if got := r.ask("h1", ib.SAKey{}, mad.MethodGetTrace, mad.AttrTraceRecord, mask, fill); len(got) > 0 {
		t.Errorf("untrusted: %d answers", len(got))
	}
	got := r.ask("h1", saKey, mad.MethodGetTrace, mad.AttrTraceRecord, mask, fill)
	data, err := rmpp.Reassemble(got)
	if err != nil {
		t.Fatal(err)
	}
	size := mad.RecordSize(mad.AttrTraceRecord)
	if len(data) < 3*size || got[0].Method() != mad.MethodGetTableResp || int(got[0].AttributeOffset())*8 != size {
		t.Fatalf("%d bytes in %v, records of %d", len(data), got[0].Method(), got[0].AttributeOffset()*8)
	}
	var first, last mad.TraceRecord
	if mad.Decode(data, &first) != nil || mad.Decode(data[len(data)-size:], &last) != nil {
		t.Fatal("the records are short")
	}
	if first.NodeType != ib.NodeCA || first.EntryPort != 0 || first.ExitPort != 1 || last.NodeType != ib.NodeCA || last.EntryPort != 1 || last.ExitPort != 0 {
		t.Errorf("from %+v to %+v", first, last)
	}
}
