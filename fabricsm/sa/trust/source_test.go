package trust_test

import (
	"testing"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sa/portindex"
	"portcullis/fabricsm/sa/trust"
)

func TestActsFor(t *testing.T) {
	other := &portindex.EndPort{Port: 9, GUID: otherGUID, LID: 12}
	siblings := &portindex.EndPort{Port: 5, GUID: hostGUID, Aliases: []ib.GUID{aliasGUID, aliasGUID + 1}, LID: 7}
	for _, tt := range []struct {
		name  string
		as    ib.GUID
		owner *portindex.EndPort
		guid  ib.GUID
		want  trust.Verdict
	}{
		{"a port for itself", hostGUID, siblings, hostGUID, trust.OK},
		{"a port for its alias", hostGUID, siblings, aliasGUID, trust.OK},
		{"an alias for itself", aliasGUID, siblings, aliasGUID, trust.OK},
		{"an alias for its sibling", aliasGUID, siblings, aliasGUID + 1, trust.Sibling},
		{"an alias for its port", aliasGUID, siblings, hostGUID, trust.Sibling},
		{"a port for another", hostGUID, other, otherGUID, trust.Proxy},
		{"an alias for another port", aliasGUID, other, otherGUID, trust.Proxy},
		{"for a GUID that nobody has", hostGUID, nil, 0x77, trust.Proxy},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for _, lax := range []string{"", "trusted", "no model", "proxies"} {
				opts := trust.DefaultOptions()
				opts.Model, opts.ProxyUntrusted = lax != "no model", lax == "proxies"
				a := portindex.Asker{Port: 5, As: tt.as, LID: 7, Trusted: lax == "trusted"}
				want := tt.want
				if lax != "" {
					want = trust.OK
				}
				if got := newGuard(t, opts).ActsFor(&a, tt.owner, tt.guid); got != want {
					t.Errorf("%s: %v, want %v", lax, got, want)
				}
			}
		})
	}
}

// TestUnusedAliases: the book has GUID 0 for unused aliases, and a GRH with GUID 0 names no port.
func TestUnusedAliases(t *testing.T) {
	e := &portindex.EndPort{Port: 5, GUID: hostGUID, Aliases: []ib.GUID{0, aliasGUID, 0}, LID: 7}
	if as, spoofed := trust.As(e, true, ib.MakeGID(ib.DefaultPrefix, 0), ib.DefaultPrefix); as != hostGUID || !spoofed {
		t.Errorf("GUID 0: as %v, spoofed %v", as, spoofed)
	}
	if as, spoofed := trust.As(e, true, ib.MakeGID(ib.DefaultPrefix, aliasGUID), ib.DefaultPrefix); as != aliasGUID || spoofed {
		t.Errorf("the alias: as %v, spoofed %v", as, spoofed)
	}
}

// TestThreshold counts in windows of 100 ms, ports and aliases each by themselves.
func TestThreshold(t *testing.T) {
	opts := trust.DefaultOptions()
	opts.Threshold = 3
	g, e := newGuard(t, opts), host()
	ask := func(at time.Duration, as ib.GUID, key uint64) trust.Verdict {
		m := request(mad.AttrPathRecord, mad.MethodGet, key)
		_, v := g.Check(start.Add(at), &trust.Packet{MAD: m, LID: 7, GRH: true, SGID: ib.MakeGID(ib.DefaultPrefix, as)}, trust.Source{Port: e})
		return v
	}
	for window := range 3 {
		for i := range 6 {
			at := time.Duration(window)*100*time.Millisecond + time.Duration(i)*10*time.Millisecond
			want := trust.OK
			if i >= 3 {
				want = trust.TooOften
			}
			for _, as := range []ib.GUID{hostGUID, aliasGUID} {
				if got := ask(at, as, 0); got != want {
					t.Errorf("window %d, request %d as %v: %v, want %v", window, i, as, got, want)
				}
			}
		}
	}
	// A wrong key, and a GID of another, count for the port: they are no way around.
	for i, as := range []ib.GUID{hostGUID, otherGUID, hostGUID} {
		if got := ask(time.Second, as, third); got != trust.WrongKey {
			t.Errorf("wrong key %d: %v", i, got)
		}
	}
	if got := ask(time.Second, otherGUID, 0); got != trust.TooOften {
		t.Errorf("after three wrong keys: %v, want %v", got, trust.TooOften)
	}
	if got := ask(-time.Hour, hostGUID, 0); got != trust.OK {
		t.Errorf("a clock that went backwards: %v", got)
	}
}

func TestLimits(t *testing.T) {
	opts := trust.DefaultOptions()
	opts.MaxGroups, opts.MaxServices, opts.MaxSubscriptions = 2, 1, 0
	l := trust.NewLimits()
	room := func(r trust.Registration, owner ib.GUID, trusted bool, want trust.Verdict) {
		t.Helper()
		if got := l.Room(&opts, r, owner, trusted); got != want {
			t.Errorf("registration %d of %v, trusted %v, who has %d: %v, want %v", r, owner, trusted, l.Count(r, owner), got, want)
		}
	}
	room(trust.Groups, hostGUID, false, trust.OK)
	l.Add(trust.Groups, hostGUID)
	room(trust.Groups, hostGUID, false, trust.OK)
	l.Add(trust.Groups, hostGUID)
	room(trust.Groups, hostGUID, false, trust.TooManyGroups)
	room(trust.Groups, hostGUID, true, trust.OK)
	room(trust.Groups, aliasGUID, false, trust.OK)
	room(trust.Services, hostGUID, false, trust.OK)
	l.Remove(trust.Groups, hostGUID)
	room(trust.Groups, hostGUID, false, trust.OK)
	l.Add(trust.Services, hostGUID)
	room(trust.Services, hostGUID, false, trust.TooManyServices)
	for range 1000 {
		l.Add(trust.Subscriptions, hostGUID)
	}
	room(trust.Subscriptions, hostGUID, false, trust.OK)
	opts.MaxSubscriptions = 1000
	room(trust.Subscriptions, hostGUID, false, trust.TooManySubscriptions)
	l.Remove(trust.Services, hostGUID)
	l.Remove(trust.Services, hostGUID)
	if got := l.Count(trust.Services, hostGUID); got != 0 {
		t.Errorf("removed once too often: %d left", got)
	}
}
