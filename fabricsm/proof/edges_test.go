package proof_test

import (
	"slices"
	"testing"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/proof"
)

// edge returns what passes at a host's port.
func (b *bed) edge(t *testing.T, name string) proof.Edge {
	t.Helper()
	at := b.Devices[b.byName[name]].Ports[1].Cable
	for _, e := range prove(t, b.Fabric).Edges(proof.Both) {
		if e.At == at {
			return e
		}
	}
	t.Fatalf("no edge is at %v", at)
	return proof.Edge{}
}

// At an edge passes what both tables let pass.
func TestEdges(t *testing.T) {
	full, limited := []ib.PKey{keyOf(0).Full()}, []ib.PKey{keyOf(0).Limited()}
	both := []ib.PKey{limited[0], full[0]}
	for _, tt := range []struct {
		name           string
		adapter, front []ib.PKey
		sends, gets    []ib.PKey
	}{
		{"both tables", full, full, full, both},
		{"the adapter alone", full, nil, nil, nil},
		{"the switch alone", nil, full, nil, nil},
		{"limited in both", limited, limited, limited, full},
		// What the adapter sends is refused; packets of full members arrive.
		{"only inwards", full, limited, nil, full},
	} {
		b := small(t)
		b.holds("h2", tt.adapter, tt.front)
		got := b.edge(t, "h2")
		if !slices.Equal(got.Sends, tt.sends) || !slices.Equal(got.Receives, tt.gets) || got.Owner.Kind != proof.Tenant || b.port(got.Adapter) != &b.Devices[b.byName["h2"]].Ports[1] {
			t.Errorf("%s: %+v, want that it sends %v and receives %v", tt.name, got, tt.sends, tt.gets)
		}
	}
	b := small(t)
	b.holds("h2", full, full)
	b.front(b.byName["h2"]).PKeys.How = proof.NotRead
	if got := b.edge(t, "h2"); len(got.Sends)+len(got.Receives) > 0 {
		t.Errorf("a table that was not read: %+v", got)
	}
	b = small(t)
	at := b.stranger(proof.Device{Name: "stranger", Type: ib.NodeCA, GUID: 0x99})
	front := b.port(b.port(at).Cable)
	front.Check = proof.Known(proof.Checks{})
	for _, e := range prove(t, b.Fabric).Edges(proof.Both) {
		if e.Owner == undeclared && len(e.Sends)+len(e.Receives) > 0 {
			t.Errorf("a port that checks nothing lists %+v", e)
		}
	}
}

// ByRoutes names pairs whose packets are stopped by forwarding tables alone, each direction by itself.
func TestByRoutes(t *testing.T) {
	b := small(t)
	if got := prove(t, b.Fabric).ByRoutes(proof.Both); len(got) > 0 {
		t.Errorf("a clean fabric: %v", got)
	}
	// A port of t0 also is in the partition of t1.
	thief, key := b.byName["h2"], keyOf(1).Full()
	if owner := b.Devices[thief].Ports[1].Owner; owner != t0 {
		t.Fatalf("h2 belongs to %v", owner)
	}
	b.Devices[thief].Ports[1].PKeys.Value = append(b.Devices[thief].Ports[1].PKeys.Value, key)
	b.front(thief).PKeys.Value = append(b.front(thief).PKeys.Value, key)
	if got := prove(t, b.Fabric); len(got.ByRoutes(proof.Both)) > 0 || got.Pair(t0, t1)[proof.Both] != proof.Leaks {
		t.Fatalf("with routes: %v, %v", got.Pair(t0, t1), got.ByRoutes(proof.Both))
	}
	for _, sw := range b.switches {
		d := &b.Devices[sw]
		clear(d.MFT.Value)
		d.MulticastDefaults = proof.Known(proof.Defaults{Primary: ib.NoPort, NotPrimary: ib.NoPort})
		for lid := range d.LFT.Value {
			if ib.LID(lid) != b.lid(thief) {
				d.LFT.Value[lid] = ib.NoPort
			}
		}
	}
	got := prove(t, b.Fabric)
	if want := []proof.Pair{{From: t0, To: t1}}; !slices.Equal(got.ByRoutes(proof.Both), want) || got.Pair(t0, t1)[proof.Both] != proof.Leaks {
		t.Errorf("routes to h2 alone: %v by routes, want %v; %v", got.ByRoutes(proof.Both), want, got.Pair(t0, t1))
	}
	for _, sw := range b.switches {
		for lid := range b.Devices[sw].LFT.Value {
			b.Devices[sw].LFT.Value[lid] = ib.NoPort
		}
	}
	got = prove(t, b.Fabric)
	if want := []proof.Pair{{From: t0, To: t1}, {From: t1, To: t0}}; !slices.Equal(got.ByRoutes(proof.Both), want) || got.Pair(t0, t1)[proof.Both] != proof.Isolated {
		t.Errorf("no routes: %v by routes, want %v; %v", got.ByRoutes(proof.Both), want, got.Pair(t0, t1))
	}
}
