package etcd

import (
	"context"
	"errors"
	"fmt"
	"syscall"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"

	"portcullis/api/store"
)

// InUseError says that another process holds the state directory.
type InUseError struct {
	Dir string
	PID int // 0 when the holder did not say
}

func (e *InUseError) Error() string {
	who := "another process"
	if e.PID != 0 {
		who = fmt.Sprintf("process %d", e.PID)
	}
	return fmt.Sprintf("state directory %s is in use by %s: stop it, or name another directory for this service", e.Dir, who)
}

// explain turns etcd's errors into ours.
func explain(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, rpctypes.ErrNoSpace), isFull(err):
		return fmt.Errorf("%w: free space on the state directory's disk; the store is tried again by itself", store.ErrFull)
	case errors.Is(err, rpctypes.ErrCompacted):
		return store.ErrCompacted
	case errors.Is(err, rpctypes.ErrLeaseNotFound):
		return store.ErrLeaseEnded
	case errors.Is(err, rpctypes.ErrRequestTooLarge), errors.Is(err, rpctypes.ErrTooManyOps):
		return fmt.Errorf("change is too large for one transaction (%v): split it, or raise --max-txn-ops and --max-request-bytes of your etcd", err)
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	default:
		return fmt.Errorf("store: %w", err)
	}
}

// isFull reports a disk, quota or file size limit that is reached.
func isFull(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) || errors.Is(err, syscall.EFBIG)
}
