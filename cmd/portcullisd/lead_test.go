package main

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	v1 "portcullis/api/v1"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sim"
	"portcullis/fabricsm/transport/ibsim/ibsimtest"
	"portcullis/packaging/testenv"
)

// trio is a repair whose service has grown into three instances, each on an adapter of its
// own.
type trio struct {
	*repair
	all map[string]*instance // by the node they are at
}

// newTrio has the service of a repair grow. Instances are called by their nodes.
func newTrio(r *repair, others ...string) *trio {
	r.t.Helper()
	urls := freeURLs(r.t, 2*(1+len(others)))
	x := &trio{repair: r, all: map[string]*instance{"sm": {t: r.t, name: "sm", dir: r.dir, peer: urls[0], client: urls[1], api: r.olga}}}
	for i, node := range others {
		dir, at := sibling(r.t, r.dir, r.address)
		edit(r.t, dir, map[string]string{"ibsim:" + r.client.Socket + "/sm": "ibsim:" + r.client.Socket + "/" + node})
		x.all[node] = &instance{t: r.t, name: node, dir: dir, peer: urls[2*i+2], client: urls[2*i+3], api: operator(r.t, dir, at)}
	}
	first := x.all["sm"]
	r.d.stop()
	first.cluster("init", "--name", "sm", "--peer", first.peer, "--client", first.client)
	first.start()
	x.leads("sm")
	for _, node := range others {
		first.invite(x.all[node], "invite")
	}
	first.voting(1 + len(others))
	return x
}

// leads waits until an instance manages a settled fabric, and every one says so.
func (x *trio) leads(node string) {
	x.t.Helper()
	eventually(x.t, node+" leads a settled fabric", func() (bool, string) {
		for name, i := range x.all {
			if i.process == nil || i.process.cmd.ProcessState != nil {
				continue
			}
			s, err := i.api.SM().Get(x.t.Context())
			if err != nil || s.Leader != node || !s.Settled || s.GUID != x.list.Find(node).PortGUID(1) {
				return false, fmt.Sprintf("%s says %+v, %v", name, s, err)
			}
		}
		return true, ""
	})
}

// leader returns the node of the instance that leads, which is not one of some.
func (x *trio) leader(not ...string) (node string) {
	x.t.Helper()
	eventually(x.t, "another leader", func() (bool, string) {
		for name, i := range x.all {
			if i.process == nil || i.process.cmd.ProcessState != nil || slices.Contains(not, name) {
				continue
			}
			s, err := i.api.SM().Get(x.t.Context())
			if err == nil && x.all[s.Leader] != nil && !slices.Contains(not, s.Leader) && s.Settled && s.GUID == x.list.Find(s.Leader).PortGUID(1) {
				node = s.Leader
				return true, ""
			}
			return false, fmt.Sprintf("%s says %+v, %v", name, s, err)
		}
		return false, "none runs"
	})
	return node
}

// since returns what changed in the counts of Sets.
func since(now, before map[string]sim.Sets) (out sim.Sets) {
	out.ByAttr = map[mad.AttrID]uint64{}
	for node, s := range now {
		out.LIDs += s.LIDs - before[node].LIDs
		out.Renewals += s.Renewals - before[node].Renewals
		for attr, n := range s.ByAttr {
			if d := n - before[node].ByAttr[attr]; d > 0 {
				out.ByAttr[attr] += d
			}
		}
	}
	return out
}

