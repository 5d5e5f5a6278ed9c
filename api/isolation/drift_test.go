package isolation_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"portcullis/api/inventory"
	"portcullis/api/isolation"
	v1 "portcullis/api/v1"
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sim"
)

// drift reads the fabric and returns the drift, a line each.
func (b *bed) drift() (lines []string) {
	b.t.Helper()
	for _, d := range b.prove(v1.IsolationQuery{}, isolation.Span{}).Drift() {
		line := fmt.Sprintf("%s: %s in %s", d.Host, d.Kind, d.In)
		if d.PKey != 0 {
			line += fmt.Sprintf(" %v", d.PKey)
		}
		if d.Found != "" {
			line += ", found " + d.Found
		}
		if d.Host != "" && d.Place != b.hostOf(d.Host).HCAs[0].Ports[0].Cable {
			b.t.Errorf("%s at %v", line, d.Place)
		}
		lines = append(lines, line)
	}
	slices.Sort(lines)
	return lines
}

func (b *bed) wantDrift(what string, want ...string) {
	b.t.Helper()
	if got := b.drift(); !slices.Equal(got, want) {
		b.t.Errorf("%s: drift\n%q, want\n%q", what, got, want)
	}
}

// setGrant changes the grant of a host.
func (b *bed) setGrant(host string, change func(*grantRecord)) {
	for i := range b.records.Grants {
		if g := &b.records.Grants[i]; g.Value.Host == host {
			change(g)
		}
	}
}

func TestDrift(t *testing.T) {
	t.Parallel()
	const strange ib.PKey = 0x8777
	for name, c := range map[string]struct {
		change func(b *bed)
		want   []string
	}{
		"none":                {func(*bed) {}, nil},
		"stray in an adapter": {func(b *bed) { b.stray("h1", 0, blueKey) }, []string{"h1: stray in adapter 0x8202, found 0x8202"}},
		"of a service": {func(b *bed) {
			b.hostOf("h5").Role = inventory.RoleService
			b.stray("h5", 0, strange)
		}, []string{"h5: stray in adapter 0x8777, found 0x8777"}},
		"of the Subnet Manager": {func(b *bed) {
			b.hostOf("h5").Role = inventory.RoleSM
			b.stray("h5", 0, strange)
		}, nil},
		"of no tenant": {func(b *bed) { b.stray("h5", 0, strange) }, []string{"h5: stray in adapter 0x8777, found 0x8777"}},
		"stray in a switch": {func(b *bed) {
			leaf, port := b.leaf("h1")
			b.stray(leaf, mad.PKeyTableMod(port, 0), ib.DefaultPKeyFull)
		}, []string{"h1: stray in switch 0xffff, found 0xffff"}},
		"full and limited": {func(b *bed) { b.stray("h1", 0, redKey.Limited()) }, nil}, // its own P_Key in full lets more pass
		"other membership": {func(b *bed) {
			b.write("h1", mad.AttrPKeyTable, 0, func(data []byte) {
				for i := 0; i < len(data); i += 2 {
					if data[i] == byte(redKey>>8) && data[i+1] == byte(redKey&0xFF) {
						data[i] &^= 0x80
					}
				}
			})
		}, []string{"h1: membership in adapter 0x8101, found 0x0101"}},
		"missing": {func(b *bed) {
			leaf, port := b.leaf("h1")
			b.write(leaf, mad.AttrPKeyTable, mad.PKeyTableMod(port, 0), func(data []byte) { clear(data) })
		}, []string{"h1: missing in switch 0x8101"}},
		"not enforced": {func(b *bed) {
			leaf, port := b.leaf("h2")
			b.write(leaf, mad.AttrPortInfo, mad.PortInfoMod(port, 0), func(data []byte) {
				var p mad.PortInfo
				if err := mad.Decode(data, &p); err != nil {
					b.t.Fatal(err)
				}
				p.PartitionEnforcementOutbound, p.PortState, p.PortPhysicalState, p.LinkDownDefaultState = false, 0, 0, 0
				mad.MustEncode(data, &p)
			})
		}, []string{"h2: not-enforced in switch, found inbound on, outbound off"}},
		"leaving": {func(b *bed) {
			b.setGrant("h1", func(g *grantRecord) { g.Value.Withdrawn = true })
		}, []string{"h1: leaving in adapter 0x8101, found 0x8101", "h1: leaving in switch 0x8101, found 0x8101"}},
		"adopted": {func(b *bed) { b.setGrant("h1", func(g *grantRecord) { g.Value.Adopted = "now" }) }, nil},
		"absent": {func(b *bed) {
			leaf, port := b.leaf("h1")
			if err := b.fabric.Unlink(leaf, port); err != nil {
				b.t.Fatal(err)
			}
		}, []string{"h1: absent in adapter, found the switch port is down"}},
		"silent": {func(b *bed) {
			if err := b.fabric.SetFault("h5", sim.Fault{Silent: true}); err != nil {
				b.t.Fatal(err)
			}
		}, nil}, // it has no membership
		"silent, with a stray P_Key before it": {func(b *bed) {
			leaf, port := b.leaf("h5")
			b.stray(leaf, mad.PKeyTableMod(port, 0), redKey)
			if err := b.fabric.SetFault("h5", sim.Fault{Silent: true}); err != nil {
				b.t.Fatal(err)
			}
		}, []string{"h5: stray in switch 0x8101, found 0x8101"}},
		"unread": {func(b *bed) {
			b.change = func(_ int, m *mad.MAD) bool { return m.Attr() != mad.AttrPKeyTable || m.Route().Len() < 2 }
		}, []string{
			"h1: unread in adapter, found P_Key table", "h2: unread in adapter, found P_Key table", "h3: unread in adapter, found P_Key table",
			"h4: unread in adapter, found P_Key table", "h4: unread in switch, found P_Key table", "h5: unread in adapter, found P_Key table",
			"h5: unread in switch, found P_Key table",
		}},
		"undeclared": {func(b *bed) {
			b.stray("h5", 0, redKey)
			leaf, port := b.leaf("h5")
			b.stray(leaf, mad.PKeyTableMod(port, 0), blueKey)
			b.records.Inventory.Hosts = slices.DeleteFunc(b.records.Inventory.Hosts, func(h inventory.Host) bool { return h.ID == "h5" })
		}, []string{": stray in adapter 0x8101, found 0x8101", ": stray in switch 0x8202, found 0x8202"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBed(t)
			c.change(b)
			b.wantDrift(name, c.want...)
		})
	}
}

