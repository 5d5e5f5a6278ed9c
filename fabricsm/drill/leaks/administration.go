package leaks

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"portcullis/fabricsm/drill"
	"portcullis/fabricsm/drill/weak"
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/proof/disclosure"
	"portcullis/fabricsm/sa"
	"portcullis/fabricsm/testbed"
	"portcullis/fabricsm/transport"
)

// disclosing is a Subnet Manager that lacks a control of subnet administration, and what it then discloses.
type disclosing struct {
	what   string // as a sentence
	lacks  func(c *sa.Config)
	record mad.AttrID // that names a port of another tenant
	// shown reports whether h1 gets a record of hosts of tenant B over the fabric.
	shown func(b *bed) bool
}

// play starts a Subnet Manager that lacks the control in place of the strict one, and has it examined; and then the strict one again.
func (d *disclosing) play(s *drill.Scene) {
	b := newBed(s, drill.Administered())
	b.Victim("h1", "h5")
	strict := *b.Stage.SA
	s.Check(!d.shown(b), "h1 gets such a record already")
	s.Check(len(b.examine()) == 0, "it discloses already: %v", b.examine())
	b.Attack()
	s.Tried("%s", d.what)
	d.lacks(b.Stage.SA)
	b.again()
	s.Check(d.shown(b), "h1 gets no such record, so nothing is there to be found")
	found := b.examine()
	i := slices.IndexFunc(found, func(f finding) bool { return f.record == d.record && f.from == "A" && f.about == "B" })
	if !s.Check(i >= 0, drill.Unreported+": the examination finds %v", found) {
		return
	}
	s.Reported("subnet administration discloses to %s", found[i].text)
	*b.Stage.SA = strict
	b.again()
	b.Isolated(0, "h1 gets no such record after the control is back", func() bool { return !d.shown(b) && len(b.examine()) == 0 })
	s.Stopped("the examination asks subnet administration from ports of each tenant, and compares its answers with the tables of devices")
}

// again starts the Subnet Manager again.
func (b *bed) again() {
	wanted := b.Intent()
	b.Crash()
	b.Start()
	b.Want(wanted)
	b.s.Must(b.Settle(drill.SettleTime))
}

// finding is one of the examination, in words.
type finding struct {
	record      mad.AttrID
	from, about string // tenants
	text        string
}

// examine asks subnet administration from all ports, and judges its answers by the tables of devices.
func (b *bed) examine() (out []finding) {
	t := disclosure.New(b.found(), ib.DefaultPrefix)
	draw := rand.New(rand.NewPCG(b.s.Seed(), 1)).IntN
	aside, err := b.Administration().Aside()
	b.s.Must(err)
	chosen, _, _ := t.Sample(1<<10, draw)
	for _, i := range append(chosen, disclosure.None) {
		for _, q := range t.Questions(i, t.Unused(draw), t.Stranger(i, draw)) {
			b.ids++
			p := transport.Packet{MAD: q.MAD, LID: q.LID, QP: 1}
			p.MAD.SetTID(ib.TID(b.ids))
			if q.Claim != (ib.GID{}) {
				p.GRH = transport.GRH{Present: true, GID: q.Claim}
			}
			heard, err := aside.Ask(testbed.Epoch.Add(b.Now()), &p)
			b.s.Must(err)
			j := t.Judge(i, &q, heard.Segments, heard.Cut)
			for k := range j.Findings {
				out = append(out, b.inWords(t, &j.Findings[k]))
			}
		}
	}
	return out
}

func (b *bed) inWords(t *disclosure.Tables, f *disclosure.Finding) finding {
	out := finding{record: f.Record}
	from, about := "a LID that no port has", "no port"
	if f.Asker != disclosure.None {
		end, _ := t.End(f.Asker)
		out.from = t.Owner(f.Asker).Name
		from = fmt.Sprintf("the port at %v", end.At)
	}
	if f.Subject != disclosure.None {
		end, _ := t.End(f.Subject)
		out.about = t.Owner(f.Subject).Name
		about = fmt.Sprintf("the port at %v", end.At)
	}
	out.text = fmt.Sprintf("%s, of tenant %q, in a %s: %s %s, which is %s, of tenant %q", from, out.from, f.Kind(), f.Field, f.Value, about, out.about)
	return out
}

// answered reports whether h1 is answered with a record, over the fabric and without a key.
func (b *bed) answered(method mad.Method, attr mad.AttrID, mask mad.ComponentMask, fill func(data []byte)) bool {
	if b.asker == nil {
		var err error
		b.asker, err = b.Fabric.Station("h1", true)
		b.s.Must(err)
	}
	b.ids++
	p := transport.Packet{LID: b.View().LID, QP: 1}
	p.MAD.SetHeader(mad.Header{Class: mad.ClassSubnAdm, ClassVersion: mad.SAClassVersion, Method: method, TID: ib.TID(b.ids), Attr: attr})
	p.MAD.SetComponentMask(mask)
	fill(p.MAD.SAData())
	b.asker.Send(p)
	b.Run(10 * time.Millisecond)
	for _, a := range b.asker.Take(nil) {
		if !a.Undelivered && uint32(a.MAD.TID()) == b.ids && a.MAD.Status() == mad.StatusOK && a.MAD.AttributeOffset() != 0 {
			return true
		}
	}
	return false
}

// disclosedPaths is T170.
func disclosedPaths(s *drill.Scene) {
	(&disclosing{
		what:  "subnet administration returns paths between any ports to any host",
		lacks: func(c *sa.Config) { c.Policy = weak.Trusting{About: sa.Paths} }, record: mad.AttrPathRecord,
		shown: func(b *bed) bool {
			return b.answered(mad.MethodGet, mad.AttrPathRecord, mad.PathComponentSGID|mad.PathComponentDGID, func(data []byte) {
				h2, h6 := b.GUID("h2", 1), b.GUID("h6", 1)
				mad.MustEncode(data, &mad.PathRecord{SGID: ib.MakeGID(ib.DefaultPrefix, h2), DGID: ib.MakeGID(ib.DefaultPrefix, h6)})
			})
		},
	}).play(s)
}

// disclosedNodes is T171.
func disclosedNodes(s *drill.Scene) {
	(&disclosing{
		what:  "subnet administration answers hosts what the enhanced trust model keeps from them",
		lacks: func(c *sa.Config) { c.Policy = weak.AnyRequest{} }, record: mad.AttrNodeRecord,
		shown: func(b *bed) bool {
			return b.answered(mad.MethodGet, mad.AttrNodeRecord, mad.NodeComponentLID, func(data []byte) {
				mad.MustEncode(data, &mad.NodeRecord{LID: b.LID("h2")})
			})
		},
	}).play(s)
}
