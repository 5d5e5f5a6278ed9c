package etcd

import (
	"context"
	"errors"
	"math"
	"slices"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"portcullis/api/store"
)

// backend is the store.Backend over a client of an embedded or foreign etcd.
type backend struct {
	client *clientv3.Client
	member mortal   // nil when the etcd is not ours
	remote *Remote  // nil when it is
	lock   *dirLock // of the state directory beside a remote etcd, nil without one
}

// mortal is an etcd member of ours, in this process or in one of its own.
type mortal interface {
	// dead is closed when the member cannot serve any longer; err then says why.
	dead() <-chan struct{}
	// err returns nil while the member lives.
	err() error
	// stop ends the member in order and releases what it holds.
	stop() error
	// abandon releases what a dead member holds.
	abandon() error
}

func (e *backend) Read(ctx context.Context, key string, prefix bool, rev int64) (store.Items, error) {
	opts := []clientv3.OpOption{clientv3.WithRev(rev)}
	if prefix {
		opts = append(opts, clientv3.WithPrefix())
	}
	r, err := serve(ctx, e, func(ctx context.Context) (*clientv3.GetResponse, error) { return e.client.Get(ctx, key, opts...) })
	if err != nil {
		return store.Items{}, e.explain(err)
	}
	return items(r, rev), nil
}

// Range implements store.Backend.
func (e *backend) Range(ctx context.Context, prefix, after string, limit int, rev int64) (store.Items, error) {
	from := prefix
	if after != "" {
		from = after + "\x00" // the first key that can follow it
	}
	opts := []clientv3.OpOption{
		clientv3.WithRange(clientv3.GetPrefixRangeEnd(prefix)), clientv3.WithLimit(int64(limit)), clientv3.WithRev(rev),
	}
	r, err := serve(ctx, e, func(ctx context.Context) (*clientv3.GetResponse, error) { return e.client.Get(ctx, from, opts...) })
	if err != nil {
		return store.Items{}, e.explain(err)
	}
	return items(r, rev), nil
}

// maxGets is how many keys one transaction reads: as many operations as an etcd takes by default.
const maxGets = 128

// Get implements store.Backend.
func (e *backend) Get(ctx context.Context, keys []string, rev int64) (store.Items, error) {
	out := store.Items{Items: make([]store.Item, 0, len(keys)), Revision: rev}
	for part := range slices.Chunk(keys, maxGets) {
		ops := make([]clientv3.Op, len(part))
		for i, k := range part {
			ops[i] = clientv3.OpGet(k, clientv3.WithRev(out.Revision))
		}
		r, err := serve(ctx, e, func(ctx context.Context) (*clientv3.TxnResponse, error) {
			return e.client.Txn(ctx).Then(ops...).Commit()
		})
		if err != nil {
			return store.Items{}, e.explain(err)
		}
		if out.Revision == 0 {
			out.Revision = r.Header.Revision
		}
		for _, one := range r.Responses {
			out.Items = append(out.Items, items((*clientv3.GetResponse)(one.GetResponseRange()), out.Revision).Items...)
		}
	}
	return out, nil
}

// items converts an answer that was asked for as of rev.
func items(r *clientv3.GetResponse, rev int64) store.Items {
	out := store.Items{Items: make([]store.Item, 0, len(r.Kvs)), Revision: r.Header.Revision}
	if rev != 0 {
		out.Revision = rev
	}
	for _, kv := range r.Kvs {
		out.Items = append(out.Items, store.Item{Key: string(kv.Key), Value: kv.Value, Created: kv.CreateRevision, Modified: kv.ModRevision})
	}
	return out
}

func (e *backend) Commit(ctx context.Context, b store.Batch) (int64, error) {
	conds := make([]clientv3.Cmp, 0, len(b.If))
	for _, c := range b.If {
		if c.Prefix {
			conds = append(conds, clientv3.Compare(clientv3.ModRevision(c.Key), "<", c.Modified+1).WithPrefix())
			continue
		}
		conds = append(conds, clientv3.Compare(clientv3.ModRevision(c.Key), "=", c.Modified))
	}
	ops := make([]clientv3.Op, 0, len(b.Do))
	for _, o := range b.Do {
		if o.Delete {
			ops = append(ops, clientv3.OpDelete(o.Key))
			continue
		}
		ops = append(ops, clientv3.OpPut(o.Key, string(o.Value), clientv3.WithLease(clientv3.LeaseID(o.Lease))))
	}
	if len(ops) == 0 && len(b.If) > 0 {
		// A member holds conditions that come with no request at all against what it has itself, which may be out of date. A read
		// has it ask the quorum first.
		ops = append(ops, clientv3.OpGet(b.If[0].Key, clientv3.WithCountOnly()))
	}
	r, err := serve(ctx, e, func(ctx context.Context) (*clientv3.TxnResponse, error) {
		return e.client.Txn(ctx).If(conds...).Then(ops...).Commit()
	})
	if err != nil {
		return 0, e.explain(err)
	}
	if !r.Succeeded {
		return 0, store.ErrConflict
	}
	return r.Header.Revision, nil
}

