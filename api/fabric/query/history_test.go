package query_test

import (
	"fmt"
	"testing"

	"portcullis/api/fabric/query"
	"portcullis/api/fabric/query/seentest"
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/sm"
)

// TestManyEventsAreToldAsOne: a bring-up does not displace the events before it, and the newest events are kept, in order.
func TestManyEventsAreToldAsOne(t *testing.T) {
	show := seentest.Run(t, seentest.Tree, seentest.Grants(), nil)
	o := query.New(query.Options{})
	o.OnView(show.Settled())
	o.OnEvent(&sm.Routed{Engine: "first"})
	for i := range 1000 {
		o.OnEvent(&sm.PortPlaced{GUID: ib.GUID(i + 1)})
	}
	p, err := o.Progress(t.Context())
	must(t, p, err)
	if n := len(p.Events); n != 5 || p.Events[0].Event != "routed" || p.Events[4].Count != 997 || p.Events[4].Fields["guid"] != "0x00000000000003e8" {
		t.Errorf("%d events, the last %+v; want 1, 3 and 997 as one", n, p.Events[n-1])
	}
	for i := range 150 {
		o.OnEvent(&sm.Routed{Engine: fmt.Sprint(i)})
		o.OnEvent(&sm.PortGone{GUID: ib.GUID(i + 1)})
	}
	p, err = o.Progress(t.Context())
	must(t, p, err)
	if n := len(p.Events); n != 100 || p.Events[0].Fields["engine"] != "100" || p.Events[99].Event != "port-gone" || p.Events[98].Fields["engine"] != "149" {
		t.Errorf("%d events from %+v to %+v; want the last 100", n, p.Events[0], p.Events[n-1])
	}
}
