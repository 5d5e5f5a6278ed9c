package touched_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"portcullis/cmd/portcullisd/proving/touched"
	"portcullis/fabricsm/proof/reader/readertest"
	"portcullis/fabricsm/sim"
)

// disturb makes a random change, and returns what and what ends it.
func (b *bed) disturb(random *rand.Rand) (what string, end func()) {
	b.Helper()
	host := fmt.Sprintf("h%d", 1+random.IntN(10))
	at := b.stage.SwitchPort(host, 1)
	up := b.uplink(at.Node, 1)
	peer := b.stage.List.Find(at.Node).Ports[up]
	switch random.IntN(7) {
	case 0:
		b.stage.Grant(b.grant(host, 0x8202))
		return "grant", func() { b.stage.Withdraw(b.grant(host, 0x8202)) }
	case 1:
		b.must(b.stage.Fabric.Reboot(at.Node))
		return "switch rebooted", func() {}
	case 2:
		b.must(b.stage.Fabric.Reboot(peer.Peer))
		return "spine rebooted", func() {}
	case 3:
		b.must(b.stage.Fabric.Reboot(host))
		return "host rebooted", func() {}
	case 4:
		swap := func() {
			b.must(b.stage.Fabric.Swap(sim.Endpoint{Node: "h1", Port: 1}, sim.Endpoint{Node: "h7", Port: 1}))
		}
		swap()
		return "hosts swapped", swap
	case 5:
		toggle := func() { b.toggle(at, sim.Endpoint{Node: host, Port: 1}) }
		toggle()
		return "host link", func() {
			if host == "h10" {
				b.stage.Run(time.Second) // a device that comes and goes before the Subnet Manager looks is not seen
			}
			toggle()
		}
	default:
		toggle := func() {
			b.toggle(sim.Endpoint{Node: at.Node, Port: up}, sim.Endpoint{Node: peer.Peer, Port: peer.PeerPort})
		}
		toggle()
		return "uplink", toggle
	}
}

// TestReadMidway reads while a change lasts, and while the Subnet Manager does what it made necessary. What was read half done is read
// again, also if every value ends as it was.
func TestReadMidway(t *testing.T) {
	t.Parallel()
	for seed := range uint64(24) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			b := newBed(t)
			random := rand.New(rand.NewPCG(seed, 5))
			pause := func() time.Duration {
				d := time.Duration(max(0, random.IntN(3000)-1000)) * time.Millisecond / 10
				b.stage.Run(d)
				return d
			}
			for range 8 {
				old := b.stage.View()
				what, end := b.disturb(random)
				wait := pause()
				if random.IntN(2) == 0 {
					old = b.stage.View()
				}
				was := b.read(nil, nil)
				pause()
				end()
				b.settle()
				for _, line := range readertest.Differences(b.read(was, touched.Since(old, b.stage.View())), b.read(nil, nil)) {
					t.Fatalf("%s, read after %v: %s", what, wait, line)
				}
			}
		})
	}
}
