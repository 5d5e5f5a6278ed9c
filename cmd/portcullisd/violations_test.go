package main

import (
	"strings"
	"testing"

	"portcullis/api/client"
	v1 "portcullis/api/v1"
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/transport"
	"portcullis/fabricsm/transport/ibsim"
	"portcullis/fabricsm/transport/ibsim/ibsimtest"
)

// TestViolationsOfARunningSM: a host sends the Subnet Manager traps that accuse another one. A caller that asks over the
// socket is shown their claim and that it is not true, and the key that they show stands nowhere.
func TestViolationsOfARunningSM(t *testing.T) {
	t.Parallel()
	ibsimtest.Need(t)
	lab := ibsimtest.Start(t, twoLevels(t))
	c, d, _ := alone(t, lab, 24+6+4)
	own, to, other := lidOf(t, c, "h1"), lidOf(t, c, "sm"), lidOf(t, c, "h2")
	port, err := ibsim.Dial(t.Context(), ibsim.Options{Socket: lab.Socket(), Node: "h1"})
	if err != nil {
		t.Fatal(err)
	}
	defer port.Close()
	const key = uint64(0xfeedfacecafebeef)
	for i := range 12 {
		p := transport.Packet{LID: to}
		mad.NewSMP(&p.MAD, mad.Header{Method: mad.MethodTrap, Attr: mad.AttrNotice, TID: ib.TID(100 + i)}, nil, ib.MKey{})
		if err := mad.Encode(p.MAD.Data(), &mad.Trap256{
			NoticeHeader: mad.NoticeHeader{IsGeneric: true, Type: mad.NoticeSecurity, TrapNumber: mad.TrapBadMKey, IssuerLID: own},
			LID:          other, Method: mad.MethodSet, AttributeID: mad.AttrPortInfo, MKey: ib.NewMKey(key),
		}); err != nil {
			t.Fatal(err)
		}
		if _, err := port.Send([]transport.Packet{p}); err != nil {
			t.Fatal(err)
		}
	}
	var row v1.FabricViolation
	eventually(t, "twelve reports, refuted", func() (bool, string) {
		for page, err := range c.Fabric().Violations(t.Context(), v1.ViolationQuery{Kind: "m-key"}) {
			if err != nil {
				return false, err.Error()
			}
			for _, v := range page.Items {
				row = v
			}
		}
		return row.Count == 12 && row.Verdict == "refuted", d.lines.String()
	})
	if row.LID != other || row.At == "" || row.By != "lid" || row.Detail != "Set PortInfo" || row.Trap != 256 || row.Reporter == 0 {
		t.Errorf("%+v", row)
	}
	if strings.Contains(strings.ToLower(d.lines.String()), "feedface") {
		t.Errorf("the log shows a key that was offered:\n%s", d.lines.String())
	}
}

// lidOf returns the LID of the first port of a node.
func lidOf(t *testing.T, c *client.Client, node string) ib.LID {
	t.Helper()
	for page, err := range c.Fabric().Ports(t.Context(), v1.PortQuery{Node: node}) {
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range page.Items {
			if p.LID != 0 {
				return p.LID
			}
		}
	}
	t.Fatalf("%s has no LID", node)
	return 0
}
