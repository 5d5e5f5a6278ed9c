package drills

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"portcullis/api"
	"portcullis/api/admission"
	"portcullis/api/credential"
	"portcullis/api/fabric"
	"portcullis/api/fabric/keyops"
	"portcullis/api/fabric/owed"
	"portcullis/api/fabric/query"
	"portcullis/api/fabric/records"
	"portcullis/api/hostrecord"
	"portcullis/api/inventory"
	"portcullis/api/store"
	"portcullis/api/store/memory"
	v1 "portcullis/api/v1"
	"portcullis/attest"
	"portcullis/fabricsm/drill"
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/sim"
	"portcullis/fabricsm/sm"
	"portcullis/fabricsm/testbed"
	"portcullis/fabricsm/vault"
)

// account is a credential for the API.
type account struct {
	name    string
	pkeys   []string        // ranges; nil: none
	role    credential.Role // "": operator
	tenants []string        // of the role tenant
	expires string          // date; "": it has no end
}

// options say what a site with a service is like.
type options struct {
	fabric      drill.SiteOptions
	admission   func(*admission.Options) // nil: nothing differs from the defaults
	credentials []account
	eks         map[string]string         // digests of EKs that inventory has, by host
	limits      api.Limits                // zero: those of a service
	rails       map[string]string         // hosts whose adapter is a second one of another host of the inventory
	api         func(*site, *api.Options) // nil: nothing differs from the defaults
	leases      bool                      // leases of the store go by passLeases, for instances that run in goroutines
}

// site is a fabric whose Subnet Manager does what the service says.
type site struct {
	*drill.Site
	scene     *drill.Scene
	kept      *memory.Backend
	outage    *outage
	store     *store.Store
	admission *admission.Service
	turn      *fabric.Turn
	owed      *owed.Keeper // what the store is owed; nil: the turn keeps that in memory
	seen      *query.Observer
	api       *api.Server
	tokens    map[string]string  // of credentials, by name
	known     *credential.Tokens // the same, as the API knows them
	limits    api.Limits
	said      strings.Builder   // all that was logged and answered
	told      int               // events that the service knows
	audited   int               // entries of the audit log before the last attack
	eks       map[string]string // that inventory has, by host
	from      string            // address that requests come from
	rails     map[string]string // hosts whose adapter is a second one of another
	options   admission.Options
	log       *slog.Logger
	edit      func(*site, *api.Options) // of the options of the API
	leased    atomic.Int64
	deaf      bool // what is wanted is not passed to the Subnet Manager
}

// hosts are those of the inventory, cabled as they are.
var hosts = [...]string{"h1", "h2", "h3", "h4", "h5", "h6", "h7", "h8"}

func newSite(s *drill.Scene, o options) *site {
	v := &site{scene: s, tokens: make(map[string]string), eks: o.eks, from: "192.0.2.1", rails: o.rails, edit: o.api, Site: s.Site(o.fabric)}
	v.kept = memory.New(v.clock)
	if o.leases {
		v.passLeases()
		v.kept = memory.New(v.leases)
	}
	v.outage = &outage{Backend: v.kept}
	v.store = store.New(v.outage, "")
	log := slog.New(slog.NewTextHandler(&v.said, &slog.HandlerOptions{Level: slog.LevelDebug}))
	secret := sha256.Sum256([]byte("sessions of drills"))
	root, err := vault.NewRoot("drill", secret[:])
	s.Must(err)
	ao := admission.Options{Store: v.store, Policy: attest.DefaultPolicy(), Log: log, Now: v.clock, Root: root}
	if o.admission != nil {
		o.admission(&ao)
	}
	v.options, v.log = ao, log
	v.restartService()
	v.seen = query.New(query.Options{Now: v.clock})
	v.known, v.limits = v.credentials(o.credentials), cmp.Or(o.limits, api.DefaultLimits())
	v.serveAPI(log)
	_, err = v.admission.Inventory().ImportInventory(context.Background(), "drill", []inventory.File{{Name: "hosts.yaml", Data: v.inventory()}}, v1.RepairTicket{}, false)
	s.Must(err)
	v.sync()
	return v
}

// restartService begins admission, and what connects it with the Subnet Manager, with what is stored.
func (v *site) restartService() {
	v.admission = admission.New(v.options)
	v.turn = fabric.NewTurn(fabric.Options{Store: v.store, Log: v.log, Now: v.clock, Owed: v.owed})
}