// A row that stays keeps the time at which it was seen first; one that goes and comes back is new.
func TestDriftSince(t *testing.T) {
	t.Parallel()
	at := func(hour int) *v1.IsolationBounds {
		return &v1.IsolationBounds{Begun: time.Date(2026, 11, 30, hour, 0, 0, 0, time.UTC)}
	}
	row := func(port ib.PortNum, kind string) v1.Drift {
		return v1.Drift{Kind: kind, In: v1.DriftInSwitch, Place: ib.Place{Switch: 5, Port: port}, PKey: 0x8001}
	}
	hours := func(rows []v1.Drift) (out []int) {
		for i := range rows {
			out = append(out, rows[i].Since.Hour())
		}
		return out
	}
	first := []v1.Drift{row(2, v1.DriftStray), row(9, v1.DriftStray), row(10, v1.DriftStray)}
	isolation.KeepSince(first, nil, at(1))
	second := []v1.Drift{row(1, v1.DriftStray), row(2, v1.DriftMissing), row(2, v1.DriftStray), row(10, v1.DriftStray)}
	isolation.KeepSince(second, first, at(2))
	if got := hours(second); !slices.Equal(got, []int{2, 2, 1, 1}) {
		t.Errorf("since %v", got)
	}
	third := []v1.Drift{row(9, v1.DriftStray), row(10, v1.DriftStray)}
	isolation.KeepSince(third, second, at(3))
	if got := hours(third); !slices.Equal(got, []int{3, 1}) {
		t.Errorf("since %v", got)
	}
}
