package query

import (
	"reflect"
	"sync/atomic"
	"time"

	"portcullis/api/refusal"
	v1 "portcullis/api/v1"
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/sa"
	"portcullis/fabricsm/sm"
	"portcullis/fabricsm/sm/keymgr"
)

// Options configure an Observer. All fields may be left out.
type Options struct {
	// Hosts returns inventory's names by node GUID. The map is not written to once it was returned.
	Hosts func() map[ib.GUID]string
	// Cables returns inventory's names by the switch port that a host is cabled to. Tenants returns the tenants of hosts by
	// that name. Neither map is written to.
	Cables  func() map[ib.Place]string
	Tenants func() map[string]string
	Now     func() time.Time // time.Now when nil
	// Counters are those of the ports of the fabric; nil: they are not read.
	Counters Counters
}

// Observer keeps what a subnet manager showed last and answers questions about
// it. It is safe for concurrent use.
type Observer struct {
	hosts          func() map[ib.GUID]string
	cables         func() map[ib.Place]string
	tenants        func() map[string]string
	now            func() time.Time
	started        time.Time
	counters       Counters
	descs          *descs
	newest         atomic.Pointer[index]
	classes        atomic.Pointer[keymgr.Status]
	administration atomic.Pointer[sa.Status]
	sight          atomic.Pointer[v1.Sight]
	summed         atomic.Pointer[violationSum]
	log            history
	dumps          atomic.Int32 // being written
}

// New makes an Observer that has seen nothing yet.
func New(o Options) *Observer {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Hosts == nil {
		o.Hosts = func() map[ib.GUID]string { return nil }
	}
	if o.Cables == nil {
		o.Cables = func() map[ib.Place]string { return nil }
	}
	if o.Tenants == nil {
		o.Tenants = func() map[string]string { return nil }
	}
	return &Observer{hosts: o.Hosts, cables: o.Cables, tenants: o.Tenants, now: o.Now, counters: o.Counters, started: o.Now(), descs: newDescs()}
}

// OnView takes a view of the subnet manager. It does not block.
func (o *Observer) OnView(v *sm.View) {
	if v != nil && v.Fabric != nil {
		o.newest.Store(newIndex(v, o.hosts()))
	}
}

// OnEvent takes an event of the subnet manager. It does not block.
func (o *Observer) OnEvent(e sm.Event) { o.log.add(o.now(), e, o.ownerOf(offender(e))) }

// OnSight takes whether the subnet manager sees the fabric that it knows.
func (o *Observer) OnSight(s v1.Sight) { o.sight.Store(&s) }

// judged returns what OnSight took last, the zero Sight before.
func (o *Observer) judged() v1.Sight {
	if s := o.sight.Load(); s != nil {
		return *s
	}
	return v1.Sight{}
}

// View returns the newest view of the subnet manager. It must not be written to.
func (o *Observer) View() (*sm.View, error) {
	x, err := o.seen()
	if err != nil {
		return nil, err
	}
	return x.View, nil
}

// OwnerAt returns the host at a place where a node is seen, and its tenant, as inventory has them; "" for none. A node
// counts only where nothing is cabled to the place.
func (o *Observer) OwnerAt(pl ib.Place, node ib.GUID) (host, tenant string) {
	if host = o.cables()[pl]; host == "" {
		host = o.hosts()[node]
	}
	return host, o.tenants()[host]
}

// Gone forgets the fabric: the subnet manager has lost it.
func (o *Observer) Gone() {
	o.newest.Store(nil)
	o.administration.Store(nil)
	o.summed.Store(nil)
}

// ErrUnseen is what is answered before the subnet manager has shown anything.
func unseen() error {
	return &refusal.Error{
		Code: "fabric_unseen", Status: refusal.Unavailable,
		Detail: "the subnet manager has not seen the fabric yet",
		Hint:   "portcullis sm status shows why; if it has just started, ask again",
	}
}

// seen returns the newest view.
func (o *Observer) seen() (*index, error) {
	x := o.newest.Load()
	if x == nil {
		return nil, unseen()
	}
	if now := o.hosts(); !sameMap(now, x.hostOf) { // inventory changed, the fabric did not
		x = newIndex(x.View, now)
	}
	return x, nil
}

// asked returns the newest view, and where the requested page begins.
func (o *Observer) asked(after string) (*index, position, error) {
	x, err := o.seen()
	if err != nil {
		return nil, position{}, err
	}
	at, err := parsePosition(after)
	if err != nil {
		return nil, position{}, err
	}
	x.ready()
	return x, at, nil
}

func sameMap(a, b map[ib.GUID]string) bool {
	return reflect.ValueOf(a).Pointer() == reflect.ValueOf(b).Pointer()
}

// Standing says whether what Nodes, Links and Ports list may have changed.
type Standing struct {
	Version any // differs where they may list something else; comparable
	Master  bool
	Settled bool // and all inputs of the service have arrived
}

// Standing returns what is seen now, in short.
func (o *Observer) Standing() (Standing, error) {
	type version struct {
		view  *sm.View
		hosts uintptr
	}
	x, err := o.seen()
	if err != nil {
		return Standing{}, err
	}
	return Standing{
		Version: version{x.View, reflect.ValueOf(x.hostOf).Pointer()}, Master: x.State == ib.SMMaster, Settled: x.Settled && x.Intent,
	}, nil
}