// serveAPI makes the API over what the site has.
func (v *site) serveAPI(log *slog.Logger) {
	o := api.Options{
		Backend: api.Backend{
			Attestation: v.admission.Attestation(), Inventory: v.admission.Inventory(), Layout: v.admission.Layout(), Lifecycle: v.admission, Brakes: v.admission, Reviews: v.admission, State: v.admission,
			Labels: api.Labels{Hosts: admission.HostLabels(v.admission), Clusters: v.admission.Tenancy().ClusterLabels(), Tenants: v.admission.Tenancy().TenantLabels()},
		},
		Tenancy: v.admission.Tenancy(), Fabric: v.seen, Operator: v.operator(log), Tokens: v.known, ChannelBinding: api.ChannelOff,
		Limits: v.limits, Version: "drill", Log: log, Registry: prometheus.NewRegistry(),
	}
	if v.edit != nil {
		v.edit(v, &o)
	}
	v.api = api.New(o)
}

// clock is the virtual time.
func (v *site) clock() time.Time { return testbed.Epoch.Add(v.Now()) }

// leases is the time of leases: the virtual time when passLeases was called last.
func (v *site) leases() time.Time { return time.Unix(0, v.leased.Load()) }

func (v *site) passLeases() { v.leased.Store(v.clock().UnixNano()) }

// operator is what operators do with keys.
func (v *site) operator(log *slog.Logger) api.FabricOperator {
	return &operator{Ops: &keyops.Ops{
		Seen: v.seen, Log: log, Note: keyops.Audit(v.store, v.clock), Now: v.clock, Sealed: v.turn.Store().Load,
		Apply: func(_ context.Context, in sm.Input, done func() (bool, error)) error {
			v.Step(in)
			v.show()
			_, err := done()
			return err
		},
	}}
}

// operator has what drills need of api.FabricOperator, which is about keys; other methods are not there.
type operator struct {
	api.FabricOperator
	*keyops.Ops
}

// LendKey and the others are those of keyops.
func (o *operator) LendKey(ctx context.Context, actor string, l v1.KeyLoan) (*v1.LentKey, error) {
	return o.Ops.LendKey(ctx, actor, l)
}

func (o *operator) LendSAKey(ctx context.Context, actor string, l v1.SAKeyLoan) (*v1.SealedKeys, error) {
	return o.Ops.LendSAKey(ctx, actor, l)
}

func (o *operator) SealedKeys(ctx context.Context, actor string) (*v1.SealedKeys, error) {
	return o.Ops.SealedKeys(ctx, actor)
}

func (o *operator) RetireKeys(ctx context.Context, actor string, r v1.KeyRetirement) (*v1.FabricKeys, error) {
	return o.Ops.RetireKeys(ctx, actor, r)
}

func (o *operator) RecordRehearsal(ctx context.Context, actor string, r v1.KeyRehearsal) (*v1.KeyRehearsed, error) {
	return o.Ops.RecordRehearsal(ctx, actor, r)
}

func (o *operator) MoveKey(ctx context.Context, actor string, m v1.KeyMove) (*v1.FabricKey, error) {
	return o.Ops.MoveKey(ctx, actor, m)
}

func (o *operator) ReleaseKeys(ctx context.Context, actor string, r v1.KeyRelease) (*v1.FabricKeys, error) {
	return o.Ops.ReleaseKeys(ctx, actor, r)
}

// credentials makes a token for each credential.
func (v *site) credentials(list []account) *credential.Tokens {
	var file strings.Builder
	file.WriteString("tokens:\n")
	for _, c := range list {
		token, digest := credential.New()
		v.tokens[c.name] = token
		fmt.Fprintf(&file, "- {name: %s, role: %s, sha256: %s", c.name, cmp.Or(c.role, credential.Operator), digest)
		if c.tenants != nil {
			fmt.Fprintf(&file, ", tenants: [%s]", strings.Join(c.tenants, ", "))
		}
		if c.expires != "" {
			fmt.Fprintf(&file, ", expires: %s", c.expires)
		}
		if c.pkeys != nil {
			fmt.Fprintf(&file, ", p_keys: [%q], hosts: ['*']", strings.Join(c.pkeys, `", "`))
		}
		file.WriteString("}\n")
	}
	t, err := credential.Parse("tokens.yaml", []byte(file.String()))
	v.scene.Must(err)
	return t
}

// inventory lists the hosts where they are.
func (v *site) inventory() []byte {
	var b strings.Builder
	b.WriteString("hosts:\n")
	for _, h := range hosts {
		if v.rails[h] != "" {
			continue
		}
		fmt.Fprintf(&b, "- id: %s\n", h)
		if ek := v.eks[h]; ek != "" {
			fmt.Fprintf(&b, "  ek_sha256: %s\n", ek)
		}
		b.WriteString("  hcas:\n")
		for _, adapter := range hosts {
			if adapter == h || v.rails[adapter] == h {
				fmt.Fprintf(&b, "  - node_guid: %v\n    ports:\n    - {port: 1, guid: %v, cable: %v}\n",
					v.List.Find(adapter).GUID, v.GUID(adapter, 1), v.Place(adapter, 1))
			}
		}
	}
	return []byte(b.String())
}

