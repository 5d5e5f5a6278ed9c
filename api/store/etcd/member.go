package etcd

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"sync"

	"go.etcd.io/etcd/server/v3/embed"
	"go.etcd.io/etcd/server/v3/etcdserver/api/v3client"
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
	etcd   *embed.Etcd
	lock   *dirLock
	failed chan struct{}

	mu    sync.Mutex
	cause error // why the member is dead; set before failed is closed
}

// startMember starts the only member of a cluster of its own, with its state
// in dir, and waits until it serves. It opens no listener: the client calls it
// in memory.
func startMember(ctx context.Context, o Options) (_ *backend, err error) {
	dir := o.Dir
	lock, err := lockDir(dir)
	if err != nil {
		return nil, err
	}
	m := &member{lock: lock, failed: make(chan struct{})}
	defer func() {
		if err != nil {
			err = errors.Join(err, lock.release())
		}
	}()
	format, err := readFormat(dir)
	if err != nil {
		return nil, err
	}
	cfg := memberConfig(filepath.Join(dir, "etcd"))
	if err := checkSpace(cfg.Dir); err != nil {
		return nil, fmt.Errorf("start the store in %s: %w", dir, err)
	}
	if err := raiseFormat(dir, format, o.Version); err != nil {
		return nil, err
	}
	cfg.UnsafeNoFsync = o.NoSync
	cfg.ZapLoggerBuilder = embed.NewZapLoggerBuilder(quietLogger(o.Log, m.fail))
	if m.etcd, err = embed.StartEtcd(cfg); err != nil {
		return nil, fmt.Errorf("start the store in %s: %w", dir, explain(err))
	}
	select {
	case <-m.etcd.Server.ReadyNotify():
	case <-m.etcd.Server.StopNotify():
		err = fmt.Errorf("start the store in %s: member stopped", dir)
	case <-m.failed:
		err = m.err()
	case <-ctx.Done():
		err = fmt.Errorf("start the store in %s: %w", dir, context.Cause(ctx))
	}
	if err != nil {
		if m.err() == nil {
			m.etcd.Close()
		}
		return nil, err
	}
	return &backend{client: v3client.New(m.etcd.Server), member: m}, nil
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

func (m *member) stop() error {
	m.etcd.Close()
	return m.lock.release()
}
