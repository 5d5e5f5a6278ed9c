package admission

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"portcullis/api/audit"
	"portcullis/api/fabric/records"
	"portcullis/api/hostrecord"
	"portcullis/api/refusal"
	"portcullis/api/store"
	"portcullis/api/store/storetest"
	v1 "portcullis/api/v1"
	"portcullis/attest"
	"portcullis/fabricsm/ib"
)

// TestRandomHistories lets operators, agents, the fabric and crashes act in random order and checks after every step that
//
//   - a host reported admitted has its P_Key on every one of its switch ports and
//     HCAs, and a host reported quarantined has no P_Key on any switch port;
//   - a P_Key on any port is that of a grant the ledger still knows;
//   - a list of hosts, which reads the records of these alone, has what all records say;
//   - no two clusters have one P_Key, and a new cluster's P_Key is nowhere;
//   - the audit chain is whole.
func TestRandomHistories(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		s, failing := member.OpenFailing(t)
		h := &history{lab: newLab(t, s), rt: rt, failing: failing}
		h.options = func(o *Options) { // two keys only, so that they are reused
			o.PKeyFirst, o.PKeyLast, o.PKeyMinAge = 1, 3, -1
		}
		h.restart()
		h.addHosts(3)
		h.tenantWithClusters()
		for range rapid.IntRange(10, 40).Draw(rt, "steps") {
			h.step()
		}
		if _, err := audit.Verify(t.Context(), h.store); err != nil {
			rt.Error(err)
		}
	})
}

// history is a lab that something random happens to.
type history struct {
	*lab
	rt      *rapid.T
	failing *storetest.Failing
	boots   uint32
}

func (h *history) step() {
	crash := rapid.IntRange(0, 6).Draw(h.rt, "crash at write") // 0: none
	if crash > 0 {
		h.failing.FailAt(crash, storetest.Moment(rapid.Bool().Draw(h.rt, "landed")))
	}
	what, err := h.act()
	if err == nil && rapid.Bool().Draw(h.rt, "settle") {
		err = h.trySettle()
	}
	crashed := h.failing.Down()
	h.failing.Heal()
	if crashed {
		h.lab.restart()
	}
	h.check(fmt.Sprintf("%s: crashed %v, %v", what, crashed, err), err)
}

func (h *history) trySettle() error {
	snap, err := h.store.Snapshot(h.ctx())
	if err == nil {
		_, err = h.svc.settleAll(h.ctx(), snap)
	}
	return err
}

func (h *history) act() (string, error) {
	host := fmt.Sprintf("host-%d", rapid.IntRange(1, 3).Draw(h.rt, "host"))
	cluster := fmt.Sprintf("c%d", rapid.IntRange(1, 3).Draw(h.rt, "cluster"))
	ctx := h.ctx()
	switch what := rapid.SampledFrom([]string{
		"push", "push", "push", "push", "push", "push", "push", "push", "assign", "attest", "release", "create", "delete", "delete",
		"program", "program one", "program one", "appear", "vanish", "silence", "answer", "wait", "settle",
	}).Draw(h.rt, "what"); what {
	case "push":
		return h.push(host, cluster)
	case "assign":
		_, err := h.svc.Assign(ctx, "alice", host, v1.Assignment{Cluster: cluster})
		return what, err
	case "attest":
		return what, h.vouch(host)
	case "release":
		_, err := h.svc.Release(ctx, "alice", host)
		return what, err
	case "create":
		return what, h.create(cluster)
	case "delete":
		return what, h.svc.Tenancy().DeleteCluster(ctx, "alice", cluster)
	case "program":
		h.fabric.program(h.t)
		return what, nil
	case "program one":
		h.programOne()
		return what, nil
	case "appear":
		h.fabric.place(h.t, h.ports(host)...)
		return what, nil
	case "vanish":
		h.fabric.show(h.t, h.ports(host)[0].GUID, records.Port{})
		return what, nil
	case "silence", "answer":
		h.fabric.silent[h.ports(host)[0].GUID] = what == "silence"
		return what, nil
	case "wait":
		h.clock = h.clock.Add(30 * time.Minute)
		return what, nil
	default:
		return what, h.trySettle()
	}
}

// push takes the host one step further in its life.
func (h *history) push(host, cluster string) (string, error) {
	now, err := h.svc.Host(h.ctx(), host)
	if err != nil {
		return "push", err
	}
	what := "push " + string(now.Status.Phase)
	switch now.Status.Phase {
	case v1.PhaseQuarantined:
		if _, err := h.svc.Tenancy().Cluster(h.ctx(), cluster); refusal.IsKind(err, refusal.NotFound) {
			return what, h.create(cluster)
		}
		_, err = h.svc.Assign(h.ctx(), "alice", host, v1.Assignment{Cluster: cluster})
	case v1.PhaseAwaiting:
		err = h.vouch(host)
	case v1.PhaseVerified:
		h.fabric.place(h.t, h.ports(host)...)
		err = h.trySettle()
	case v1.PhaseAdmitted:
		_, err = h.svc.Release(h.ctx(), "alice", host)
	default:
		h.fabric.program(h.t)
		err = h.trySettle()
	}
	return what, err
}

