package fabric

import (
	"context"
	"log/slog"
	"reflect"
	"sync"
	"sync/atomic"
	"time"

	"portcullis/api/fabric/owed"
	"portcullis/api/fabric/records"
	"portcullis/api/inventory"
	"portcullis/api/store"
	"portcullis/api/store/mirror"
	v1 "portcullis/api/v1"
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/sa/alias"
	"portcullis/fabricsm/sm"
)

const (
	// heartbeat is how often the subnet manager's record is written although
	// nothing changed.
	heartbeat = 10 * time.Second
	// nodesEvery is the shortest time between two writes of nodes and state:
	// people look at them, nothing is decided by them.
	nodesEvery = time.Second
	// retryPause is the rest after the store did not answer.
	retryPause = time.Second
	// maxWrites bounds the records of one transaction. An etcd that is not
	// ours takes 128 by default.
	maxWrites = 100
)

// Options configure a Link. Now is time.Now when nil.
type Options struct {
	Store *store.Store
	Log   *slog.Logger
	Now   func() time.Time
	// Guard is called in each transaction that writes what the subnet manager reports. Its
	// error ends the transaction: another instance leads, for example. nil: always.
	Guard func(context.Context, *store.Tx) error
	// OnPartitions is called by Run with the partitions there are, by base P_Key, within nodesEvery of a change; nil: it is
	// not called. The map is the receiver's.
	OnPartitions func(map[ib.PKey]Partition)
	// TrustsState has a restored state count although the fabric differs: for drills alone, which show what a review
	// is for.
	TrustsState bool
	// RemovesForeign has P_Keys that no record explains removed also from a fabric that was never managed.
	RemovesForeign bool
	// Reserved are P_Keys that no tenant gets: they are kept nowhere.
	Reserved []ib.PKey
	// OnAliases is called before that, and as soon after a change, with the alias GUIDs that the inventory lets ports have;
	// nil: it is not called. The list is the receiver's.
	OnAliases func(alias.List)
	// Sight says when the subnet manager is partly blind; the zero value means the defaults.
	Sight SightLimits
	// Run calls OnSight with whether the subnet manager sees the fabric that it knows, at first and after each
	// change; nil: it is not called.
	OnSight func(v1.Sight)
	// Owed keeps what the store does not take, over several Links; nil: it is kept in
	// memory, by this Link.
	Owed *owed.Keeper
	// Before is the Link of the attachment before, whose intent is in force until the store
	// says otherwise; nil: there was none.
	Before *Link
	// Ahead are copies of what is read first, made before this instance led, of a revision at which nothing but this Link
	// writes Facts any longer. nil: everything is read from the store.
	Ahead *mirror.Copies
}

// Ahead returns the collections whose copies Options.Ahead takes.
func Ahead() []mirror.Collection {
	return []mirror.Collection{
		mirror.Of(Facts()), mirror.Of(records.Grants()), mirror.Of(inventory.Hosts()), mirror.Of(records.Memberships()), mirror.Of(records.Ports()),
		mirror.Of(records.Nodes()), mirror.Of(records.Takeovers()), mirror.Of(records.Finds()),
	}
}

// Link connects one subnet manager with the store. Its methods may be called
// from any goroutine; Run must be running.
type Link struct {
	store   *store.Store
	log     *slog.Logger
	now     func() time.Time
	guard   func(context.Context, *store.Tx) error
	termed  bool // records depend on a term, so none is owed
	intents chan sm.Intent

	onPartitions func(map[ib.PKey]Partition)
	onAliases    func(alias.List)
	onSight      func(v1.Sight)
	limits       SightLimits
	trustsState  bool
	reserved     []ib.PKey

	removesForeign bool

	ahead struct{ facts, book atomic.Pointer[mirror.Copies] } // until they are used, once each

	owners atomic.Pointer[naming]
	owed   *owed.Keeper

	saying sync.Mutex // of one intent at a time
	said   wanted     // last, before removals were taken out

	mu     sync.Mutex
	events []sm.Event    // not yet taken by Run, in order
	view   *sm.View      // newest, nil when taken
	known  int           // how many of the events the newest view that is no repetition knows; -1: none came since the last was taken
	wake   chan struct{} // holds one token while events or view wait
}

// New makes a Link. Nothing runs until Run.
func New(o Options) *Link {
	if o.Now == nil {
		o.Now = time.Now
	}
	termed := o.Guard != nil
	if !termed {
		o.Guard = always
	}
	l := &Link{
		store: o.Store, guard: o.Guard, termed: termed, log: o.Log, onPartitions: o.OnPartitions, onAliases: o.OnAliases, onSight: o.OnSight,
		trustsState: o.TrustsState, removesForeign: o.RemovesForeign, reserved: o.Reserved, limits: o.Sight, now: func() time.Time { return o.Now().UTC().Round(0) },
		intents: make(chan sm.Intent, 1), wake: make(chan struct{}, 1), owed: o.Owed, known: -1,
	}
	if l.owed == nil {
		l.owed = owed.New(o.Log)
	}
	l.ahead.facts.Store(o.Ahead)
	l.ahead.book.Store(o.Ahead)
	if o.Before != nil {
		l.owners.Store(o.Before.naming())
		l.say(o.Before.lastSaid())
	}
	return l
}

// always is a Guard of one that leads whatever the store says.
func always(context.Context, *store.Tx) error { return nil }

// Intents returns a channel of what is wanted, newest only: an intent that was not taken yet is replaced.
func (l *Link) Intents() <-chan sm.Intent { return l.intents }

