package trust_test

import (
	"fmt"
	"testing"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sa/trust"
)

// attributes are all of subnet administration, and some that are not.
var attributes = []mad.AttrID{
	mad.AttrClassPortInfo, mad.AttrNotice, mad.AttrInformInfo, mad.AttrNodeRecord, mad.AttrPortInfoRecord, mad.AttrSLtoVLRecord,
	mad.AttrSwitchInfoRecord, mad.AttrLinearForwardingRecord, mad.AttrRandomForwardingRecord, mad.AttrMulticastForwardingRecord,
	mad.AttrSMInfoRecord, mad.AttrLinkRecord, mad.AttrGUIDInfoRecord, mad.AttrServiceRecord, mad.AttrPKeyTableRecord, mad.AttrPathRecord,
	mad.AttrVLArbitrationRecord, mad.AttrMCMemberRecord, mad.AttrTraceRecord, mad.AttrMultiPathRecord, mad.AttrServiceAssociationRecord,
	mad.AttrInformInfoRecord, 0, 0x0050, 0x0053, 0x00f4, 0xff00, 0xffff,
}

// TestModel tries every attribute with every method, with no key, the key, and another key, with and without the enhanced
// trust model. The accepted requests are those that UFM documents.
func TestModel(t *testing.T) {
	type question struct {
		attr   mad.AttrID
		method mad.Method
	}
	always := map[question]bool{
		{mad.AttrPathRecord, mad.MethodGet}:        true,
		{mad.AttrMCMemberRecord, mad.MethodGet}:    true,
		{mad.AttrMCMemberRecord, mad.MethodSet}:    true,
		{mad.AttrMCMemberRecord, mad.MethodDelete}: true,
		{mad.AttrServiceRecord, mad.MethodGet}:     true,
		{mad.AttrServiceRecord, mad.MethodSet}:     true,
		{mad.AttrServiceRecord, mad.MethodDelete}:  true,
		{mad.AttrClassPortInfo, mad.MethodGet}:     true,
		{mad.AttrInformInfo, mad.MethodSet}:        true,
	}
	aliases := map[question]bool{
		{mad.AttrGUIDInfoRecord, mad.MethodSet}:    true,
		{mad.AttrGUIDInfoRecord, mad.MethodDelete}: true,
	}
	for _, model := range []bool{false, true} {
		for _, untrustedAliases := range []bool{false, true} {
			opts := trust.DefaultOptions()
			opts.Model, opts.AliasesUntrusted = model, untrustedAliases
			g := newGuard(t, opts)
			for _, attr := range attributes {
				for method := range mad.Method(0x80) {
					if method == mad.MethodTrapRepress {
						continue // answers a Trap
					}
					q := question{attr, method}
					for _, key := range []uint64{0, second, first, third} {
						m := request(attr, method, key)
						_, got := g.Check(start, &trust.Packet{MAD: m, LID: 7}, trust.Source{Port: host()})
						want := trust.NotAllowed
						switch {
						case key == third:
							want = trust.WrongKey
						case key != 0 || !model || always[q]:
							want = trust.OK
						case aliases[q] && untrustedAliases:
							want = trust.OK
						case aliases[q]:
							want = trust.AliasRefused
						}
						if got != want {
							t.Fatalf("model %v, aliases %v: %v of attribute 0x%04x with key %x: %v, want %v", model, untrustedAliases, method, uint16(attr), key, got, want)
						}
					}
				}
			}
		}
	}
}

// TestTablesOfPathsNeedBothEnds tries every mask of the components that name ends, with
// all others set and none.
func TestTablesOfPathsNeedBothEnds(t *testing.T) {
	const dgid, sgid, dlid, slid = 1 << 2, 1 << 3, 1 << 4, 1 << 5
	g := newGuard(t, trust.DefaultOptions())
	for ends := range mad.ComponentMask(16) {
		for _, rest := range []mad.ComponentMask{0, ^mad.ComponentMask(dgid | sgid | dlid | slid)} {
			mask := ends<<2 | rest
			m := request(mad.AttrPathRecord, mad.MethodGetTable, 0)
			m.SetComponentMask(mask)
			want := trust.NotAllowed
			if mask&(dgid|dlid) != 0 && mask&(sgid|slid) != 0 {
				want = trust.OK
			}
			if _, got := g.Check(start, &trust.Packet{MAD: m, LID: 7}, trust.Source{Port: host()}); got != want {
				t.Errorf("mask %x: %v, want %v", uint64(mask), got, want)
			}
		}
	}
}

func TestSecurityTraps(t *testing.T) {
	g := newGuard(t, trust.DefaultOptions())
	for trap := range mad.TrapNum(0xffff) {
		for _, generic := range []byte{0, 1, 2} {
			m := request(mad.AttrInformInfo, mad.MethodSet, 0)
			d := m.SAData()
			d[22], d[23], d[26], d[27] = generic, 1, byte(trap>>8), byte(trap)
			want := trust.OK
			if generic != 0 && trap >= 256 && trap <= 259 {
				want = trust.SecurityTraps
			}
			if _, got := g.Check(start, &trust.Packet{MAD: m, LID: 7}, trust.Source{Port: host()}); got != want {
				t.Fatalf("trap %d, generic %d: %v, want %v", uint16(trap), generic, got, want)
			}
			m.SetSAKey(ib.NewSAKey(second))
			if _, got := g.Check(start, &trust.Packet{MAD: m, LID: 7}, trust.Source{Port: host()}); got != trust.OK {
				t.Fatalf("trap %d, trusted: %v", uint16(trap), got)
			}
		}
	}
}

func TestSecretNotices(t *testing.T) {
	for n := range uint16(2000) {
		if got, want := trust.Secret(true, n), n >= 256 && n <= 259; got != want {
			t.Errorf("trap %d is secret: %v", n, got)
		}
		if got, want := trust.Secret(false, n), n != 1144; got != want {
			t.Errorf("vendor notice %d is secret: %v", n, got)
		}
	}
}

// TestAliasesByAlias: only physical ports may change aliases, trusted or not.
func TestAliasesByAlias(t *testing.T) {
	for _, byAlias := range []bool{false, true} {
		for _, key := range []uint64{0, second} {
			for _, as := range []ib.GUID{hostGUID, aliasGUID} {
				t.Run(fmt.Sprintf("allowed %v, trusted %v, as %v", byAlias, key != 0, as), func(t *testing.T) {
					opts := trust.DefaultOptions()
					opts.AliasesByAlias, opts.AliasesUntrusted = byAlias, true
					m := request(mad.AttrGUIDInfoRecord, mad.MethodSet, key)
					p := &trust.Packet{MAD: m, LID: 7, GRH: true, SGID: ib.MakeGID(ib.DefaultPrefix, as)}
					want := trust.OK
					if as == aliasGUID && !byAlias {
						want = trust.AliasRefused
					}
					if _, got := newGuard(t, opts).Check(start, p, trust.Source{Port: host()}); got != want {
						t.Errorf("%v, want %v", got, want)
					}
				})
			}
		}
	}
}