// TestLeaderReplaced has three instances on adapters of their own lead one after the
// other: a leader is killed, one is paused for longer than its lease, one is asked to step
// down, one is stopped. Each time another one manages the fabric with no LID, route or
// P_Key written, no client asked to register again and no packet lost, and smpquery and
// saquery agree; the paused one wakes and writes nothing. Every instance answers the whole
// API.
func TestLeaderReplaced(t *testing.T) {
	t.Parallel()
	ibsimtest.Need(t, "smpquery")
	ibsimtest.Need(t, "saquery")
	r := newRepair(t, "h1", "h2")
	r.admit()
	r.settled()
	x := newTrio(r, "h4", "h5")
	managers := []string{"sm", "h4", "h5"}

	// Each leads once, so that all have shown where they are: of two that could follow, one
	// is stopped meanwhile.
	leads := "sm"
	for _, next := range managers[1:] {
		for _, other := range managers {
			if other != leads && other != next {
				x.all[other].process.stop()
				x.stepDown(leads)
				if got := x.leader(leads, other); got != next {
					t.Fatalf("%s leads after %s, want %s", got, leads, next)
				}
				x.all[other].start()
			}
		}
		leads = next
	}
	stop := x.traffic("h1", "h2")

	for _, how := range []struct {
		name string
		end  func(i *instance) (back func())
	}{
		{"killed", func(i *instance) func() { i.process.kill(); return i.start }},
		{"paused", func(i *instance) func() { return i.pause() }},
		{"asked to step down", func(i *instance) func() { x.stepDown(i.name); return func() {} }},
		{"stopped", func(i *instance) func() { i.process.stop(); return i.start }},
	} {
		devices, tools, before := x.devices(managers...), x.toolsSee("h1", "h2"), x.fab.Sets()
		began := time.Now()
		back := how.end(x.all[leads])
		next := x.leader(leads)
		t.Logf("%s %s: %s leads a settled fabric after %v", leads, how.name, next, time.Since(began).Round(10*time.Millisecond))
		x.answers(next)
		sets := since(x.fab.Sets(), before)
		if sets.LIDs+sets.Renewals > 0 || sets.ByAttr[mad.AttrLinearForwardingTable]+sets.ByAttr[mad.AttrPKeyTable]+sets.ByAttr[mad.AttrMulticastForwardingTable] > 0 {
			t.Errorf("%s %s: %s wrote %+v", leads, how.name, next, sets)
		}
		old := x.fab.Sets()[leads]
		back()
		x.leads(next)
		if d := cmp.Diff(old, x.fab.Sets()[leads]); d != "" {
			t.Errorf("%s wrote after it was %s (-before +after):\n%s", leads, how.name, d)
		}
		if d := cmp.Diff(devices, x.devices(managers...)); d != "" {
			t.Errorf("%s %s: devices were changed (-before +after):\n%s", leads, how.name, d)
		}
		if d := cmp.Diff(tools, x.toolsSee("h1", "h2")); d != "" {
			t.Errorf("%s %s: smpquery sees (-before +after):\n%s", leads, how.name, d)
		}
		for name := range x.hosts {
			phase(t, x.all[next].api, name, v1.PhaseAdmitted)
		}
		leads = next
	}
	if sent, lost := stop(); sent == 0 || lost > 0 {
		t.Errorf("%d of %d packets between admitted hosts were lost", lost, sent)
	}

	// A leader whose own cable is out has another one lead.
	at := x.list.Find(leads).Ports[1]
	if err := x.fab.Unlink(leads, 1); err != nil {
		t.Fatal(err)
	}
	next := x.leader(leads)
	if err := x.fab.Relink(leads, 1, at.Peer, at.PeerPort); err != nil {
		t.Fatal(err)
	}
	x.leads(next)
	x.answers(next)
}

// stepDown asks an instance to have another one lead.
func (x *trio) stepDown(node string) {
	x.t.Helper()
	for name, i := range x.all { // whichever is asked
		if name == node || i.process.cmd.ProcessState != nil {
			continue
		}
		if err := i.api.SM().StepDown(x.t.Context(), v1.StepDown{Reason: "a test of " + node}); err != nil {
			x.t.Fatalf("step down, asked of %s: %v", name, err)
		}
		return
	}
}

// pause stops the processes of an instance, as a machine that is suspended does, and
// returns what lets them go on.
func (m *instance) pause() (resume func()) {
	m.t.Helper()
	pid := m.process.cmd.Process.Pid
	testenv.Halt(m.t, pid)
	return func() { must(m.t, syscall.Kill(pid, syscall.SIGCONT)) }
}

// answers requires subnet administration at the leader to answer, and every instance to answer the whole API.
func (x *trio) answers(node string) {
	x.t.Helper()
	eventually(x.t, "an answer of subnet administration at "+node, func() (bool, string) {
		out, err := x.client.Diag(x.t.Context(), "h1", "saquery", "-t", "2000", "PR", "--src-to-dst", fmt.Sprintf("%d:%d", x.fab.PortInfo("h1", 1).LID, x.fab.PortInfo("h2", 1).LID))
		return err == nil, string(out)
	})
	for name, i := range x.all {
		if i.process == nil || i.process.cmd.ProcessState != nil || stopped(i) {
			continue
		}
		o, err := i.api.Fabric().Overview(x.t.Context())
		if err != nil || o.Nodes.Switches+o.Nodes.CAs != len(x.list.Nodes) {
			x.t.Errorf("%s shows the fabric as %+v, %v", name, o, err)
		}
	}
}

// stopped reports whether the process of an instance is paused.
func stopped(i *instance) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", i.process.cmd.Process.Pid))
	return err == nil && strings.Contains(string(stat), ") T ")
}
