package sim_test

import (
	"testing"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sim"
)

// Queue pair 1 accepts only its own Q_Key. A packet with another one is counted and reported (trap 258).
func TestQKeys(t *testing.T) {
	for _, tt := range []struct {
		name string
		qp   uint32
		qkey uint32
		raw  bool
		want sim.Fate
	}{
		{"the right one", 1, 0x8001_0000, false, sim.Delivered},
		{"none said", 1, 0, false, sim.Delivered},
		{"a wrong one", 1, 0x1234, false, sim.QKeyRefused},
		{"of another queue pair", 7, 0x1234, false, sim.Delivered},
		{"a raw packet has none", 1, 0x1234, true, sim.Delivered},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f, s := managed(t, sim.Device{})
			r, err := f.Inject(sim.Endpoint{Node: "sm", Port: 1}, sim.Data{
				SLID: 1, DLID: 2, PKey: ib.DefaultPKeyFull, SourceQP: 5, DestQP: tt.qp, QKey: tt.qkey, Raw: tt.raw,
			})
			if err != nil || r.Fate != tt.want {
				t.Fatalf("%v, %v; want %v", r.Fate, err, tt.want)
			}
			numbers, packets := traps(t, s)
			refused := tt.want == sim.QKeyRefused
			if got := f.PortInfo("h1", 1).QKeyViolations; got != 1 && refused || got != 0 && !refused {
				t.Errorf("%d violations", got)
			}
			if !refused {
				if len(numbers) != 0 {
					t.Errorf("traps %v", numbers)
				}
				return
			}
			var n mad.Trap257
			if len(packets) != 1 || mad.Decode(packets[0].MAD.Data(), &n) != nil || n.TrapNumber != mad.TrapBadQKey || n.Key != 0x1234 || n.LIDADDR1 != 1 || n.QP1 != 5 {
				t.Errorf("traps %v: %+v", numbers, n)
			}
		})
	}
}
