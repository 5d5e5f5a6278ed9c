package etcd

import (
	"context"
	"testing"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// TestDeparted: a panic of the status of a member is an error of the call, and no other is.
func TestDeparted(t *testing.T) {
	gone := func(context.Context, any) (any, error) { panic("failed to find local ID in cluster members") }
	call := func(method string) (err error, panicked bool) {
		defer func() { panicked = recover() != nil }()
		_, err = departed(t.Context(), nil, &grpc.UnaryServerInfo{FullMethod: method}, gone)
		return err, false
	}
	if err, panicked := call(etcdserverpb.Maintenance_Status_FullMethodName); panicked || status.Code(err) != codes.Unavailable {
		t.Errorf("status: %v, panicked %v; want the error Unavailable", err, panicked)
	}
	if err, panicked := call(etcdserverpb.KV_Put_FullMethodName); !panicked {
		t.Errorf("put: %v; want its panic to go on", err)
	}
}
