package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	v1 "portcullis/api/v1"
	"portcullis/attest/tpm/tpmtest"
	"portcullis/cmd/internal/program"
	"portcullis/fabricsm/ib"
)

// story is the stage and the promises so far: which P_Key each host must hold now.
type story struct {
	*stage
	*narrator
	pkeys  map[string]ib.PKey // by cluster
	member map[string]string  // cluster by host, absent: none
	proofs int
}

// cast: two tenants with one cluster each.
var cast = []struct{ tenant, cluster string }{
	{"acme", "acme-train"},
	{"globex", "globex-infer"},
}

// play runs the whole story and clears the stage, whatever happens.
func play(ctx context.Context, n *narrator, programs string, o stageOptions) (err error) {
	s, err := newStage(programs, o)
	if err != nil {
		return err
	}
	defer func() {
		err = errors.Join(err, s.strike(o.keep))
		if o.keep {
			n.say("everything is kept in %s", s.dir)
		}
	}()
	t := &story{stage: s, narrator: n, pkeys: map[string]ib.PKey{}, member: map[string]string{}}
	for _, chapter := range []func(context.Context) error{
		t.build, t.closed, t.admit, t.packets, t.move, t.crash, t.isolation, t.conclude,
	} {
		if err := chapter(ctx); err != nil {
			return err
		}
	}
	if o.stay == nil {
		return nil
	}
	o.stay()
	return t.stay(ctx)
}

// build sets the stage: fabric, TPMs, service, inventory.
func (t *story) build(ctx context.Context) error {
	t.chapter("A fabric, eight hosts, one service")
	if err := t.makeFabric(ctx); err != nil {
		return err
	}
	t.say("%s runs a fabric of %d spines, %d leaves and %d hosts with %d HCAs each; %s",
		t.options.kind, spineCount, leafCount, hostCount, hcasPerHost, t.options.kind.about())
	if err := t.makeTPMs(ctx); err != nil {
		return err
	}
	t.say("every host has a swtpm whose endorsement key a throw-away TPM vendor has certified")
	if err := t.installService(ctx); err != nil {
		return err
	}
	if err := t.startService(ctx); err != nil {
		return err
	}
	t.say("portcullisd runs with its embedded store and our Subnet Manager at node %q", smNodeName)
	return t.importInventory(ctx)
}

func (t *story) importInventory(ctx context.Context) error {
	digests := map[string]string{}
	for id, dev := range t.tpms {
		digests[id] = dev.EKDigest()
	}
	if err := t.write("inventory.yaml", inventoryFile(t.hosts, digests)); err != nil {
		return err
	}
	if err := t.write("cabling.yaml", cablingFile(t.hosts)); err != nil {
		return err
	}
	if _, err := t.cli(ctx, "inventory", "import", t.path("inventory.yaml"), t.path("cabling.yaml")); err != nil {
		return err
	}
	t.say("inventory and cabling are imported: whose TPM, which GUIDs, which switch ports")
	return nil
}

// closed shows that no host is in a tenant partition before it has attested.
func (t *story) closed(ctx context.Context) error {
	t.chapter("Closed by default")
	if err := program.Await(ctx, "the fabric is settled", func() (bool, error) { return t.settled(ctx) }); err != nil {
		return err
	}
	t.say("the fabric is up: LIDs, routes, every port Active")
	if err := t.locked(ctx); err != nil {
		return err
	}
	return t.prove(ctx, "all hosts are limited members of 0x7fff and nothing else")
}

func (t *story) settled(ctx context.Context) (bool, error) {
	var sm v1.SM
	if err := t.ask(ctx, &sm, "sm", "status"); err != nil {
		return false, err
	}
	return sm.State == ib.SMMaster.String() && sm.Settled, nil
}

// admit creates the tenants and provisions all hosts side by side.
func (t *story) admit(ctx context.Context) error {
	t.chapter("Eight hosts attest, side by side")
	for _, c := range cast {
		if err := t.createCluster(ctx, c.tenant, c.cluster); err != nil {
			return err
		}
	}
	for i, h := range t.hosts {
		cluster := cast[i/(hostCount/len(cast))].cluster
		if err := t.assign(ctx, h, cluster); err != nil {
			return err
		}
		t.member[h.id] = cluster
	}
	t.say("four hosts are assigned to each cluster; their provisioning windows are open")
	if err := t.trustBoots(ctx, t.hosts[0], t.hosts[1]); err != nil {
		return err
	}
	g, ctx2 := errgroup.WithContext(ctx)
	for _, h := range t.hosts {
		g.Go(func() error { return t.provision(ctx2, h) })
	}
	if err := g.Wait(); err != nil {
		return err
	}
	return t.prove(ctx, "each host is a full member of its own cluster's partition, on HCA and switch port")
}

func (t *story) createCluster(ctx context.Context, tenant, cluster string) error {
	if _, err := t.cli(ctx, "tenant", "create", tenant); err != nil {
		return err
	}
	var c v1.Cluster
	if err := t.ask(ctx, &c, "cluster", "create", cluster, "--tenant", tenant); err != nil {
		return err
	}
	t.pkeys[cluster] = c.PKey
	t.say("tenant %s has cluster %s, which got P_Key %v", tenant, cluster, c.PKey)
	return nil
}

func (t *story) assign(ctx context.Context, h host, cluster string) error {
	_, err := t.cli(ctx, "host", "assign", h.id, "--cluster", cluster)
	return err
}

