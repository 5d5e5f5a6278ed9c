package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/sim"
)

// strike is one fault, with its target.
type strike struct {
	what  string
	cut   cut           // what it takes out of the fabric
	hold  time.Duration // between begin and end
	begin func(context.Context) error
	end   func(context.Context) error
}

// fault is a kind of fault. Its function draws a target.
type fault struct {
	name   string
	shared bool // it needs several instances that share a store
	draw   func(*site, *rand.Rand) strike
}

// faults are all kinds.
func faults() []fault {
	return []fault{
		{"kill", false, drawKill},
		{"stop", false, drawStop},
		{"pause", false, drawPause},
		{"step-down", true, drawStepDown},
		{"member-lost", true, drawMemberLost},
		{"quorum-lost", true, drawQuorumLost},
		{"restore", false, drawRestore},
		{"disk-full", false, drawDiskFull},
		{"slow-store", false, drawSlowStore},
		{"slow-disk", false, drawSlowDisk},
		{"clock", false, drawClock},
		{"network", false, drawNetwork},
		{"manager-cable", false, drawManagerCable},
		{"leaf-power", false, drawLeafPower},
		{"spine-power", false, drawSpinePower},
		{"uplink", false, drawUplink},
		{"rail-flap", false, drawRailFlap},
		{"split-restart", false, drawSplitRestart},
	}
}

func faultNames() (names []string) {
	for _, f := range faults() {
		names = append(names, f.name)
	}
	return names
}

// chosen returns the kinds whose names are in a list with commas between; where the list is
// empty, all that so many instances can have.
func chosen(list string, instances int) (out []fault, err error) {
	if list == "" {
		return slices.DeleteFunc(faults(), func(f fault) bool { return f.shared && instances == 1 }), nil
	}
	for name := range strings.SplitSeq(list, ",") {
		i := slices.Index(faultNames(), name)
		if i < 0 {
			return nil, fmt.Errorf("--only: there is no fault %q; want %s", name, strings.Join(faultNames(), ", "))
		}
		f := faults()[i]
		if f.shared && instances == 1 {
			return nil, fmt.Errorf("--only: fault %s needs %d instances: --instances %d", name, maxManagers, maxManagers)
		}
		out = append(out, f)
	}
	return out, nil
}

func nothing(context.Context) error { return nil }

func pick[T any](r *rand.Rand, list []T) T { return list[r.IntN(len(list))] }

// seconds draws a time between two numbers of seconds, short ones more often than long ones.
func seconds(r *rand.Rand, from, to int) time.Duration {
	part := r.Float64()
	return time.Duration(float64(from*1000)+part*part*float64((to-from)*1000)) * time.Millisecond
}

func drawManagerCable(s *site, r *rand.Rand) strike {
	n, what := s.target(r)
	node, hold := s.plan.managers[n.number], seconds(r, 1, 15)
	peer, port := s.cabled(node, 1)
	return strike{
		what: fmt.Sprintf("cable of %s, adapter of %s, out for %v", node, what, hold), hold: hold, cut: cut{{Node: node}: true},
		begin: func(context.Context) error { return s.fabric.Unlink(node, 1) },
		end:   func(context.Context) error { return s.fabric.Relink(node, 1, peer, port) },
	}
}

func drawLeafPower(s *site, r *rand.Rand) strike {
	return s.power(pick(r, s.plan.leaves), seconds(r, 1, 15))
}

func drawSpinePower(s *site, r *rand.Rand) strike {
	return s.power(pick(r, s.plan.spines), seconds(r, 1, 15))
}

func (s *site) power(node string, hold time.Duration) strike {
	return strike{
		what: fmt.Sprintf("%s without power for %v", node, hold), hold: hold, cut: cut{{Node: node}: true},
		begin: func(context.Context) error { return s.fabric.PowerOff(node) },
		end:   func(context.Context) error { return s.fabric.PowerOn(node) },
	}
}

func drawUplink(s *site, r *rand.Rand) strike {
	leaf, port, hold := pick(r, s.plan.leaves), firstUplink+ib.PortNum(r.IntN(spines)), seconds(r, 1, 10)
	peer, peerPort := s.cabled(leaf, port)
	return strike{
		what: fmt.Sprintf("cable between %s and %s out for %v", leaf, peer, hold), hold: hold,
		cut:   cut{{Node: leaf, Port: port}: true, {Node: peer, Port: peerPort}: true},
		begin: func(context.Context) error { return s.fabric.Unlink(leaf, port) },
		end:   func(context.Context) error { return s.fabric.Relink(leaf, port, peer, peerPort) },
	}
}

func drawRailFlap(s *site, r *rand.Rand) strike {
	a := pick(r, s.hosts).hcas[r.IntN(rails)]
	times := 1 + r.IntN(8)
	return strike{
		what: fmt.Sprintf("cable of %s flaps %d times", a.node, times), cut: cut{{Node: a.node}: true},
		begin: func(ctx context.Context) error {
			for range times {
				if err := s.fabric.Bounce(a.node, 1); err != nil {
					return err
				}
				if err := rest(ctx, seconds(r, 0, 1)); err != nil {
					return err
				}
			}
			return nil
		},
		end: nothing,
	}
}

// drawSplitRestart cuts a leaf off every spine and restarts an instance meanwhile.
func drawSplitRestart(s *site, r *rand.Rand) strike {
	leaf, hold := pick(r, s.plan.leaves), seconds(r, 5, 15)
	n, which := s.target(r)
	c, peers := cut{}, map[ib.PortNum]sim.Endpoint{}
	for i := range spines {
		port := firstUplink + ib.PortNum(i)
		peer, peerPort := s.cabled(leaf, port)
		peers[port] = sim.Endpoint{Node: peer, Port: peerPort}
		c[sim.Endpoint{Node: leaf, Port: port}], c[sim.Endpoint{Node: peer, Port: peerPort}] = true, true
	}
	each := func(f func(port ib.PortNum) error) error {
		var errs []error
		for i := range spines {
			errs = append(errs, f(firstUplink+ib.PortNum(i)))
		}
		return errors.Join(errs...)
	}
	return strike{
		what: fmt.Sprintf("%s cut off every spine for %v, and %s killed and started meanwhile", leaf, hold, which), hold: hold, cut: c,
		begin: func(context.Context) error {
			n.kill()
			return errors.Join(each(func(p ib.PortNum) error { return s.fabric.Unlink(leaf, p) }), n.start())
		},
		end: func(context.Context) error {
			return each(func(p ib.PortNum) error { return s.fabric.Relink(leaf, p, peers[p].Node, peers[p].Port) })
		},
	}
}

// cabled returns where the plan has the other end of a cable.
func (s *site) cabled(node string, port ib.PortNum) (peer string, peerPort ib.PortNum) {
	p := s.plan.find(node).Ports[port]
	return p.Peer, p.PeerPort
}

// rest waits, or returns the cause when ctx ends.
func rest(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
