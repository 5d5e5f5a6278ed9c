package main

import (
	"context"
	"log/slog"
	"net"
	"strconv"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rogpeppe/go-internal/testscript"

	"portcullis/api"
	"portcullis/api/fabric/query"
	"portcullis/api/ifmatch"
	"portcullis/api/refusal"
	v1 "portcullis/api/v1"
	"portcullis/fabricsm/ib"
)

// away is what a service does for hosts on its socket while its store is away. It knows h1,
// in assignment 4.
type away struct{ removed bool }

func (a *away) host(id string) (*v1.Host, error) {
	if id != "h1" {
		return nil, &refusal.Error{Code: "host_unknown", Status: refusal.NotFound, Detail: "host " + id + " is not in inventory as the store said last", Hint: "the store is away; see /readyz"}
	}
	h := &v1.Host{
		ID: id, Tenant: "acme", Cluster: "acme-1", Epoch: 4,
		HCAs: []v1.HCA{{NodeGUID: 0x10, Ports: []v1.HCAPort{{Num: 1, GUID: 0x11, Cabled: ib.Place{Switch: 0x20, Port: 1}}}}},
	}
	h.Status.Phase, h.Status.PKey = v1.PhaseAdmitted, 0x8001
	h.Status.Guards = []v1.Guard{{Name: v1.GuardRecorded, Detail: "the store is away: this is what it said last"}}
	if a.removed {
		h.Cluster, h.Tenant, h.Status.PKey, h.Status.Phase = "", "", 0, v1.PhaseReleasing
		h.Status.Guards[0].Detail = "the store is away: the order is carried out in the fabric"
	}
	return h, nil
}

func (a *away) Host(_ context.Context, id string) (*v1.Host, error) { return a.host(id) }

func (a *away) Release(ctx context.Context, _, id string) (*v1.Host, error) {
	h, err := a.host(id)
	if err == nil && !ifmatch.Matches(ctx, strconv.FormatInt(h.Epoch, 10)) {
		err = &refusal.Error{Code: v1.CodeChanged, Status: refusal.Changed, Detail: "the store said last that assignment 4 holds"}
	}
	if err != nil {
		return nil, err
	}
	a.removed = true
	return a.host(id)
}

func (a *away) Fence(ctx context.Context, actor, id string, _ v1.Fence) (*v1.Host, error) {
	return a.Release(ctx, actor, id)
}

// TestHostsAreRemovedOverASocket: release and fence by --socket, while the store is away.
func TestHostsAreRemovedOverASocket(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: "testdata/removal",
		Setup: func(e *testscript.Env) error {
			e.Setenv("HOME", e.WorkDir)
			l, err := net.Listen("unix", e.WorkDir+"/sm.sock")
			if err != nil {
				return err
			}
			s := api.NewLocal(api.LocalOptions{
				Fabric: query.New(query.Options{}), Hosts: &away{}, Version: "v0",
				Log: slog.New(slog.DiscardHandler), Registry: prometheus.NewRegistry(),
			})
			serveLocal(t, e, s, l)
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"exits": exits},
	})
}
