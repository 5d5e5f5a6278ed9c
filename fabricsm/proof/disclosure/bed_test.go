package disclosure

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/proof"
	"portcullis/fabricsm/proof/reader"
	"portcullis/fabricsm/sim/netlist"
	"portcullis/fabricsm/sm"
	"portcullis/fabricsm/testbed"
	"portcullis/fabricsm/transport"
)

// bed is a fabric that the Subnet Manager set, and what was read of it: h1 and h3 are of red, h2 and h4 of blue, h5 has no tenant, and
// h6 is not declared. Red and blue use the shared partition of h4, which is a server there.
type bed struct {
	*Tables
	t     testing.TB
	stage *testbed.Stage
	found *reader.Found
}

const (
	redKey    ib.PKey = 0x8101
	blueKey   ib.PKey = 0x8202
	sharedKey ib.PKey = 0x8303
)

func newBed(t testing.TB) *bed {
	t.Helper()
	l, err := netlist.FatTree2(netlist.Shape{Hosts: 7, Radix: 8})
	if err != nil {
		t.Fatal(err)
	}
	b := &bed{t: t}
	if b.stage, err = testbed.New(testbed.Options{Netlist: l, Manager: "sm"}); err != nil {
		t.Fatal(err)
	}
	b.stage.Start()
	b.stage.Want(sm.Intent{Revision: 1, Grants: []sm.Grant{
		b.stage.GrantOf("h1", 1, redKey), b.stage.GrantOf("h3", 1, redKey), b.stage.GrantOf("h2", 1, blueKey), b.stage.GrantOf("h4", 1, blueKey),
		b.stage.GrantOf("h1", 1, sharedKey.Limited()), b.stage.GrantOf("h4", 1, sharedKey),
	}})
	if err := b.stage.Settle(time.Minute); err != nil {
		t.Fatal(err)
	}
	b.read()
	return b
}

// read reads everything again.
func (b *bed) read() {
	b.t.Helper()
	b.found = b.readBy()
	b.Tables = New(b.found, ib.DefaultPrefix)
}

func (b *bed) readBy() *reader.Found {
	b.t.Helper()
	at, err := b.stage.Fabric.Station("sm", false)
	if err != nil {
		b.t.Fatal(err)
	}
	defer at.Close()
	ids := uint32(0)
	r, err := reader.New(reader.Options{Owner: b.owner, Draw: func() uint32 { ids++; return ids }, Window: 1, Attempts: 1})
	if err != nil {
		b.t.Fatal(err)
	}
	for !r.Done() {
		m, _ := r.Next()
		for _, p := range at.Exchange([]transport.Packet{{MAD: m, LID: ib.PermissiveLID}}, nil) {
			if !p.Undelivered && p.MAD.IsResponse() {
				r.Answer(&p.MAD)
			}
		}
		r.Expire(m.TID())
	}
	found, err := r.Found()
	if err != nil {
		b.t.Fatal(err)
	}
	return found
}

func (b *bed) owner(at ib.Place, is reader.Identity) proof.Owner {
	for i := range b.stage.List.Nodes {
		n := &b.stage.List.Nodes[i]
		if n.GUID != is.Node {
			continue
		}
		switch {
		case n.Type == ib.NodeSwitch || n.Name == "sm":
			return proof.Owner{Kind: proof.Infrastructure}
		case n.Name == "h6":
			return proof.Owner{}
		}
		tenant := map[string]string{"h1": "red", "h3": "red", "h2": "blue", "h4": "blue"}[n.Name]
		if tenant == "" {
			tenant = "(no tenant)"
		}
		return proof.Owner{Kind: proof.Tenant, Name: tenant}
	}
	return proof.Owner{}
}

// port returns the index of a host's port.
func (b *bed) port(host string) int {
	b.t.Helper()
	guid := b.stage.GUID(host, 1)
	i := slices.IndexFunc(b.ports, func(p port) bool { return p.GUID == guid })
	if i < 0 {
		b.t.Fatalf("%s was not found", host)
	}
	return i
}

func (b *bed) lidOf(host string) ib.LID { return b.ports[b.port(host)].lid }

// answer makes an answer of one MAD.
func answer[T any](attr mad.AttrID, rec T) []mad.MAD {
	var m mad.MAD
	m.SetHeader(mad.Header{Class: mad.ClassSubnAdm, ClassVersion: mad.SAClassVersion, Method: mad.MethodGetResp, Attr: attr})
	m.SetAttributeOffset(mad.AttributeOffset(attr))
	mad.MustEncode(m.SAData(), &rec)
	return []mad.MAD{m}
}

// seen returns what was found in one line.
func (b *bed) seen(j *Judgment) string {
	var out []string
	for i := range j.Findings {
		f := &j.Findings[i]
		switch {
		case f.Secret:
			out = append(out, "key "+f.Field)
		case f.Subject == None:
			out = append(out, f.Field+" "+f.PKey.String())
		default:
			name := ""
			for n := range b.stage.List.Nodes {
				node := &b.stage.List.Nodes[n]
				if node.Type == ib.NodeCA && b.stage.GUID(node.Name, 1) == b.ports[f.Subject].GUID {
					name = node.Name
				}
			}
			out = append(out, f.Field+" of "+name)
		}
	}
	if j.Undecided > 0 {
		out = append(out, fmt.Sprintf("undecided %d", j.Undecided))
	}
	return strings.Join(out, ", ")
}