// vouch records what accepted evidence does, without a TPM.
func (h *history) vouch(host string) error {
	h.boots++
	id := fmt.Sprintf("%032x", h.boots)
	text, err := h.policy.Judging()
	if err != nil {
		return err
	}
	judged := sha256.Sum256([]byte(text))
	return h.svc.update(h.ctx(), func(tx *store.Tx) error {
		f, err := h.svc.gather(h.ctx(), tx, host)
		if err != nil {
			return err
		}
		if why := f.rec.WindowClosed(h.clock); why != "" {
			return errors.New(why)
		}
		f.rec.Evidence, f.rec.Sealed = &hostrecord.Evidence{Time: f.now, Session: id, Judged: hex.EncodeToString(judged[:8])}, f.now
		if err := errors.Join(
			hostrecord.Records().Put(tx, host, f.rec),
			hostrecord.Verdicts().Put(tx, host, attest.Verdict{OK: true, Facts: attest.Facts{Session: id, EKDigest: f.host.EK}}),
		); err != nil {
			return err
		}
		_, _, err = h.svc.settle(h.ctx(), tx, host)
		return err
	})
}

// create makes a cluster; its P_Key must be nowhere in the fabric.
func (h *history) create(cluster string) error {
	c, err := h.svc.Tenancy().CreateCluster(h.ctx(), "alice", v1.NewCluster{Name: cluster, Tenant: "acme"})
	if err != nil {
		return err
	}
	for _, held := range []map[records.Key]bool{h.fabric.onSwitch, h.fabric.onHCA} {
		for k := range held {
			if k.PKey == c.PKey {
				h.rt.Errorf("new cluster %s got P_Key %v, which is still at %v", cluster, c.PKey, k)
			}
		}
	}
	return nil
}

func (h *history) programOne() {
	snap, err := h.fabric.store.Snapshot(h.ctx())
	if err != nil {
		h.rt.Fatal(err)
	}
	grants, _, err := records.Grants().List(h.ctx(), snap, "")
	if err != nil {
		h.rt.Fatal(err)
	}
	if len(grants) > 0 {
		h.fabric.obey(h.t, grants[rapid.IntRange(0, len(grants)-1).Draw(h.rt, "grant")], snap.Revision)
	}
}

func (h *history) check(what string, err error) {
	var e *refusal.Error
	var no *attest.Refusal
	if err != nil && !errors.As(err, &e) && !errors.As(err, &no) && !errors.Is(err, storetest.ErrInjected) {
		h.rt.Errorf("%s: unexpected kind of error", what)
	}
	hosts, err := h.svc.Hosts(h.ctx(), v1.HostQuery{})
	if err != nil {
		h.rt.Fatal(err)
	}
	for _, host := range hosts.Items {
		h.checkHost(what, host)
	}
	h.checkLists(what, hosts.Items)
	h.checkKeys(what)
}

func (h *history) checkHost(what string, host v1.Host) {
	for _, a := range host.HCAs {
		for _, p := range a.Ports {
			k := records.Key{PKey: host.Status.PKey, GUID: p.GUID, Place: p.Cabled}
			held := h.fabric.holds(p.Cabled)
			switch host.Status.Phase {
			case v1.PhaseAdmitted:
				if !slices.Contains(held, k.PKey) || !h.fabric.onHCA[k] {
					h.rt.Errorf("%s: host %s is told admitted, but %v holds %v", what, host.ID, p.Cabled, held)
				}
			case v1.PhaseQuarantined:
				if len(held) > 0 {
					h.rt.Errorf("%s: host %s is told quarantined, but %v holds %v", what, host.ID, p.Cabled, held)
				}
			}
		}
	}
}

// checkLists holds what a page reads by its keys against what all collections have.
func (h *history) checkLists(what string, listed []v1.Host) {
	snap, err := h.store.Snapshot(h.ctx())
	if err != nil {
		h.rt.Fatal(err)
	}
	all, err := h.svc.gatherAll(h.ctx(), snap)
	if err != nil {
		h.rt.Fatal(err)
	}
	var want []v1.Host
	for _, f := range all {
		want = append(want, *hostView(f, decide(f)))
	}
	if d := cmp.Diff(want, listed); d != "" {
		h.rt.Errorf("%s: hosts as listed, not as they are (-want +got):\n%s", what, d)
	}
}

func (h *history) checkKeys(what string) {
	clusters, err := h.svc.Tenancy().Clusters(h.ctx(), v1.ClusterQuery{})
	if err != nil {
		h.rt.Fatal(err)
	}
	owner := map[ib.PKey]string{}
	for _, c := range clusters.Items {
		if other, taken := owner[c.PKey]; taken {
			h.rt.Errorf("%s: clusters %s and %s share P_Key %v", what, c.Name, other, c.PKey)
		}
		owner[c.PKey] = c.Name
	}
	for k := range h.fabric.onHCA {
		if _, err := records.Grants().Get(h.ctx(), h.store, k.String()); errors.Is(err, store.ErrNotFound) {
			h.rt.Errorf("%s: %v is on the HCA, but no grant knows it", what, k)
		}
	}
}
