package threats

import (
	"slices"
	"time"

	"portcullis/fabricsm/drill"
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sm/violation"
)

// everyClass is T57.
func everyClass(s *drill.Scene) {
	o := shared()
	o.Device().InboundBaseOnly = false
	t := s.Site(o)
	t.Victim("h2", "h6")
	t.Victim("h5", "h3")
	h1 := t.Attacker("h1")
	s.Tried("h1 sends a Get and a Set of each of the 256 management classes to a host of tenant B, to its switch, to a server that it shares and to the manager")
	before := t.State()
	answers := make(map[string][]mad.Class)
	t.Attack()
	for class := range 256 {
		for _, w := range []way{{to: "h2", pkey: ib.DefaultPKeyLimited}, {to: t.SwitchPort("h1", 1).Node, pkey: ib.DefaultPKeyLimited}, {to: "h3", pkey: drill.KeyA}, {to: "sm", pkey: ib.DefaultPKeyLimited}} {
			for _, attr := range []mad.AttrID{mad.AttrClassPortInfo, 0x0010, 0x0012} {
				for _, set := range []bool{false, true} {
					m := h1.Request(drill.GMP{To: w.to, PKey: w.pkey, Class: mad.Class(class), Set: set, Attr: attr, Key: ib.NewMKey(0xBAD)})
					if c := mad.Class(class); m != nil && !slices.Contains(answers[w.to], c) {
						answers[w.to] = append(answers[w.to], c)
					}
				}
			}
		}
		t.Run(10 * time.Millisecond)
	}
	for _, device := range []string{"h2", t.SwitchPort("h1", 1).Node} {
		if s.Check(len(answers[device]) == 0, "%s answers h1 in classes %v", device, answers[device]) {
			s.Stopped("no MAD of any class reaches %s: hosts are limited members of the default partition", device)
		}
	}
	for _, device := range []string{"h3", "sm"} {
		others := slices.DeleteFunc(slices.Clone(answers[device]), func(c mad.Class) bool { return c == mad.ClassPerf })
		if s.Check(len(others) == 0, "%s answers h1 in classes %v", device, others) {
			s.Stopped("%s answers h1 in class %v and no other: those that matter have keys, and baseboard management (0x05) has no agent, so no B_Key is needed", device, mad.ClassPerf)
		}
	}
	if list := drill.Changed(before, t.State()); len(list) > 0 {
		s.Check(false, "MADs of h1 changed %q", list)
	}
	place := t.Place("h1", 1)
	t.Reported(2*time.Second, "the dropped packets", drill.Is(func(e *violation.Violation) bool {
		return e.Kind == violation.BadPKey && e.Place == place && e.PKey == ib.DefaultPKeyLimited
	}))
	t.Reported(2*time.Second, "what shows no M_Key", t.WrongMKey("h1"))
	shutOut(t, "h3")
	s.Must(t.Settle(drill.SettleTime))
	inOffice(t)
}
