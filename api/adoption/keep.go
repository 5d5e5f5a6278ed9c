package adoption

import (
	"slices"

	"portcullis/fabricsm/ib"
)

// Keepable returns what of ports that a takeover found may be kept until a person decides, and why the rest is not, a sentence
// for each port or P_Key. What of it the ledger already has as kept by an adoption is left out without one.
func Keepable(ports []Port, site *Site) (kept []Port, problems []string) {
	at, of := map[ib.Place][]*Entry{}, map[ib.GUID][]*Entry{}
	for i := range site.Ledger {
		e := &site.Ledger[i]
		at[e.Place], of[e.GUID] = append(at[e.Place], e), append(of[e.GUID], e)
	}
	c := checker{site: site, guids: map[ib.GUID]bool{}, places: map[ib.Place]ib.GUID{}}
	for i := range ports {
		p, told := &ports[i], len(c.problems)
		rest := Port{GUID: p.GUID, Place: p.Place, Device: p.Device}
		for _, k := range p.PKeys {
			if !recorded(of[p.GUID], p.Place, k) {
				rest.PKeys = append(rest.PKeys, k)
			}
		}
		if len(rest.PKeys) == 0 {
			continue
		}
		if c.where(p); len(c.problems) > told {
			continue
		}
		if others := slices.Concat(of[p.GUID], at[p.Place]); len(others) > 0 {
			e := others[0]
			c.say("port %v at %v: port %v has P_Key %v at %v already, of %s", p.GUID, p.Place, e.GUID, e.PKey, e.Place, e.Owner)
			continue
		}
		was := rest.PKeys
		rest.PKeys = nil
		for _, k := range was {
			told := len(c.problems)
			if c.key(p.GUID, k); len(c.problems) == told {
				rest.PKeys = append(rest.PKeys, k)
			}
		}
		if len(rest.PKeys) > MaxPKeys {
			c.say("port %v: %d P_Keys were found, and %d are kept at most", p.GUID, len(rest.PKeys), MaxPKeys)
			rest.PKeys = rest.PKeys[:MaxPKeys]
		}
		if len(rest.PKeys) > 0 {
			kept = append(kept, rest)
		}
	}
	return kept, c.problems
}

// recorded reports whether the ledger has a membership.
func recorded(of []*Entry, at ib.Place, k ib.PKey) bool {
	for _, e := range of {
		if e.Place == at && e.PKey == k.Base() {
			return true
		}
	}
	return false
}
