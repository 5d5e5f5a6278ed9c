package etcd

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"sync"
	"time"

	"go.etcd.io/etcd/client/pkg/v3/fileutil"
	"go.etcd.io/etcd/server/v3/embed"
	"go.etcd.io/etcd/server/v3/etcdserver/api/v3client"
	"go.etcd.io/etcd/server/v3/storage/wal"

	"portcullis/api/store"
)

// Limits of the embedded member. An inventory of ten thousand hosts is one
// transaction of as many operations and about ten megabytes.
const (
	maxTxnOps       = 1 << 17
	maxRequestBytes = 64 << 20
	quotaBytes      = 8 << 30
)

// member is the etcd member inside this process.
type member struct {
	etcd    *embed.Etcd
	lock    *dirLock // nil where another process holds the directory for this one
	failed  chan struct{}
	closing chan struct{} // closed when stop begins

	mu    sync.Mutex
	cause error // why the member is dead; set before failed is closed
}

// smallSegments has etcd write its log in segments of the size that is counted on here.
var smallSegments = sync.OnceFunc(func() { wal.SegmentSizeBytes = segment })

// startMember locks the state directory and runs its member in this process.
func startMember(ctx context.Context, o Options) (*backend, error) {
	lock, err := lockDir(o.Dir)
	if err != nil {
		return nil, err
	}
	m, err := runMember(ctx, o)
	if err != nil {
		return nil, errors.Join(err, lock.release())
	}
	m.lock = lock
	return &backend{client: v3client.New(m.etcd.Server), member: m}, nil
}

// prepare checks that this version may write to the locked state directory and that
// there is space, and records the format.
func prepare(o Options) error {
	format, err := readFormat(o.Dir)
	if err != nil {
		return err
	}
	if err := checkRecovering(o); err != nil {
		return err
	}
	if err := checkSpace(memberDir(o)); err != nil {
		return fmt.Errorf("start the store in %s: %w", o.Dir, err)
	}
	return raiseFormat(o.Dir, format, o.Version)
}

func memberDir(o Options) string { return filepath.Join(o.Dir, "etcd") }

// runMember starts a member with its state in the locked directory o.Dir, and waits until
// it serves. Without o.Cluster it is the only one of a cluster of its own, and opens no
// listener.
func runMember(ctx context.Context, o Options) (*member, error) {
	if err := prepare(o); err != nil {
		return nil, err
	}
	m, dir := &member{failed: make(chan struct{}), closing: make(chan struct{})}, o.Dir
	cfg := memberConfig(memberDir(o))
	if o.Cluster.Name != "" {
		if err := o.Cluster.configure(cfg, dir); err != nil {
			return nil, fmt.Errorf("start the store in %s: %w", dir, err)
		}
	}
	if o.alone != "" {
		cfg.Name, cfg.ForceNewCluster = o.alone, true
		cfg.InitialCluster = cfg.InitialClusterFromName(cfg.Name)
	}
	cfg.UnsafeNoFsync = o.NoSync
	if o.Quota != 0 {
		cfg.QuotaBackendBytes = o.Quota
	}
	cfg.ZapLoggerBuilder = embed.NewZapLoggerBuilder(quietLogger(o.Log, m.fail))
	smallSegments()
	var err error
	if m.etcd, err = startUnlocked(ctx, cfg); err != nil {
		return nil, fmt.Errorf("start the store in %s: %w", dir, explain(err))
	}
	select {
	case <-m.etcd.Server.ReadyNotify():
	case <-m.etcd.Server.StopNotify():
		err = fmt.Errorf("start the store in %s: member stopped", dir)
		if o.Cluster.Name != "" {
			err = fmt.Errorf("start the store in %s: the store's member stopped: it was removed from the cluster, or another one has its place: %s", dir, rejoin)
		}
	case <-m.failed:
		err = m.err()
	case <-ctx.Done():
		err = fmt.Errorf("start the store in %s: %w", dir, context.Cause(ctx))
		if o.Cluster.Name != "" {
			err = fmt.Errorf("start the store in %s: no quorum of the cluster was reached in time: start the services of the other members, and see that they reach %s; if this one was removed: %s (%w)", dir, o.Cluster.Peer, rejoin, context.Cause(ctx))
		}
	}
	if err == nil {
		err = m.join(ctx, o)
	}
	if err != nil {
		if m.err() == nil {
			m.etcd.Close()
		}
		return nil, err
	}
	return m, nil
}

// startUnlocked starts a member. The files of one that was killed stay locked until the
// kernel has ended it, which is waited for.
func startUnlocked(ctx context.Context, cfg *embed.Config) (*embed.Etcd, error) {
	for {
		e, err := embed.StartEtcd(cfg)
		if !errors.Is(err, fileutil.ErrLocked) {
			return e, err
		}
		select {
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
			return nil, errors.Join(err, context.Cause(ctx))
		}
	}
}

// join has the member take its place among others.
func (m *member) join(ctx context.Context, o Options) error {
	if o.Cluster.Name == "" {
		return nil
	}
	err := m.enter(ctx, &o.Cluster)
	if err == nil {
		e := &backend{client: v3client.New(m.etcd.Server), member: m}
		err = errors.Join(e.agreeOnFormat(ctx, store.New(e, o.Prefix).Key(formatName), o.Version), closeClient(e.client))
	}
	if err != nil {
		return fmt.Errorf("start the store in %s: %w", o.Dir, err)
	}
	go m.guard()
	return nil
}

func memberConfig(dir string) *embed.Config {
	cfg := embed.NewConfig()
	cfg.Name = "portcullis"
	cfg.Dir = dir
	// etcd wants an address in its membership record even when it will never
	// listen. This one leads nowhere.
	nowhere := []url.URL{{Scheme: "unix", Host: "portcullis", Path: ":0"}}
	cfg.AdvertisePeerUrls, cfg.AdvertiseClientUrls = nowhere, nowhere
	cfg.ListenPeerUrls, cfg.ListenClientUrls = nil, nil
	cfg.InitialCluster = cfg.InitialClusterFromName(cfg.Name)
	// Number a new cluster, and its first member, as no other: members of one that a backup
	// replaced take each other for strangers.
	cfg.InitialClusterToken = rand.Text()
	// A lone member elects itself: short ticks make it ready soon.
	cfg.TickMs, cfg.ElectionMs = 20, 200
	cfg.MaxTxnOps, cfg.MaxRequestBytes, cfg.QuotaBackendBytes = maxTxnOps, maxRequestBytes, quotaBytes
	cfg.AutoCompactionMode, cfg.AutoCompactionRetention = embed.CompactorModePeriodic, "10m"
	return cfg
}

// fail records why the member died. etcd ends the process when it cannot write
// its log; the service must say why and stop in order instead.
func (m *member) fail(cause error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.cause == nil {
		m.cause = cause
		close(m.failed)
	}
}

func (m *member) err() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.cause
}

func (m *member) dead() <-chan struct{} { return m.failed }

func (m *member) stop() error {
	close(m.closing)
	m.etcd.Close()
	return m.abandon()
}

func (m *member) abandon() error {
	if m.lock == nil {
		return nil
	}
	return m.lock.release()
}
