package threats

import (
	"portcullis/fabricsm/drill"
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/keys"
	"portcullis/fabricsm/sim"
	"portcullis/fabricsm/sm"
	"portcullis/fabricsm/sm/violation"
)

// way is one by which a GMP of h1 reaches a device.
type way struct {
	to   string
	pkey ib.PKey
	what string
}

// shared is a site with keys of classes in which h3 serves tenants A and B. Its switches check only the base of incoming
// P_Keys. So a limited member can call itself full, and reaches limited members.
func shared() drill.SiteOptions {
	o := drill.SiteOptions{
		Tenants:   []drill.Tenant{{Name: "A", PKey: drill.KeyA, Hosts: []string{"h1", "h5", "h3"}}, {Name: "B", PKey: drill.KeyB, Hosts: []string{"h2", "h6", "h3"}}},
		ClassKeys: true,
	}
	*o.Device() = sim.Modern()
	o.Device().InboundBaseOnly = true
	return o
}

// ways are those by which h1 reaches devices that are not its own.
func ways(t *drill.Site) []way {
	return []way{
		{"h3", drill.KeyA, "a server that it shares with tenant B"},
		{"sm", ib.DefaultPKeyLimited, "the adapter of the manager"},
		{t.SwitchPort("h1", 1).Node, ib.DefaultPKeyFull, "its switch, as the full member that it is not"},
		{t.SwitchPort("h6", 1).Node, ib.DefaultPKeyFull, "the switch of h6, likewise"},
		{"spine1", ib.DefaultPKeyFull, "a spine switch, likewise"},
	}
}

// wrongClassKey returns a test for events about MADs of a host with a wrong key of a class that a device has counted.
func wrongClassKey(t *drill.Site, kind violation.Kind, host, device string) func(sm.Event) bool {
	place, reporter := t.Place(host, 1), t.GUID(device, t.EndPortOf(device))
	return drill.Is(func(e *violation.Violation) bool {
		return e.Kind == kind && e.Place == place && e.Reporter == reporter && e.Verdict == violation.Confirmed
	})
}

// refusedBy returns a test for the event about MADs with a wrong key that a device has counted.
func refusedBy(t *drill.Site, device string, kind keys.Kind) func(sm.Event) bool {
	guid := t.GUID(device, t.EndPortOf(device))
	return drill.Is(func(e *sm.ClassKeyViolation) bool { return e.GUID == guid && e.Kind == kind && e.Count > 0 })
}
