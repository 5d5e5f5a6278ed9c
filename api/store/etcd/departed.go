package etcd

import (
	"context"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// departed answers a question about its status to a member that was removed from its
// cluster and has not stopped yet. etcd panics then, since it looks for the member among
// those of the cluster, and the process would end before it reports the removal.
func departed(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (answer any, err error) {
	if info.FullMethod != etcdserverpb.Maintenance_Status_FullMethodName {
		return handler(ctx, req)
	}
	defer func() {
		if cause := recover(); cause != nil {
			answer, err = nil, status.Errorf(codes.Unavailable, "status of the member: %v", cause)
		}
	}()
	return handler(ctx, req)
}