func (e *backend) Watch(ctx context.Context, prefix string, from int64) <-chan store.Changes {
	out := make(chan store.Changes)
	// Each watch has a stream of its own, which gets a token of its own, and ends
	// when its member loses the leader instead of being silent.
	ctx, cancel := context.WithCancel(clientv3.WithRequireLeader(ctx))
	watcher := clientv3.Watcher(e.client)
	if e.member == nil {
		watcher = clientv3.NewWatcher(e.client)
	}
	w := watcher.Watch(ctx, prefix, clientv3.WithPrefix(), clientv3.WithRev(from+1))
	go func() {
		defer close(out)
		defer cancel() // closes the stream
		for {
			c, more := e.changes(ctx, w)
			if len(c.Changes) > 0 || c.Err != nil {
				select {
				case out <- c:
				case <-ctx.Done():
					return
				}
			}
			if !more {
				return
			}
		}
	}()
	return out
}

// changes waits for the next answer of a watch. more is false when it was the
// last.
func (e *backend) changes(ctx context.Context, w clientv3.WatchChan) (c store.Changes, more bool) {
	select {
	case <-ctx.Done():
		return store.Changes{}, false
	case <-e.Failed():
		return store.Changes{Err: e.Err()}, false
	case r, ok := <-w:
		if ctx.Err() != nil {
			return store.Changes{}, false // both ended at once
		}
		if !ok {
			return store.Changes{Err: e.explain(store.ErrClosed)}, false
		}
		c = store.Changes{Revision: r.Header.Revision, Err: e.explain(r.Err())}
		for _, ev := range r.Events {
			c.Changes = append(c.Changes, change(ev))
			c.Revision = ev.Kv.ModRevision
		}
		return c, c.Err == nil
	}
}

// serve runs one request and stops waiting for it when the member dies: a dead member never releases its locks.
func serve[T any](ctx context.Context, e *backend, request func(context.Context) (T, error)) (T, error) {
	if e.member == nil {
		ctx, cancel := context.WithTimeout(ctx, e.remote.requestTimeout())
		defer cancel()
		return request(ctx)
	}
	type answer struct {
		v   T
		err error
	}
	done := make(chan answer, 1)
	go func() {
		v, err := request(ctx)
		done <- answer{v, err}
	}()
	select {
	case a := <-done:
		return a.v, a.err
	case <-e.member.dead():
		var none T
		return none, e.member.err()
	}
}

func change(ev *clientv3.Event) store.Change {
	c := store.Change{Key: string(ev.Kv.Key), Revision: ev.Kv.ModRevision}
	if ev.Type == mvccpb.Event_PUT {
		c.Value, c.Created = ev.Kv.Value, ev.Kv.CreateRevision
	}
	return c
}

func (e *backend) NewLease(ctx context.Context, ttl time.Duration) (store.Lease, error) {
	r, err := serve(ctx, e, func(ctx context.Context) (*clientv3.LeaseGrantResponse, error) {
		return e.client.Grant(ctx, int64(math.Ceil(ttl.Seconds())))
	})
	if err != nil {
		return 0, e.explain(err)
	}
	return store.Lease(r.ID), nil
}

func (e *backend) KeepAlive(ctx context.Context, l store.Lease) error {
	_, err := serve(ctx, e, func(ctx context.Context) (*clientv3.LeaseKeepAliveResponse, error) {
		return e.client.KeepAliveOnce(ctx, clientv3.LeaseID(l))
	})
	return e.explain(err)
}

func (e *backend) Revoke(ctx context.Context, l store.Lease) error {
	_, err := serve(ctx, e, func(ctx context.Context) (*clientv3.LeaseRevokeResponse, error) {
		return e.client.Revoke(ctx, clientv3.LeaseID(l))
	})
	if err = e.explain(err); errors.Is(err, store.ErrLeaseEnded) {
		return nil
	}
	return err
}

func (e *backend) Failed() <-chan struct{} {
	if e.member == nil {
		return nil
	}
	return e.member.dead()
}

func (e *backend) Err() error {
	if e.member == nil {
		return nil
	}
	return e.member.err()
}

func (e *backend) Close() error {
	if e.member != nil && e.member.err() != nil {
		return e.member.abandon()
	}
	err := closeClient(e.client)
	if e.member != nil {
		err = errors.Join(err, e.member.stop())
	}
	if e.lock != nil {
		err = errors.Join(err, e.lock.release())
	}
	return err
}

// explain prefers the reason of a dead member to the symptom.
func (e *backend) explain(err error) error {
	if err != nil && e.member != nil {
		if cause := e.member.err(); cause != nil {
			return cause
		}
	}
	if err != nil && e.remote != nil {
		return e.remote.explain(err)
	}
	return explain(err)
}
