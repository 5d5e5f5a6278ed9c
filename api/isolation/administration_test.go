package isolation

import (
	"testing"

	v1 "portcullis/api/v1"
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/proof"
	"portcullis/fabricsm/proof/disclosure"
	"portcullis/fabricsm/proof/reader"
)

// Whatever is disclosed, of each tenant that it concerns something is not proven: a pair where there is one, otherwise all.
func TestConcern(t *testing.T) {
	t.Parallel()
	red, blue, green := proof.Owner{Kind: proof.Tenant, Name: "red"}, proof.Owner{Kind: proof.Tenant, Name: "blue"}, proof.Owner{Kind: proof.Tenant, Name: "green"}
	without, storage, unknown := proof.Owner{Kind: proof.Tenant, Name: NoTenant}, proof.Owner{Kind: proof.Shared, Name: "nfs"}, proof.Owner{}
	found := &reader.Found{Fabric: &proof.Fabric{}}
	owners := []proof.Owner{red, blue, without, storage, unknown}
	for i, o := range owners {
		found.Fabric.Devices = append(found.Fabric.Devices, proof.Device{Type: ib.NodeCA, GUID: ib.GUID(i + 1), Ports: []proof.Port{{}, {Owner: o}}})
		found.Ends = append(found.Ends, reader.End{GUID: ib.GUID(i + 100), Port: proof.Place{Device: i, Port: 1}})
	}
	p := &Proven{in: &Intent{holdings: holdings{owns: map[ib.PKey]string{0x0202: "blue"}}}, found: found}
	const fromRed, none = 0, disclosure.None
	for name, c := range map[string]struct {
		f        disclosure.Finding
		yes, not [][2]proof.Owner
	}{
		"a port":              {disclosure.Finding{Asker: fromRed, Subject: 1}, [][2]proof.Owner{{red, blue}, {blue, red}}, [][2]proof.Owner{{red, green}, {blue, green}}},
		"a partition":         {disclosure.Finding{Asker: fromRed, Subject: none, PKey: 0x8202}, [][2]proof.Owner{{red, blue}}, [][2]proof.Owner{{red, green}}},
		"of no tenant":        {disclosure.Finding{Asker: fromRed, Subject: none, PKey: 0x8303}, [][2]proof.Owner{{red, blue}, {red, green}}, [][2]proof.Owner{{blue, green}}},
		"a key":               {disclosure.Finding{Asker: fromRed, Subject: none, Secret: true}, [][2]proof.Owner{{red, blue}}, [][2]proof.Owner{{blue, green}}},
		"a key, to no port":   {disclosure.Finding{Asker: none, Subject: none, Secret: true}, [][2]proof.Owner{{blue, green}}, nil},
		"to no port":          {disclosure.Finding{Asker: none, Subject: 1}, [][2]proof.Owner{{red, blue}, {green, blue}}, [][2]proof.Owner{{red, green}}},
		"a shared service":    {disclosure.Finding{Asker: fromRed, Subject: 3}, [][2]proof.Owner{{red, blue}}, [][2]proof.Owner{{blue, green}}},
		"hosts of no tenant":  {disclosure.Finding{Asker: fromRed, Subject: 2}, [][2]proof.Owner{{red, without}}, [][2]proof.Owner{{red, blue}, {blue, without}}},
		"to undeclared":       {disclosure.Finding{Asker: 4, Subject: 1}, [][2]proof.Owner{{unknown, blue}}, [][2]proof.Owner{{unknown, red}}},
		"neither is a tenant": {disclosure.Finding{Asker: 4, Subject: 2}, [][2]proof.Owner{{unknown, blue}, {without, red}}, [][2]proof.Owner{{red, blue}}},
	} {
		p.Hear(&Heard{Tables: disclosure.New(found, ib.DefaultPrefix), Findings: []disclosure.Finding{c.f}})
		is := p.concern()
		for _, pair := range c.yes {
			if !is.has(pair[0], pair[1]) {
				t.Errorf("%s does not concern %v", name, pair)
			}
		}
		for _, pair := range c.not {
			if is.has(pair[0], pair[1]) {
				t.Errorf("%s concerns %v", name, pair)
			}
		}
		if !p.concerns(&c.f, "") {
			t.Errorf("%s is not in a report about all", name)
		}
		if got, want := p.concerns(&c.f, "green"), c.f.Asker == none && c.f.Subject == none; got != want {
			t.Errorf("%s is in a report about green: %t", name, got)
		}
	}
	if out := p.disclosure(&disclosure.Finding{Asker: fromRed, Subject: none, PKey: 0x8202}); out.About.Party != "blue" || out.Cure == "" || out.From.Party != "red" {
		t.Errorf("%+v", out)
	}
	if out := p.disclosure(&disclosure.Finding{Asker: none, Subject: 4}); out.About.Party != "(undeclared devices)" || out.From != (v1.DisclosurePort{}) {
		t.Errorf("%+v", out)
	}
}
