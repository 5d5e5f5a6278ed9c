package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	v1 "portcullis/api/v1"
	"portcullis/cmd/portcullisd/cluster"
	"portcullis/fabricsm/transport/ibsim/ibsimtest"
)

// TestClusterRecovered follows operations.md for the permanent loss of most members. Two of three instances that manage a
// fabric are destroyed, the third is made a cluster of its own, its state is reviewed, and it grows into three again. No
// packet is lost, no device is changed, and a lost one that comes back with its records is refused and writes nothing. That
// devices get other M_Keys, which the lost ones do not know, is judged by "make chaos".
func TestClusterRecovered(t *testing.T) {
	t.Parallel()
	ibsimtest.Need(t, "smpquery")
	r := newRepair(t, "h1", "h2")
	r.admit()
	r.settled()
	x := newTrio(r, "h4", "h5")
	left, lost := x.all["sm"], []*instance{x.all["h4"], x.all["h5"]}
	// Each must have led once, so that all have shown where they are.
	x.leadOnce()
	managers := []string{"sm", "h4", "h5"}
	stop := x.traffic("h1", "h2")
	recover := func(args ...string) (string, error) { return left.try(append([]string{"recover"}, args...)...) }
	refused := func(why, want string, args ...string) {
		t.Helper()
		if out, err := recover(args...); err == nil || !strings.Contains(out, want) {
			t.Errorf("%s: %v\n%s; want %q", why, err, out, want)
		}
	}

	// While a quorum is there, nothing is recovered.
	refused("the service runs", "is in use", "--lost", "h4,h5", "--yes")
	left.process.stop()
	refused("the others run", "accepts connections", "--lost", "h4,h5", "--yes")
	left.start()
	x.leader()
	left.voting(3)
	before, err := left.api.SM().Get(t.Context())
	must(t, err)
	devices, tools := x.devices(managers...), x.toolsSee("h1", "h2")
	for _, m := range lost {
		m.process.kill()
	}
	eventually(t, "a store without quorum", func() (bool, string) {
		out, err := left.try("list")
		return err != nil || strings.Contains(out, "1 of 3 voting members"), out
	})

	left.process.stop()
	refused("one of the lost is not named", "named as lost", "--lost", "h4", "--yes")
	refused("this one is named", "named as lost", "--lost", "h4,h5,sm", "--yes")
	if out, err := recover("--lost", "h4,h5"); err != nil || !strings.Contains(out, "Say --yes") {
		t.Errorf("recover without --yes: %v\n%s", err, out)
	}
	// One that broke off is called again, and no service starts before that.
	stateOf(t, left, func(state string) { write(t, filepath.Join(state, "recovering"), "h4,h5\n") })
	left.process = launch(t, exec.Command("portcullisd", "--config", filepath.Join(left.dir, "portcullisd.yaml")))
	eventually(t, "word of the recovery that broke off", func() (bool, string) {
		said := left.process.lines.String()
		return strings.Contains(said, "the recovery of its cluster broke off"), said
	})
	left.process.stop()
	out := left.cluster("recover", "--lost", "h4,h5", "--yes")
	if !strings.Contains(out, "sm is the only member") || !strings.Contains(out, "h4 ("+lost[0].peer+")") {
		t.Errorf("recover says %s", out)
	}
	refused("there is nothing to recover", "only member", "--lost", "h4,h5", "--yes")

	left.start()
	left.voting(1)
	x.leads("sm")
	now, err := left.api.SM().Get(t.Context())
	must(t, err)
	if now.Epoch <= before.Epoch+cluster.SkippedEpochs/2 {
		t.Errorf("the epoch is %d after %d", now.Epoch, before.Epoch)
	}
	eventually(t, "a review in which all agree", func() (bool, string) {
		review, err := left.api.Review().Get(t.Context())
		must(t, err)
		return review.Active && slices.Equal(review.Recovered, []string{"h4", "h5"}) && review.Agreed == 2 && len(review.Differences) == 0, cmp.Diff(nil, review)
	})
	if _, err := left.api.Clusters().Create(t.Context(), v1.NewCluster{Name: "acme-2", Tenant: "acme"}); err == nil {
		t.Error("a cluster was made before the review has ended")
	}
	_, err = left.api.Review().End(t.Context(), v1.ReviewEnd{Reason: "all agree"})
	must(t, err)
	audited(t, left, "cluster.recover")

	// A lost instance comes back with its records: it is refused, and writes nothing.
	sets := x.fab.Sets()["h4"]
	lost[0].process = launch(t, exec.Command("portcullisd", "--config", filepath.Join(lost[0].dir, "portcullisd.yaml")))
	removed(t, lost[0])
	if d := cmp.Diff(sets, x.fab.Sets()["h4"]); d != "" {
		t.Errorf("h4 wrote after it was lost (-before +after):\n%s", d)
	}
	for _, m := range lost {
		left.cluster("revoke", "--name", m.name)
		dir, at := sibling(t, left.dir, r.address)
		must(t, os.RemoveAll(filepath.Join(dir, "cluster")))
		withoutSection(t, dir)
		edit(t, dir, map[string]string{"ibsim:" + r.client.Socket + "/sm": "ibsim:" + r.client.Socket + "/" + m.name})
		again := &instance{t: t, name: m.name, dir: dir, peer: m.peer, client: m.client, api: operator(t, dir, at)}
		x.all[m.name] = again
		left.invite(again, "invite")
	}
	left.voting(3)
	x.leadOnce()
	if d := cmp.Diff(devices, x.devices(managers...)); d != "" {
		t.Errorf("devices were changed (-before +after):\n%s", d)
	}
	if d := cmp.Diff(tools, x.toolsSee("h1", "h2")); d != "" {
		t.Errorf("smpquery sees (-before +after):\n%s", d)
	}
	for name := range x.hosts {
		for _, m := range x.all {
			phase(t, m.api, name, v1.PhaseAdmitted)
		}
	}
	if sent, lost := stop(); sent == 0 || lost > 0 {
		t.Errorf("%d of %d packets between admitted hosts were lost", lost, sent)
	}
}

// leadOnce has each instance lead.
func (x *trio) leadOnce() {
	x.t.Helper()
	led := map[string]bool{}
	for leads := x.leader(); ; leads = x.leader(leads) {
		x.leads(leads)
		if led[leads] = true; len(led) == len(x.all) {
			return
		}
		x.stepDown(leads)
	}
}

// withoutSection takes the section cluster out of a configuration.
func withoutSection(t *testing.T, dir string) {
	t.Helper()
	file := filepath.Join(dir, "portcullisd.yaml")
	text, err := os.ReadFile(file)
	must(t, err)
	for _, key := range []string{"name", "peer", "client"} {
		var lines []string
		inside := false
		for line := range strings.Lines(string(text)) {
			if !strings.HasPrefix(line, " ") && !strings.HasPrefix(line, "#") {
				inside = strings.HasPrefix(line, "cluster:")
			}
			if inside && strings.HasPrefix(line, "  "+key+":") {
				line = "  " + key + ": \"\"\n"
			}
			lines = append(lines, line)
		}
		text = []byte(strings.Join(lines, ""))
	}
	write(t, file, string(text))
}

// audited requires an entry with an action in the audit log.
func audited(t *testing.T, m *instance, action string) {
	t.Helper()
	for page, err := range m.api.Audit().Entries(t.Context(), v1.AuditQuery{}) {
		must(t, err)
		for _, e := range page.Items {
			if e.Action == action {
				return
			}
		}
	}
	t.Errorf("the audit log has no entry %s", action)
}