// show passes the service the events and the view of the Subnet Manager.
func (v *site) show() (again bool) {
	var events []sm.Event
	for _, h := range v.Since(v.told) {
		events = append(events, h.Event)
		v.seen.OnEvent(h.Event)
	}
	v.told = v.Mark()
	v.seen.OnView(v.View())
	again, err := v.turn.Report(context.Background(), events, v.View())
	v.scene.Must(err)
	return again
}

// pass passes the Subnet Manager what is wanted. With a deaf link it goes on with what it heard last.
func (v *site) pass(in sm.Intent) {
	if !v.deaf {
		v.Want(in)
	}
}

// maxTurns is how often service and Subnet Manager may exchange messages until no message is left.
const maxTurns = 20

// sync lets service and Subnet Manager come to rest.
func (v *site) sync() {
	ctx := context.Background()
	for range maxTurns {
		before := v.decided()
		v.scene.Must(v.admission.Settle(ctx))
		in, err := v.turn.Intent(ctx)
		v.scene.Must(err)
		v.pass(in)
		v.scene.Must(v.Settle(time.Minute))
		if again := v.show(); !again && v.decided() == before {
			return
		}
	}
	v.scene.Must(fmt.Errorf("service and Subnet Manager come to no rest in %d turns", maxTurns))
}

// decided returns all that determines which host is in which partition, as far as it can be compared.
func (v *site) decided() string {
	return revisions(v, records.Grants()) + revisions(v, records.Memberships()) + revisions(v, hostrecord.Records())
}

// revisions lists the records of a collection with when they were last changed.
func revisions[T any](v *site, c store.Collection[T]) string {
	records, _, err := c.List(v.ctx(), v.store, "")
	v.scene.Must(err)
	var b strings.Builder
	for _, r := range records {
		fmt.Fprintf(&b, "%s@%d ", r.Key, r.Modified)
	}
	return b.String()
}

// attested has hosts count as attested.
func (v *site) attested(list ...string) {
	ctx := context.Background()
	_, err := v.store.Update(ctx, func(tx *store.Tx) error {
		for _, h := range list {
			rec, err := hostrecord.Records().Get(ctx, tx, h)
			if err != nil {
				return err
			}
			const session = "drill"
			rec.Value.Evidence, rec.Value.Sealed = &hostrecord.Evidence{Time: v.clock(), Session: session}, v.clock()
			verdict := attest.Verdict{OK: true, Facts: attest.Facts{Host: h, Session: session, Statement: new(attest.Statement)}}
			if err := errors.Join(hostrecord.Records().Put(tx, h, rec.Value), hostrecord.Verdicts().Put(tx, h, verdict)); err != nil {
				return err
			}
		}
		return nil
	})
	v.scene.Must(err)
}

// cluster makes a cluster of a tenant of the same name with hosts that are admitted, by the credential of who, and returns
// its P_Key.
func (v *site) cluster(who, name string, list ...string) ib.PKey {
	v.must(who, "POST", "/v1/tenants", `{"name":"`+name+`"}`)
	v.must(who, "POST", "/v1/clusters", `{"name":"`+name+`","tenant":"`+name+`"}`)
	v.admit(who, name, list...)
	return v.pkeyOf(name)
}

// admit has hosts become members of a cluster.
func (v *site) admit(who, cluster string, list ...string) {
	for _, h := range list {
		v.must(who, "POST", "/v1/hosts/"+h+"/assign", `{"cluster":"`+cluster+`"}`)
	}
	v.attested(list...)
	v.sync()
	for _, h := range list {
		host, err := v.admission.Host(v.ctx(), h)
		v.scene.Must(err)
		v.scene.Check(host.Status.Phase == v1.PhaseAdmitted, "host %s is %s, not admitted: %+v", h, host.Status.Phase, host.Status.Guards)
	}
}

// pkeyOf returns the P_Key of a cluster, as a full member has it; 0 if there is none.
func (v *site) pkeyOf(cluster string) ib.PKey {
	c, err := v.admission.Tenancy().Cluster(v.ctx(), cluster)
	if err != nil {
		return 0
	}
	return c.PKey.Full()
}

// delivered reports whether a packet of a host reaches another one.
func (v *site) delivered(from, to string, key ib.PKey) bool {
	return v.Send(from, to, key).Fate == sim.Delivered
}

// ctx is that of all calls: drills are not interrupted.
func (v *site) ctx() context.Context { return context.Background() }
