package proving

import (
	"context"
	"reflect"
	"slices"
	"time"

	"portcullis/api/fabric/records"
	"portcullis/api/inventory"
	"portcullis/api/isolation"
	"portcullis/api/store"
	"portcullis/api/topology"
	"portcullis/cmd/portcullisd/placekeys"
	"portcullis/fabricsm/topospec"
)

// mostGranted is of how many grants that were written what is declared is made without reading all records.
const mostGranted = 1024

// declared is what was declared at one time.
type declared struct {
	intent   *isolation.Intent
	topology *topospec.Spec
	at       time.Time
	keys     *placekeys.Book // nil: they are to be opened
}

// basis is what was declared as of a revision of the store, and the topology of the configuration, which counts before records.
type basis struct {
	declared
	revision   int64
	configured *topospec.Spec
}

// declaring are the collections whose records an Intent is made of.
func declaring() []string {
	return []string{
		inventory.Sites().Name(), inventory.Racks().Name(), inventory.Switches().Name(), inventory.Hosts().Name(), inventory.Adapters().Name(), inventory.Trunks().Name(),
		records.Grants().Name(), topology.Heads().Name(), topology.Entries().Name(), topology.Contents().Name(),
	}
}

// intent reads what is declared now.
func (p *Prover) intent(ctx context.Context) (declared, error) {
	b := basis{declared: declared{at: p.Now().UTC()}, configured: p.configured()}
	r, revision, err := p.records(ctx)
	if err != nil {
		return declared{}, err
	}
	b.revision, b.topology = revision, r.Topology
	if b.intent, err = isolation.NewIntent(r); err != nil {
		return declared{}, err
	}
	p.told.Lock()
	defer p.told.Unlock()
	if was := p.basis; was != nil && was.intent.Equal(b.intent) {
		b.intent = was.intent // what was proven by it is known to be proven by the same
	}
	p.basis = &b
	return b.declared, nil
}

// current returns what is declared now, without reading it where no record of it was written since it was read. Where only grants were, it
// reads these.
func (p *Prover) current(ctx context.Context) (declared, error) {
	p.told.Lock()
	b := p.basis
	p.told.Unlock()
	if b == nil || b.configured != p.configured() {
		return p.intent(ctx)
	}
	at := p.Now().UTC()
	snap, err := p.Store.Snapshot(ctx)
	if err != nil {
		return declared{}, err
	}
	if !p.written.Unwritten(ctx, b.revision, snap.Revision, declaring()...) {
		if b = p.granted(ctx, b, snap); b == nil {
			return p.intent(ctx)
		}
	}
	d := b.declared
	if d.at = at; p.SealedIn == "" || !p.written.Unwritten(ctx, b.revision, snap.Revision, p.SealedIn) {
		d.keys = nil
	}
	return d, nil
}

// granted returns a basis with the grants that were written since, nil if that is not all that was.
func (p *Prover) granted(ctx context.Context, b *basis, snap store.Snapshot) *basis {
	grants := records.Grants()
	others := slices.DeleteFunc(declaring(), func(name string) bool { return name == grants.Name() })
	if !p.written.Unwritten(ctx, b.revision, snap.Revision, others...) {
		return nil
	}
	written, ok := p.written.Keys(ctx, b.revision, snap.Revision, grants.Name())
	if !ok || len(written) > mostGranted {
		return nil
	}
	changes, keys := make([]isolation.Change, len(written)), make([]string, len(written))
	for i := range written {
		keys[i], _ = grants.KeyOf(written[i])
		changes[i].Key = keys[i]
	}
	found, err := grants.Of(ctx, snap, keys)
	if err != nil {
		return nil
	}
	for i := range found {
		at, _ := slices.BinarySearch(keys, found[i].Key)
		changes[at].Grant = &found[i].Value
	}
	next := *b
	if next.intent, ok = b.intent.With(changes); !ok {
		return nil
	}
	if p.SealedIn != "" && !p.written.Unwritten(ctx, b.revision, snap.Revision, p.SealedIn) {
		next.keys = nil
	}
	next.revision = snap.Revision
	p.told.Lock()
	defer p.told.Unlock()
	if p.basis == b {
		p.basis = &next
	}
	return &next
}

// opened has keys serve for what is declared, until records are written.
func (p *Prover) opened(d *declared, keys *placekeys.Book) {
	p.told.Lock()
	defer p.told.Unlock()
	if b := p.basis; b != nil && b.intent == d.intent {
		again := *b
		again.keys = keys
		p.basis = &again
	}
}

// hasOtherKeys opens the keys again that serve for what is declared, and reports whether they are others: newer ones may not be in the store yet.
func (p *Prover) hasOtherKeys(d *declared) bool {
	was := d.keys
	if was == nil {
		return false
	}
	keys, err := placekeys.Open(p.Sealed, p.Root)
	if err != nil || reflect.DeepEqual(keys, was) {
		return false
	}
	d.keys = keys
	p.opened(d, keys)
	return true
}

func (p *Prover) configured() *topospec.Spec {
	if p.Configured == nil {
		return nil
	}
	return p.Configured()
}

// records returns what an Intent is made of, as it is now, and the revision of the store.
func (p *Prover) records(ctx context.Context) (r isolation.Records, revision int64, err error) {
	snap, err := p.Store.Snapshot(ctx)
	if err != nil {
		return r, 0, err
	}
	if r.Topology, err = p.Topology(ctx); err != nil {
		return r, 0, err
	}
	if r.Inventory, err = inventory.Load(ctx, snap); err != nil {
		return r, 0, err
	}
	r.Grants, _, err = records.Grants().List(ctx, snap, "")
	return r, snap.Revision, err
}
