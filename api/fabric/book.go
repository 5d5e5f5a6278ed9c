package fabric

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"portcullis/api/fabric/records"
	"portcullis/api/inventory"
	"portcullis/api/review"
	"portcullis/api/store"
	v1 "portcullis/api/v1"
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/sm"
)

// book is the state of a Link: what the store wants, the last report of the subnet manager, and the records that follow
// from it. It belongs to Run.
type book struct {
	clock    func() time.Time
	revision int64 // of the grants below
	grants   map[records.Key]grant
	cables   map[ib.GUID]ib.Place // ports of the inventory and where they belong
	hostOf   map[string][]ib.GUID // GUIDs by host, to forget what an import dropped
	owners   owners

	seen  *observed // last view, nil before the first
	began time.Time // when the first view came
	// settledOnce reports that a view was settled.
	settledOnce bool
	news        map[ib.GUID]bool // ports that came or went since that view
	sight       sight
	foreign     foreign
	takeover    takeover
	judged      bool      // the sight was, since the book was made
	told        v1.Sight  // to Options.OnSight
	written     time.Time // when nodes and state were last brought up to date
	stale       bool      // seen is newer than nodes and state

	mark     *review.Mark    // the state is in review; nil: it is not
	approved map[string]bool // hosts that were, in a review

	trustsState bool // Options.TrustsState

	memberships *sheet[records.Membership]
	ports       *sheet[records.Port]
	nodes       *sheet[v1.Node]
	sms         *sheet[v1.SM]
	tables      *sheet[review.Found]
}

// grant is a grant as the store has it.
type grant struct {
	withdrawn bool
	limited   bool
	modified  int64
	host      string
	cluster   string
	tenant    string
	epoch     int64
	adopted   bool // the port had it before, and nothing is proven of its host
	learned   time.Time
}

// grantOf returns a grant of the store, of which the sm role learns now unless it has it already.
func (b *book) grantOf(k records.Key, g *records.Grant, modified int64) grant {
	learned := b.grants[k].learned
	if b.grants[k].modified != modified || learned.IsZero() {
		learned = b.clock()
	}
	return grant{learned: learned, withdrawn: g.Withdrawn, limited: g.Limited, modified: modified, host: g.Host, cluster: g.Cluster, tenant: g.Tenant, epoch: g.Epoch, adopted: g.Adopted != ""}
}

// form returns a P_Key with the membership bit of the grant.
func (g grant) form(k ib.PKey) ib.PKey {
	if g.limited {
		return k.Limited()
	}
	return k.Full()
}

func newBook(now func() time.Time, l SightLimits) *book {
	return &book{
		clock: now, news: map[ib.GUID]bool{}, owners: newOwners(), memberships: newSheet(records.Memberships()), ports: newSheet(records.Ports()),
		nodes: newSheet(records.Nodes()), sms: newSheet(records.SMs()), sight: newSight(l), tables: newSheet(review.Tables()),
	}
}

// load reads everything as of one revision. When that fails, the former state stays.
func (b *book) load(ctx context.Context, from source) error {
	stored, err := list(ctx, from, records.Grants())
	if err != nil {
		return err
	}
	grants := map[records.Key]grant{}
	for _, g := range stored {
		k, err := records.ParseKey(g.Key)
		if err != nil {
			return err
		}
		grants[k] = b.grantOf(k, &g.Value, g.Modified)
	}
	hosts, err := list(ctx, from, inventory.Hosts())
	if err != nil {
		return err
	}
	err = errors.Join(b.memberships.load(ctx, from), b.ports.load(ctx, from), b.nodes.load(ctx, from), b.sms.load(ctx, from), b.sight.load(ctx, from),
		b.tables.load(ctx, from), b.takeover.load(ctx, from))
	if err != nil {
		return err
	}
	// The last that can fail: a mark of a review counts with the grants of the same revision.
	if err := b.loadReview(ctx, from); err != nil {
		return err
	}
	b.revision, b.grants, b.owners = from.Revision, grants, newOwners()
	b.cables, b.hostOf = map[ib.GUID]ib.Place{}, map[string][]ib.GUID{}
	for _, h := range hosts {
		b.host(h.Key, &h.Value)
	}
	b.prune()
	b.review()
	return nil
}

// prune drops memberships whose grant is gone.
func (b *book) prune() {
	for _, key := range b.memberships.keys() {
		k, err := records.ParseKey(key)
		if _, wanted := b.grants[k]; err != nil || !wanted {
			b.memberships.drop(key)
		}
	}
}

// host takes note of an inventory record; nil: it is gone.
func (b *book) host(id string, h *inventory.Host) {
	b.owners.host(id, h)
	for _, g := range b.hostOf[id] {
		delete(b.cables, g)
	}
	delete(b.hostOf, id)
	if h == nil {
		return
	}
	for _, p := range h.Ports() {
		b.cables[p.GUID] = p.Cable
		b.hostOf[id] = append(b.hostOf[id], p.GUID)
	}
}