// Hosts returns inventory's names of nodes by GUID, not older than nodesEvery. The map must not be written to.
func (l *Link) Hosts() map[ib.GUID]string { return l.naming().hosts }

// Cables returns inventory's names of hosts by the switch port they are cabled to. Tenants returns their tenants by that
// name. Both are like Hosts.
func (l *Link) Cables() map[ib.Place]string { return l.naming().cables }

// Tenants returns the tenants of hosts; see Cables.
func (l *Link) Tenants() map[string]string { return l.naming().tenants }

func (l *Link) naming() *naming {
	if n := l.owners.Load(); n != nil {
		return n
	}
	return &naming{}
}

// name makes the names known if they changed.
func (l *Link) name(b *book) {
	if b.owners.renamed {
		b.owners.renamed = false
		l.owners.Store(b.naming())
		if l.onAliases != nil {
			l.onAliases(b.owners.mayBe())
		}
		if l.onPartitions != nil {
			l.onPartitions(b.partitions())
		}
	}
}

// tellSight calls OnSight if the sight changed.
func (l *Link) tellSight(b *book) {
	if s := b.sight.newest(); l.onSight != nil && b.judged && !reflect.DeepEqual(s, b.told) {
		b.told = s
		l.onSight(s)
	}
}

// OnEvent takes an event of the subnet manager. It does not block.
func (l *Link) OnEvent(ev sm.Event) {
	l.mu.Lock()
	l.events = append(l.events, ev)
	l.mu.Unlock()
	l.poke()
}

// OnView takes a view of the subnet manager. It does not block. If several views come, only the newest counts.
func (l *Link) OnView(v *sm.View) {
	l.mu.Lock()
	if l.view = v; !v.Repeats {
		l.known = len(l.events)
	}
	l.mu.Unlock()
	l.poke()
}

func (l *Link) poke() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// take returns what has come since it was last called.
func (l *Link) take() (r report) {
	l.mu.Lock()
	defer l.mu.Unlock()
	r = report{events: l.events, view: l.view, known: l.known}
	l.events, l.view, l.known = nil, nil, -1
	return r
}

// Run keeps intent and records up to date until ctx ends. It outlives every
// failure of the store: the fabric keeps its last intent meanwhile.
func (l *Link) Run(ctx context.Context) error {
	b := newBook(l.now, l.limits)
	b.trustsState, b.takeover.reserved = l.trustsState, l.reserved
	for ctx.Err() == nil {
		err := l.follow(ctx, b)
		if ctx.Err() != nil {
			return nil
		}
		l.log.Error("fabric records do not follow the store", "err", err, "retry_in", retryPause)
		l.alone(ctx, b)
	}
	return nil
}

// alone takes what the subnet manager reports while the store does not answer. The names of the store's last state are
// known from the beginning: operators remove hosts by name.
func (l *Link) alone(ctx context.Context, b *book) {
	if b.grants != nil {
		l.name(b)
	}
	pause := time.NewTimer(retryPause)
	defer pause.Stop()
	for {
		select {
		case <-pause.C:
			return
		case <-l.wake:
			if b.observe(l.take()) {
				l.publish(b)
			}
		case <-ctx.Done():
			return
		}
	}
}

// follow loads what the store holds and then moves news in both directions.
func (l *Link) follow(ctx context.Context, b *book) error {
	snap, err := l.load(ctx, b)
	if err != nil {
		return err
	}
	l.publish(b)
	l.name(b)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	changes := l.store.Watch(ctx, "", snap.Revision)
	beat := time.NewTicker(nodesEvery)
	defer beat.Stop()
	for {
		l.tellSight(b)
		if err := l.write(ctx, b); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case c, ok := <-changes:
			if !ok || c.Err != nil {
				return watchEnded(c.Err)
			}
			wanted, err := b.changed(c)
			if err != nil {
				return err
			}
			if wanted {
				l.publish(b)
			}
		case <-l.wake:
			if b.observe(l.take()) {
				l.publish(b)
			}
		case <-beat.C:
			b.tick()
			l.name(b)
			if l.owed.Removes() {
				l.publish(b) // until the store has what operators removed meanwhile
			}
		}
	}
}

// write brings what differs into the store.
func (l *Link) write(ctx context.Context, b *book) error {
	for {
		batch := b.pending(maxWrites)
		if len(batch) == 0 {
			return nil
		}
		if err := l.put(ctx, batch); err != nil {
			return err
		}
		for _, w := range batch {
			w.done()
		}
		if b.tookOver() {
			l.log.Info("the takeover of the fabric is over", "began", b.takeover.record.Began)
			l.publish(b)
		}
	}
}

// load reads everything of the store.
func (l *Link) load(ctx context.Context, b *book) (store.Snapshot, error) {
	ctx, cancel := context.WithTimeout(ctx, saveTimeout)
	defer cancel()
	if copies := l.ahead.book.Swap(nil); copies != nil {
		snap := l.store.At(copies.Revision())
		return snap, b.load(ctx, source{snap, copies})
	}
	snap, err := l.store.Snapshot(ctx)
	if err != nil {
		return snap, err
	}
	return snap, b.load(ctx, source{Snapshot: snap})
}

func (l *Link) put(ctx context.Context, batch []write) error {
	ctx, cancel := context.WithTimeout(ctx, saveTimeout)
	defer cancel()
	_, err := l.store.Update(ctx, func(tx *store.Tx) error {
		if err := l.guard(ctx, tx); err != nil {
			return err
		}
		for _, w := range batch {
			if err := w.put(ctx, tx); err != nil {
				return err
			}
		}
		return nil
	})
	return err
}
