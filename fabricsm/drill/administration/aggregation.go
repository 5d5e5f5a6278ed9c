package administration

import (
	"time"

	"portcullis/fabricsm/drill"
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sa/trust"
	"portcullis/fabricsm/sim"
)

// keyAggregation is the P_Key of a partition in which switches reduce data for tenants.
const keyAggregation ib.PKey = 0x800A

// amKeyInfo is the attribute of aggregation management that holds its key.
const amKeyInfo mad.AttrID = 0x0010

// Aggregation is T12. The simulator has no agent of class 0x0B: the packets that reach a device stand for those that its
// agent would see. There the AM_Key of the aggregation manager decides, which is not ours.
func Aggregation(s *drill.Scene) {
	o := named(s)
	o.Tenants = drill.TwoTenants()
	o.Shared = []drill.Shared{{PKey: keyAggregation, Servers: []string{"h3", "h4"}, Clients: []string{"h1", "h5", "h2"}}}
	t := s.Site(o)
	t.Victim("h2", "h6")
	t.Customer("h5", "h1")
	t.Victims = append(t.Victims, t.Flow("h2", "h4", keyAggregation.Limited()), t.Flow("h4", "h2", keyAggregation))
	call := func(key ib.ServiceKey) func(*mad.ServiceRecord) {
		return func(r *mad.ServiceRecord) {
			copy(r.ServiceName[:], aggregationName)
			r.ServicePKey, r.ServiceKey = keyAggregation, key
		}
	}
	t.Client("h3").Answered(offer(t, "h3", call(nameKey())), "it says with the key that it is the aggregation manager")
	h1, h2 := t.Client("h1"), t.Client("h2")
	finds(h2, aggregationName)
	s.Tried("h1 of tenant A says that it is the aggregation manager, without the key of that name and with others, and takes back that h3 is it")
	t.Attack()
	held := true
	for _, key := range []ib.ServiceKey{{}, ib.NewServiceKey([16]byte{1})} {
		held = h1.Silent(offer(t, "h1", call(key)), "it says that it is the aggregation manager") && held
		held = h1.Silent(offer(t, "h3", call(key)), "it changes what h3 says") && held
	}
	held = h1.Silent(withdraw(t, "h3", 1, keyAggregation, nameKey()), "it takes back what h3 says") && held
	if _, one := finds(h2, aggregationName); held && one {
		s.Stopped("who says that it is the aggregation manager shows the key of that name, and clients find that one alone")
	}
	t.Reported(time.Second, "that h1 does not have the key of the name", t.Dropped("h1", trust.WrongServiceKey))
	aggregationMADs(t)
	s.Tried("h1 sends data to h2 of tenant B by the partition in which both use aggregation nodes")
	for _, key := range []ib.PKey{keyAggregation.Limited(), keyAggregation} {
		if r := t.Send("h1", "h2", key); s.Check(r.Fate != sim.Delivered, "a packet of h1 with P_Key %v reached h2", key) {
			s.Stopped("with %v: %v", key, r.Fate)
		}
	}
}

// aggregationMADs is the part of T12 with MADs of aggregation management.
func aggregationMADs(t *drill.Site) {
	s := t.Scene
	hears := make(map[string]*sim.Station)
	for _, h := range []string{"h2", "h6", "h8", "h3", "h4"} {
		at, err := t.Fabric.Station(h, true)
		s.Must(err)
		hears[h] = at
	}
	heard := func(h string) (n int) {
		for _, p := range hears[h].Take(nil) {
			if p.MAD.Class() == mad.ClassVendorAM {
				n++
			}
		}
		return n
	}
	s.Tried("h1 sends MADs of aggregation management, class 0x0B, to hosts that have nothing to do with it, and h7, which uses no aggregation, to the manager h3 and the aggregation node h4, with each P_Key")
	keys := []ib.PKey{drill.KeyA, drill.KeyB, drill.KeyB.Limited(), keyAggregation, keyAggregation.Limited(), ib.DefaultPKeyFull, ib.DefaultPKeyLimited}
	held := true
	for _, w := range []struct {
		from string
		to   []string
	}{{"h1", []string{"h2", "h6", "h8"}}, {"h7", []string{"h2", "h3", "h4"}}} {
		a := t.Attacker(w.from)
		for _, to := range w.to {
			for _, key := range keys {
				for _, set := range []bool{false, true} {
					a.Request(drill.GMP{To: to, PKey: key, Class: mad.ClassVendorAM, Set: set, Attr: amKeyInfo})
				}
				held = s.Check(heard(to) == 0, "a MAD of aggregation management of %s reaches %s with P_Key %v", w.from, to, key) && held
			}
		}
		a.At.Close()
	}
	if held {
		s.Stopped("aggregation nodes and their manager are reached by those ports alone that share a partition with them, and no other port is reached at all")
	}
	t.Reported(2*time.Second, "the dropped packets of h1", t.PKeyViolation("h1", keys...))
	t.Reported(2*time.Second, "the dropped packets of h7", t.PKeyViolation("h7", keys...))

	h1 := t.Attacker("h1")
	defer h1.At.Close()
	h1.Request(drill.GMP{To: "h4", PKey: keyAggregation.Limited(), Class: mad.ClassVendorAM, Set: true, Attr: amKeyInfo})
	if s.Check(heard("h4") == 1, "a MAD of h1, which uses aggregation, does not reach the aggregation node, so nothing is proven") {
		s.Stopped("not stopped here: who uses aggregation nodes reaches their agents, which obey each sender with the AM_Key that the aggregation manager set; a partition of its own for each tenant keeps tenants from nodes of others")
	}
}