// changed takes changes of the store, and reports whether the intent is a new
// one.
func (b *book) changed(c store.Changes) (wanted bool, err error) {
	b.revision = max(b.revision, c.Revision)
	inventoryChanged := false
	for _, ch := range c.Changes {
		b.takeover.changed(ch)
		reviewed, err := b.changeReview(ch)
		if err != nil {
			return false, err
		}
		wanted = wanted || reviewed
		if key, ok := records.Grants().KeyOf(ch.Key); ok {
			wanted = true
			if err := b.changeGrant(key, ch); err != nil {
				return false, err
			}
		}
		if id, ok := inventory.Hosts().KeyOf(ch.Key); ok {
			inventoryChanged, wanted = true, true
			if err := b.changeHost(id, ch); err != nil {
				return false, err
			}
		}
		if _, ok := records.AcceptedSights().KeyOf(ch.Key); ok && ch.Value != nil {
			rec, err := records.AcceptedSights().Decode(ch)
			if err != nil {
				return false, err
			}
			b.sight.accepted, b.stale = rec.Value, true
		}
	}
	if wanted || inventoryChanged {
		b.review()
	}
	return wanted, nil
}

func (b *book) changeGrant(key string, ch store.Change) error {
	k, err := records.ParseKey(key)
	if err != nil {
		return err
	}
	b.owners.renamed = true
	if ch.Value == nil {
		delete(b.grants, k)
		b.memberships.drop(key)
		return nil
	}
	rec, err := records.Grants().Decode(ch)
	if err == nil {
		b.grants[k] = b.grantOf(k, &rec.Value, rec.Modified)
	}
	return err
}

func (b *book) changeHost(id string, ch store.Change) error {
	if ch.Value == nil {
		b.host(id, nil)
		return nil
	}
	rec, err := inventory.Hosts().Decode(ch)
	if err == nil {
		b.host(id, &rec.Value)
	}
	return err
}

// intent returns everything wanted, in key order.
func (b *book) intent() sm.Intent {
	return b.wanted().intent
}

// wanted returns the intent, in key order, and the hosts of its grants.
func (b *book) wanted() wanted {
	w := wanted{intent: sm.Intent{Revision: b.revision}, known: b.grants != nil}
	in := &w.intent
	for _, k := range b.sortedGrants() {
		is := b.grants[k]
		g := sm.Grant{GUID: k.GUID, PKey: is.form(k.PKey), Place: k.Place}
		switch {
		case is.withdrawn:
			in.Absent = append(in.Absent, g)
		case b.holds(is.host):
			in.Held, w.held = append(in.Held, g), append(w.held, b.holder(k, &is))
		default:
			in.Grants, w.granted = append(in.Grants, g), append(w.granted, b.holder(k, &is))
		}
	}
	in.Keep = b.mark != nil && !b.trustsState
	in.Takeover = b.takesOver()
	in.Hosts = slices.Collect(maps.Values(b.cables))
	slices.SortFunc(in.Hosts, func(x, y ib.Place) int {
		return cmp.Or(cmp.Compare(x.Switch, y.Switch), cmp.Compare(x.Port, y.Port))
	})
	in.Hosts = slices.Compact(in.Hosts)
	return w
}

// holder returns whose a grant is: the host that it names, or the one that inventory has for the port or the place of an adopted one.
func (b *book) holder(k records.Key, g *grant) holder {
	if !g.adopted {
		return holder{host: g.host}
	}
	return holder{host: cmp.Or(b.owners.ports[k.GUID], b.owners.cables[k.Place]), adopted: true}
}

func (b *book) sortedGrants() []records.Key {
	out := make([]records.Key, 0, len(b.grants))
	for k := range b.grants {
		out = append(out, k)
	}
	slices.SortFunc(out, func(x, y records.Key) int {
		return cmp.Or(cmp.Compare(x.PKey, y.PKey), cmp.Compare(x.GUID, y.GUID),
			cmp.Compare(x.Place.Switch, y.Place.Switch), cmp.Compare(x.Place.Port, y.Place.Port))
	})
	return out
}

// pending returns up to n writes: first those that decide, then those that are shown.
func (b *book) pending(n int) []write {
	out := b.sight.pending(n)
	out = append(out, b.foreign.untold.pending(n-len(out))...)
	out = append(out, b.takeover.pending(n-len(out), b.takeoverDone)...)
	out = append(out, b.memberships.pending(n-len(out))...)
	out = append(out, b.ports.pending(n-len(out))...)
	out = append(out, b.tables.pending(n-len(out))...)
	out = append(out, b.nodes.pending(n-len(out))...)
	return append(out, b.sms.pending(n-len(out))...)
}

func watchEnded(err error) error {
	if err == nil {
		return errors.New("watch ended")
	}
	return fmt.Errorf("watch ended: %w", err)
}
