package api

import (
	"context"
	"fmt"
	"net"
	"net/http"

	"github.com/danielgtaylor/huma/v2"
	"golang.org/x/sys/unix"

	"portcullis/api/problem"
	v1 "portcullis/api/v1"
)

// HostRemover takes hosts off their clusters, also while the store is away. Errors are as those of Backend.
type HostRemover interface {
	// Host shows a host, as the store says, or as it said last.
	Host(ctx context.Context, id string) (*v1.Host, error)
	// Release withdraws the host's admission. While the store is away it does so in the fabric, and the store is updated
	// later; the guard v1.GuardRecorded says so.
	Release(ctx context.Context, actor, id string) (*v1.Host, error)
	// Fence is Release, and marks the switch ports of the host as unhealthy.
	Fence(ctx context.Context, actor, id string, f v1.Fence) (*v1.Host, error)
}

type fenceInput struct {
	MatchInput
	ID   string `path:"id" maxLength:"128" doc:"host id as in inventory"`
	Body v1.Fence
}

// localActor names the actor of a request on a socket that the file system guards: the user whose process connected, as the
// kernel reports it.
func localActor(ctx context.Context) string {
	if uid, known := ctx.Value(callerKey{}).(uint32); known {
		return fmt.Sprintf("local socket, uid %d", uid)
	}
	return "local socket"
}

// callerKey has the uid of the process at the other end of a unix socket.
type callerKey struct{}

// withPeer adds the uid of the process at the other end of a connection to ctx, if the
// kernel knows it.
func withPeer(ctx context.Context, c net.Conn) context.Context {
	u, ok := c.(*net.UnixConn)
	if !ok {
		return ctx
	}
	raw, err := u.SyscallConn()
	if err != nil {
		return ctx
	}
	var peer *unix.Ucred
	if e := raw.Control(func(fd uintptr) { peer, err = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED) }); e != nil || err != nil {
		return ctx
	}
	return context.WithValue(ctx, callerKey{}, peer.Uid)
}

// fenceRoute registers the fence of the service. The ports are shut by the instance that leads.
func fenceRoute(s *Server, a huma.API) {
	register(s, a, operation{
		id: "fence-host", method: http.MethodPost, path: "/v1/hosts/{id}/fence", tag: "hosts", leader: true,
		summary: "Withdraw the host's admission and mark its switch ports as unhealthy",
		access:  accessOperate, status: http.StatusAccepted,
	}, func(ctx context.Context, in *fenceInput) (*taggedOutput[v1.Host], error) {
		if s.remover == nil {
			return nil, problem.New(http.StatusServiceUnavailable, v1.CodeSMElsewhere, "the subnet manager runs in another process, and it shuts the ports",
				"release it: portcullis host release "+in.ID+"; or on the machine of that process: portcullis --socket PATH host fence "+in.ID)
		}
		return taggedHost(s.remover.Fence(ctx, actor(ctx), in.ID, in.Body))
	})
}

// removalRoutes registers what a local server does to hosts.
func (s *Server) removalRoutes(a huma.API, r HostRemover) {
	register(s, a, operation{
		id: "get-host", method: http.MethodGet, path: "/v1/hosts/{id}", tag: "hosts",
		summary: "Show a host, as the store says, or as it said last", access: accessView,
	}, func(ctx context.Context, in *hostInput) (*taggedOutput[v1.Host], error) {
		return taggedHost(r.Host(ctx, in.ID))
	})
	register(s, a, operation{
		id: "release-host", method: http.MethodPost, path: "/v1/hosts/{id}/release", tag: "hosts",
		summary: "Withdraw the host's admission, also while the store is away",
		access:  accessOperate, status: http.StatusAccepted,
	}, func(ctx context.Context, in *changeHostInput) (*taggedOutput[v1.Host], error) {
		return taggedHost(r.Release(ctx, localActor(ctx), in.ID))
	})
	register(s, a, operation{
		id: "fence-host", method: http.MethodPost, path: "/v1/hosts/{id}/fence", tag: "hosts",
		summary: "Withdraw the host's admission and mark its switch ports as unhealthy, also while the store is away",
		access:  accessOperate, status: http.StatusAccepted,
	}, func(ctx context.Context, in *fenceInput) (*taggedOutput[v1.Host], error) {
		return taggedHost(r.Fence(ctx, localActor(ctx), in.ID, in.Body))
	})
}
