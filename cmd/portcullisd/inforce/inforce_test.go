package inforce

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"portcullis/api/fabric/query"
	"portcullis/api/store"
	"portcullis/api/store/memory"
	"portcullis/api/topology"
	"portcullis/cmd/portcullisd/command"
	"portcullis/fabricsm/sm"
	"portcullis/fabricsm/topospec"
)

// options are those of the role sm, whose store answers at once.
func options(st *store.Store, core sm.Config) Options {
	return Options{
		Store: st, Log: slog.New(slog.DiscardHandler), Now: time.Now, Core: func() sm.Config { return core },
		Observer: query.New(query.Options{}), Pass: func(context.Context, sm.Input) error { return nil }, Problem: func(string) {},
		Answered: func(_ context.Context, _ string, f func() error) error { return f() },
	}
}

// Without the role sm there is nothing to follow the topology, and revisions are kept.
func TestOtherRoles(t *testing.T) {
	t.Parallel()
	k := New(Options{Store: store.New(memory.New(time.Now), ""), Log: slog.New(slog.DiscardHandler), Now: time.Now, Core: func() sm.Config { return sm.Config{} }})
	follow, err := k.Start(t.Context())
	if follow != nil || err != nil {
		t.Errorf("start: %v", err)
	}
	if st, err := k.Revisions().Status(t.Context()); err != nil || st == nil {
		t.Errorf("status %+v, %v", st, err)
	}
	if switches, err := k.DeclaredSwitches(t.Context(), k.o.Store); err != nil || switches != nil {
		t.Errorf("declared switches %v, %v", switches, err)
	}
}

// damage has the store name a revision in force whose content it lacks.
func damage(t *testing.T, st *store.Store) {
	t.Helper()
	_, err := st.Update(t.Context(), func(tx *store.Tx) error {
		return topology.Heads().Put(tx, "head", topology.Head{Revision: 1, Mode: topospec.Enforce})
	})
	if err != nil {
		t.Fatal(err)
	}
}

// Without the revision in force no Subnet Manager is started. A file of the configuration is in force though.
func TestStartWithoutTheRevisionInForce(t *testing.T) {
	t.Parallel()
	st := store.New(memory.New(time.Now), "")
	damage(t, st)
	_, err := New(options(st, sm.Config{})).Start(t.Context())
	if err == nil || !strings.Contains(err.Error(), "the subnet manager is not started") || !strings.Contains(command.HintOf(err), "fabric.topology.file") {
		t.Errorf("start: %v; hint %q", err, command.HintOf(err))
	}
	file := sm.Config{Topology: sm.TopologyConfig{Spec: &topospec.Spec{}, Mode: topospec.Observe}}
	k := New(options(st, file))
	if follow, err := k.Start(t.Context()); err != nil || follow == nil {
		t.Errorf("with a topology in a file: %v", err)
	}
	if got := k.With(t.Context(), file); got.Topology != file.Topology {
		t.Errorf("in force is %+v, want that of the file", got.Topology)
	}
}

// A topology that cannot be read any more stays in force as it was last.
func TestUnreadableTopologyStays(t *testing.T) {
	t.Parallel()
	st := store.New(memory.New(time.Now), "")
	k := New(options(st, sm.Config{}))
	if _, err := k.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	spec := &topospec.Spec{}
	if !k.put(t.Context(), topology.Wanted{Spec: spec, Mode: topospec.Warn}) {
		t.Fatal("the subnet manager takes nothing")
	}
	damage(t, st)
	if got := k.With(t.Context(), sm.Config{}); got.Topology.Spec != spec || got.Topology.Mode != topospec.Warn {
		t.Errorf("in force is %+v, want what was in force last", got.Topology)
	}
	k.o.Pass = func(context.Context, sm.Input) error { return errors.New("not attached") }
	if k.put(t.Context(), topology.Wanted{}) || k.last.Load().Spec != spec {
		t.Error("what the subnet manager did not take counts as in force")
	}
}
