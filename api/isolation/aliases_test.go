package isolation_test

import (
	"encoding/binary"
	"strings"
	"testing"

	"portcullis/api/isolation"
	v1 "portcullis/api/v1"
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
)

// A port that has a GUID of another tenant as an alias is shown packets for that tenant. An alias that was issued to no other tenant is no finding.
func TestAliasOfAnotherTenant(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		guid func(b *bed) ib.GUID
		want string
	}{
		"GUID of a port": {func(b *bed) ib.GUID { return b.hostOf("h2").HCAs[0].Ports[0].GUID }, v1.Leaks},
		"alias GUID that another port may have": {func(b *bed) ib.GUID {
			b.hostOf("h2").HCAs[0].Ports[0].Aliases = []ib.GUID{0xA7, 0xA8}
			return 0xA8
		}, v1.Leaks},
		"its own": {func(b *bed) ib.GUID {
			b.hostOf("h1").HCAs[0].Ports[0].Aliases = []ib.GUID{0xA7}
			return 0xA7
		}, v1.Isolated},
		"of the same tenant": {func(b *bed) ib.GUID { return b.hostOf("h3").HCAs[0].Ports[0].GUID }, v1.Isolated},
		"issued to none":     {func(*bed) ib.GUID { return 0xA9 }, v1.Isolated},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBed(t)
			guid := c.guid(b)
			b.write("h1", mad.AttrGUIDInfo, 0, func(data []byte) { binary.BigEndian.PutUint64(data[16:], uint64(guid)) })
			got := b.report("")
			if got.Verdict != c.want {
				t.Fatalf("verdict %q, want %q", got.Verdict, c.want)
			}
			if c.want == v1.Leaks && (len(got.Examples) == 0 || !strings.HasPrefix(got.Examples[0].Cure, "remove alias GUID "+guid.String())) {
				t.Errorf("examples %+v", got.Examples)
			}
		})
	}
}

// A GUID that is declared to be another tenant's next makes an alias a finding then.
func TestOpenedAlias(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.write("h1", mad.AttrGUIDInfo, 0, func(data []byte) { data[16+7] = 0xA9 })
	b.wantOpened("an alias that h1 holds already", func(r *isolation.Records) {
		for i := range r.Inventory.Hosts {
			if h := &r.Inventory.Hosts[i]; h.ID == "h2" {
				h.HCAs = append(h.HCAs[:0:0], h.HCAs...)
				ports := append(h.HCAs[0].Ports[:0:0], h.HCAs[0].Ports...)
				ports[0].Aliases = []ib.GUID{0xA9}
				h.HCAs[0].Ports = ports
			}
		}
	}, [2]string{"red", "blue"})
}