// provision runs the agent as it runs on the host's provisioning image.
func (t *story) provision(ctx context.Context, h host) error {
	start := time.Now()
	if _, err := t.agent(ctx, h, h); err != nil {
		return err
	}
	t.say("%s: TPM quote verified, tables read back, admitted to %s in %.1f s", h.id, t.member[h.id], time.Since(start).Seconds())
	return nil
}

// agent runs portcullis-agent on a host, with the HCAs of another if shown
// differs. The error of a refusal is a *program.StatusError.
func (t *story) agent(ctx context.Context, h, shown host) ([]byte, error) {
	return program.Call(ctx, t.at("portcullis-agent"), "provision",
		"--service", "https://"+t.address, "--ca", t.caFile(), "--host", h.id,
		"--tpm", t.tpms[h.id].Device(), "--sysfs", t.path("hosts", shown.id, "sys"), "--procfs", t.path("hosts", shown.id, "proc"),
		"--event-log", t.path("hosts", h.id, "sys", tpmtest.EventLogFile),
		"--state-dir", t.path("hosts", h.id, "state"), "--timeout", "60s")
}

// move takes a host from one tenant to the other, and lets it lie in between.
func (t *story) move(ctx context.Context) error {
	moved, victim, to := t.hosts[3], t.hosts[0], cast[1].cluster
	t.chapter(fmt.Sprintf("%s moves from %s to %s", moved.id, cast[0].tenant, cast[1].tenant))
	if _, err := t.cli(ctx, "host", "release", moved.id, "--yes", "--wait", "--timeout", "30s"); err != nil {
		return err
	}
	delete(t.member, moved.id)
	t.say("%s is released: its switch ports first, then its HCAs, reported only after read-back", moved.id)
	if err := t.prove(ctx, fmt.Sprintf("%s holds no tenant key any more", moved.id)); err != nil {
		return err
	}
	if err := t.tpms[moved.id].PowerCycle(ctx); err != nil {
		return err
	}
	t.say("%s is power-cycled and assigned to %s", moved.id, to)
	if err := t.assign(ctx, moved, to); err != nil {
		return err
	}
	if err := t.lie(ctx, moved, victim); err != nil {
		return err
	}
	if err := t.tpms[moved.id].PowerCycle(ctx); err != nil {
		return err
	}
	if _, err := t.cli(ctx, "host", "guid-resolved", moved.id, "--reason", "the adapters are in "+victim.id+", as inventory has it"); err != nil {
		return err
	}
	if err := t.assign(ctx, moved, to); err != nil {
		return err
	}
	t.say("%s is held until an operator has looked, who says so and assigns it again", moved.id)
	t.member[moved.id] = to
	if err := t.provision(ctx, moved); err != nil {
		return err
	}
	return t.prove(ctx, fmt.Sprintf("%s is in %s's partition and not in %s's", moved.id, cast[1].tenant, cast[0].tenant))
}

// lie lets a host send a true quote over another host's GUIDs.
func (t *story) lie(ctx context.Context, liar, victim host) error {
	_, err := t.agent(ctx, liar, victim)
	refused, ok := errors.AsType[*program.StatusError](err)
	if !ok {
		return fmt.Errorf("%s claimed the GUIDs of %s: want a refusal, got %w", liar.id, victim.id, orNil(err))
	}
	var h v1.Host
	if err := t.ask(ctx, &h, "host", "show", liar.id); err != nil {
		return err
	}
	d := h.Status.LastDenial
	if d == nil {
		return fmt.Errorf("%s was turned away (%v), but the service has no refusal on record", liar.id, refused)
	}
	t.say("%s first shows the HCAs of %s under its own TPM: refused, reason %s", liar.id, victim.id, d.Code)
	return t.prove(ctx, "the lie changed nothing")
}

func orNil(err error) error {
	if err == nil {
		return errors.New("success")
	}
	return err
}

// crash kills the service and shows that nothing is lost and nothing is
// written again.
func (t *story) crash(ctx context.Context) error {
	t.chapter("The service is killed")
	t.service.Kill()
	t.say("portcullisd is killed with SIGKILL")
	if err := t.prove(ctx, "the fabric stands without it"); err != nil {
		return err
	}
	if err := t.startService(ctx); err != nil {
		return err
	}
	if err := program.Await(ctx, "the fabric is settled again", func() (bool, error) { return t.settledAndAdmitted(ctx) }); err != nil {
		return err
	}
	var sm v1.SM
	if err := t.ask(ctx, &sm, "sm", "status"); err != nil {
		return err
	}
	if n := writes(sm.SMPs); n != 0 {
		return fmt.Errorf("after the restart %d requests wrote what was right already: %v", n, sm.SMPs)
	}
	t.say("started again: all eight hosts are still admitted; the fabric was read, and nothing was written")
	return t.prove(ctx, "the same keys are in the same places")
}

// writes counts the Sets among requests, whatever they set.
func writes(smps map[string]int) (n int) {
	for name, count := range smps {
		if strings.HasPrefix(name, "Set ") {
			n += count
		}
	}
	return n
}

func (t *story) settledAndAdmitted(ctx context.Context) (bool, error) {
	if ok, err := t.settled(ctx); !ok || err != nil {
		return false, err
	}
	hosts, err := t.listHosts(ctx)
	if err != nil {
		return false, err
	}
	return !slices.ContainsFunc(hosts, func(h v1.Host) bool { return h.Status.Phase != v1.PhaseAdmitted }), nil
}

func (t *story) listHosts(ctx context.Context) ([]v1.Host, error) {
	var list v1.List[v1.Host]
	err := t.ask(ctx, &list, "host", "list")
	return list.Items, err
}
