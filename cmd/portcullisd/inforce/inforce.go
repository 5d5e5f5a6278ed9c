// Package inforce keeps the declared topology in force: the Subnet Manager follows the revision that the store has, from the
// moment it attaches.
package inforce

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"portcullis/api/fabric/query"
	"portcullis/api/store"
	"portcullis/api/topology"
	"portcullis/cmd/portcullisd/command"
	"portcullis/cmd/portcullisd/inputs"
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/sm"
	"portcullis/fabricsm/sm/settling"
	"portcullis/fabricsm/topospec"
)

// Options are what a Keeper is made of.
type Options struct {
	Store *store.Store
	Log   *slog.Logger
	Now   func() time.Time
	Rules topology.Rules
	Core  func() sm.Config // the configuration in use; a topology in it is in force, whatever the store has

	// The role sm has all of these, and other roles none.
	Observer *query.Observer
	Pass     func(context.Context, sm.Input) error // has the Subnet Manager take an input
	Problem  func(problem string)                  // called with why the revision cannot be followed; "" while it can
	// Opens refuses a topology under which packets would pass that do not pass now.
	Opens func(ctx context.Context, next *topospec.Spec) error

	// Answered calls f until the store answers. why says what it is asked for.
	Answered func(ctx context.Context, why string, f func() error) error
}

// Keeper keeps the revisions of the declared topology, and one of them in force.
type Keeper struct {
	o         Options
	revisions *topology.Service
	last      atomic.Pointer[topology.Wanted] // what was in force last
}

// New returns a keeper. Nothing is in force before Start.
func New(o Options) *Keeper {
	k := &Keeper{o: o}
	to := topology.Options{Store: o.Store, Log: o.Log, Now: o.Now, FromFile: k.fromFile, Rules: o.Rules}
	if o.Observer != nil {
		to.Problem, to.Look, to.Owners, to.Opens = o.Problem, k.Sight, owners{o.Observer}, o.Opens
	}
	k.revisions = topology.New(to)
	return k
}

// Revisions returns what answers operators about revisions.
func (k *Keeper) Revisions() *topology.Service { return k.revisions }

// Start reads the revision in force, and returns what has the Subnet Manager follow it until its context ends; nil without the
// role sm. Without the revision no Subnet Manager may be started: it would open what is closed.
func (k *Keeper) Start(ctx context.Context) (follow func(context.Context) error, _ error) {
	if k.o.Observer == nil {
		return nil, nil
	}
	_, fromFile := k.fromFile()
	var first topology.Wanted
	read := func() (err error) { first, err = k.revisions.Wanted(ctx); return err }
	err := read()
	if err != nil && !fromFile {
		err = k.o.Answered(ctx, "to read the revision of the topology that is in force", read)
	}
	switch {
	case err != nil && fromFile:
		k.o.Log.Error("revisions of the topology cannot be read; fabric.topology.file is in force", "error", err)
	case err != nil:
		return nil, command.Hint(fmt.Errorf("the subnet manager is not started: %w", err),
			"without it ports that are switched off would be opened: restore the state directory from a backup, or name the topology in fabric.topology.file")
	}
	k.last.Store(&first)
	return func(ctx context.Context) error { return k.revisions.Run(ctx, first, k.put) }, nil
}

// fromFile reports whether the configuration names the topology in force, and in which mode.
func (k *Keeper) fromFile() (topospec.Mode, bool) {
	t := k.o.Core().Topology
	return t.Mode, t.Spec != nil
}

// DeclaredSwitches returns the ports of each switch of the topology in force, nil without one.
func (k *Keeper) DeclaredSwitches(ctx context.Context, r store.Reader) (map[ib.GUID]int, error) {
	if spec := k.o.Core().Topology.Spec; spec != nil {
		return topology.Switches(spec), nil
	}
	return k.revisions.DeclaredSwitches(ctx, r)
}

// Sight returns the fabric as the subnet manager showed it last. Only the role sm has it.
func (k *Keeper) Sight() (*topology.Sight, error) {
	v, err := k.o.Observer.View()
	if err != nil {
		return nil, err
	}
	return &topology.Sight{
		At: v.Time, Fabric: v.Fabric, SM: v.Fabric.PortByGUID(v.GUID), Placed: v.Topology,
		Complete: v.State == ib.SMMaster && v.Progress.Phase != settling.Discovery,
	}, nil
}

// owners says whose a port is.
type owners struct{ o *query.Observer }

// Owner implements simulate.Directory.
func (w owners) Owner(at ib.Place, node ib.GUID) (host, tenant string) { return w.o.OwnerAt(at, node) }

// put passes the subnet manager what is wanted. Where none is attached, it begins with what is wanted then.
func (k *Keeper) put(ctx context.Context, w topology.Wanted) (taken bool) {
	ctx, cancel := context.WithTimeout(ctx, inputs.MaxWait)
	defer cancel()
	err := k.o.Pass(ctx, topologySet(&w))
	if err == nil {
		k.last.Store(&w)
	}
	return err == nil
}

func topologySet(w *topology.Wanted) *sm.TopologySet {
	by := w.By
	if by == "" {
		by = "service"
	}
	return &sm.TopologySet{Spec: w.Spec, Mode: w.Mode, By: by, Back: w.Back}
}

// With returns a configuration with the topology that is wanted in force. If it cannot be read, the one last in
// force is used: nothing is opened by that.
func (k *Keeper) With(ctx context.Context, c sm.Config) sm.Config {
	if c.Topology.Spec == nil {
		w := k.wanted(ctx)
		c.Topology = sm.TopologyConfig{Spec: w.Spec, Mode: w.Mode, Back: w.Back}
	}
	return c
}

// Declared returns the topology that is in force by a configuration or the records, nil: none is. It fails where the records cannot be read: what
// follows from an earlier topology may not be true any more.
func (k *Keeper) Declared(ctx context.Context, c sm.Config) (*topospec.Spec, error) {
	if c.Topology.Spec != nil {
		return c.Topology.Spec, nil
	}
	w, err := k.revisions.Wanted(ctx)
	if err != nil {
		return nil, fmt.Errorf("read the declared topology that is in force: %w", err)
	}
	return w.Spec, nil
}

func (k *Keeper) wanted(ctx context.Context) topology.Wanted {
	w, err := k.revisions.Wanted(ctx)
	if err == nil {
		k.last.Store(&w)
		return w
	}
	k.o.Log.Error("the declared topology cannot be read; what was in force stays", "error", err)
	return *k.last.Load()
}

// SetRules changes the rules of revisions.
func (k *Keeper) SetRules(r topology.Rules) { k.revisions.SetRules(r) }

// OnEvent takes an event of the subnet manager. It does not block.
func (k *Keeper) OnEvent(e sm.Event) { k.revisions.OnEvent(e) }

// OnView takes that there is a new view. It does not block.
func (k *Keeper) OnView() { k.revisions.OnView() }
