package sm_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/sim"
	"portcullis/fabricsm/sm"
	"portcullis/fabricsm/transport"
)

// TestOwnCable pulls the own cable of the Subnet Manager and puts it back, again and again, while the intent changes and links
// of hosts near it go down and up. Answers take as long as on a large fabric. No switch may lose a route meanwhile, and shortly
// afterwards, long before the audit has read all ports, every link is Active. Each seed takes a second. With 4 and 6 a switch
// loses a route if new tables do not wait for nodes that come back; with 0 to 3 it does not.
func TestOwnCable(t *testing.T) {
	t.Parallel()
	const first = 4
	for seed := uint64(first); seed < first+*pulls; seed++ {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			t.Parallel()
			newCableTest(t, seed).run()
		})
	}
}

// cableTest is one run.
type cableTest struct {
	*env
	rnd     *rand.Rand
	hosts   []endPort
	bounced map[string]bool // their links may be down
}

func newCableTest(t *testing.T, seed uint64) *cableTest {
	cfg := keyed(t)
	cfg.AnswersEarly, cfg.IntentWait = seed%2 == 0, time.Second
	l := tree(t, 324, 36)
	c := &cableTest{env: newEnv(t, l, sim.Options{Seed: seed, LoseSilently: true}, cfg, seed), rnd: rand.New(rand.NewPCG(seed, 3)), hosts: hosts(l), bounced: map[string]bool{}}
	return c
}

func (c *cableTest) run() {
	c.start()
	c.change()
	c.mustSettle(10 * time.Second)
	c.slow = func(*transport.Packet) time.Duration { return time.Duration(c.rnd.Int64N(int64(4 * time.Millisecond))) }
	c.watchRoutes()
	for range 4 {
		c.must(c.fab.Unplug("sm"))
		c.pass([]time.Duration{400 * time.Millisecond, 2 * time.Second}[c.rnd.IntN(2)])
		c.change()
		c.must(c.fab.Restore("sm", ib.NoPort))
		c.pass(100 * time.Millisecond)
		h := &c.hosts[c.rnd.IntN(17)]
		c.bounced[h.node.Name] = true
		c.must(c.fab.Bounce(h.node.Name, h.num))
		for range 40 {
			c.pass(50 * time.Millisecond)
			c.change()
		}
	}
	c.env.run(3 * time.Second)
	c.mustSettle(20 * time.Second)
	c.env.run(5 * time.Second)
	clear(c.bounced)
	for i := range c.hosts {
		h := &c.hosts[i]
		if s := c.fab.PortInfo(h.node.Name, h.num).PortState; s != ib.PortActive {
			c.t.Errorf("%s is %v", h.node.Name, s)
		}
		for k := range c.hosts {
			c.judgeRoute(h, &c.hosts[k])
		}
	}
}

// watchRoutes judges some routes again and again.
func (c *cableTest) watchRoutes() {
	last := c.now
	c.onStep = func() {
		if c.now.Sub(last) < 5*time.Millisecond {
			return
		}
		last = c.now
		for range 20 {
			c.judgeRoute(&c.hosts[c.rnd.IntN(len(c.hosts))], &c.hosts[c.rnd.IntN(len(c.hosts))])
		}
	}
}

func (c *cableTest) judgeRoute(a, b *endPort) {
	if a == b || c.bounced[a.node.Name] || c.bounced[b.node.Name] {
		return
	}
	if _, err := c.fab.Route(c.fab.PortInfo(a.node.Name, a.num).LID, c.fab.PortInfo(b.node.Name, b.num).LID); err != nil {
		c.t.Fatalf("after %v, %s to %s: %v", c.now.Sub(epoch), a.node.Name, b.node.Name, err)
	}
}

// change changes the intent.
func (c *cableTest) change() {
	in := sm.Intent{Revision: c.intent.Revision + 1}
	for i := range c.hosts {
		if c.rnd.IntN(4) > 0 {
			in.Grants = append(in.Grants, c.hosts[i].grant(ib.PKey(0x8001+i%3)))
		}
	}
	c.wantChanged(in)
}

// pass lets time pass, and some more things happen.
func (c *cableTest) pass(most time.Duration) {
	c.env.run(time.Duration(c.rnd.Int64N(int64(most))))
	for range c.rnd.IntN(150) {
		c.next(c.now.Add(time.Millisecond))
	}
}

func (c *cableTest) must(err error) {
	if err != nil {
		c.t.Fatal(err)
	}
	c.arrive(c.st.Take(nil))
}
