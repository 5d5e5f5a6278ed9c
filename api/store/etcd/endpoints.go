package etcd

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"math"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"portcullis/api/store"
	"portcullis/fabricsm/ib"
)

// Default limits of time for an etcd of the site's own.
const (
	DefaultDialTimeout    = 5 * time.Second
	DefaultRequestTimeout = 10 * time.Second
)

// Keepalive of connections: an endpoint that does not answer for their sum is left
// for another.
const (
	keepaliveTime    = 10 * time.Second
	keepaliveTimeout = 5 * time.Second
)

// Remote is an etcd that runs outside this process.
type Remote struct {
	Endpoints      []string      // each a URL https://HOST:PORT or http://HOST:PORT; none: no such etcd
	TLS            *tls.Config   // nil: the system's certificate authorities, and no client certificate
	User           string        // user name of etcd's own authentication; empty: none
	Password       ib.SecretText // of User
	DialTimeout    time.Duration // 0: DefaultDialTimeout
	RequestTimeout time.Duration // 0: DefaultRequestTimeout
}

// CheckEndpoint returns an error for what is not a URL of an etcd endpoint: https,
// or http to a loopback address, with host and port and nothing else.
func CheckEndpoint(endpoint string) error {
	u, err := url.Parse(endpoint)
	if err != nil || u.Host == "" || u.Port() == "" || u.Hostname() == "" || u.User != nil ||
		u.Path != "" || u.RawQuery != "" || u.Fragment != "" || (u.Scheme != "https" && u.Scheme != "http") {
		return fmt.Errorf("%q: want https://HOST:PORT", endpoint)
	}
	if ip := net.ParseIP(u.Hostname()); u.Scheme == "http" && u.Hostname() != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return fmt.Errorf("%q: want https; http is for loopback addresses only", endpoint)
	}
	return nil
}

// MaxPrefix is the most bytes a prefix of keys may have.
const MaxPrefix = 128

// CheckPrefix returns an error for what cannot be a prefix of keys: at most MaxPrefix
// of letters, digits, ".", "_", "-" and, between them, "/".
func CheckPrefix(prefix string) error {
	other := func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("._-/", r)
	}
	if prefix == "" || len(prefix) > MaxPrefix || strings.ContainsFunc(prefix, other) ||
		strings.HasPrefix(prefix, "/") || strings.HasSuffix(prefix, "/") {
		return fmt.Errorf("%.150q: want 1 to %d letters, digits, dots, underscores, hyphens, and slashes between them", prefix, MaxPrefix)
	}
	return nil
}

// openRemote connects to an etcd and waits until it answers. Where it does not, the
// error names each endpoint and the cause there.
func openRemote(ctx context.Context, o Options) (_ *backend, err error) {
	r := o.Remote
	b := &backend{remote: &r}
	if o.Dir != "" {
		if b.lock, err = lockLocal(o); err != nil {
			return nil, err
		}
		defer func() {
			if err != nil {
				err = errors.Join(err, b.lock.release())
			}
		}()
	}
	dial := cmp.Or(r.DialTimeout, DefaultDialTimeout)
	// The client asks for a token at once if there is a user name, and stops trying only when this has passed.
	b.client, err = clientv3.New(clientv3.Config{
		Endpoints: r.Endpoints, TLS: r.TLS, Username: r.User, Password: r.Password.Reveal(),
		DialTimeout: dial, DialKeepAliveTime: keepaliveTime, DialKeepAliveTimeout: keepaliveTimeout,
		MaxCallSendMsgSize: maxRequestBytes, MaxCallRecvMsgSize: math.MaxInt32,
		Context: context.WithoutCancel(ctx), Logger: quietLogger(o.Log, func(error) {}),
	})
	if err != nil {
		return nil, r.whyNot(ctx, err)
	}
	if err := b.greet(ctx, o, dial+b.remote.requestTimeout()); err != nil {
		return nil, errors.Join(r.whyNot(ctx, err), closeClient(b.client))
	}
	return b, nil
}

// lockLocal takes the state directory of a service whose records are elsewhere. It
// refuses one that holds an embedded member, since its records would be left behind.
func lockLocal(o Options) (_ *dirLock, err error) {
	lock, err := lockDir(o.Dir)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, lock.release())
		}
	}()
	format, err := readFormat(o.Dir)
	if err != nil {
		return nil, err
	}
	member := filepath.Join(o.Dir, "etcd", "member")
	if _, err := os.Stat(member); err == nil {
		return nil, fmt.Errorf("state directory %s holds records of an embedded store, and the configuration names etcd endpoints: "+
			"take their records over first, then move %s away", o.Dir, filepath.Dir(member))
	}
	return lock, raiseFormat(o.Dir, format, o.Version)
}

// greet waits for the first answer, and checks which format the records have.
func (e *backend) greet(ctx context.Context, o Options, patience time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return e.agreeOnFormat(ctx, store.New(e, o.Prefix).Key(formatName), o.Version)
}

func (r *Remote) requestTimeout() time.Duration {
	return cmp.Or(r.RequestTimeout, DefaultRequestTimeout)
}

// names lists the endpoints for an error.
func (r *Remote) names() string { return strings.Join(r.Endpoints, ", ") }

// explain turns an error of a request into ours, and says which etcd it is about.
func (r *Remote) explain(err error) error {
	out := explain(err)
	if errors.Is(out, store.ErrCompacted) || errors.Is(err, context.Canceled) {
		return out
	}
	return fmt.Errorf("etcd at %s: %w", r.names(), out)
}

// whyNot explains why the etcd could not be used: what etcd answered, or, where no
// endpoint answered, the cause at each of them.
func (r *Remote) whyNot(ctx context.Context, err error) error {
	if _, ok := errors.AsType[*NewerError](err); ok {
		return err
	}
	switch {
	case errors.Is(err, rpctypes.ErrAuthFailed):
		return fmt.Errorf("etcd at %s: user name %q or its password is refused", r.names(), r.User)
	case errors.Is(err, rpctypes.ErrAuthNotEnabled):
		return fmt.Errorf("etcd at %s: it has authentication switched off and takes no user name: leave etcd.user empty, or enable it (etcdctl auth enable)", r.names())
	case errors.Is(err, rpctypes.ErrUserEmpty):
		return fmt.Errorf("etcd at %s: it has authentication switched on and no user name was sent: set etcd.user and etcd.password", r.names())
	case errors.Is(err, rpctypes.ErrPermissionDenied):
		if r.User == "" {
			return fmt.Errorf("etcd at %s: the user that the client certificate names may not read and write the keys of the prefix: grant its role readwrite there, or set etcd.user", r.names())
		}
		return fmt.Errorf("etcd at %s: user %q may not read and write the keys of the prefix: grant its role readwrite there", r.names(), r.User)
	}
	causes := r.probe(context.WithoutCancel(ctx))
	if len(causes) == 0 {
		return fmt.Errorf("etcd at %s: %w", r.names(), explain(err))
	}
	return errors.Join(causes...)
}

// probe connects to every endpoint at once and returns what keeps it from being used,
// in the order of the endpoints.
func (r *Remote) probe(ctx context.Context) (causes []error) {
	ctx, cancel := context.WithTimeout(ctx, cmp.Or(r.DialTimeout, DefaultDialTimeout))
	defer cancel()
	found := make([]error, len(r.Endpoints))
	var all sync.WaitGroup
	for i, endpoint := range r.Endpoints {
		all.Go(func() {
			if err := r.reach(ctx, endpoint); err != nil {
				found[i] = fmt.Errorf("etcd at %s: %w", endpoint, err)
			}
		})
	}
	all.Wait()
	for _, err := range found {
		if err != nil {
			causes = append(causes, err)
		}
	}
	return causes
}

// reach opens a connection as the client does. A server that speaks HTTP/2 sends its
// settings at once; one that refuses the client certificate sends an alert instead.
func (r *Remote) reach(ctx context.Context, endpoint string) error {
	u, err := url.Parse(endpoint)
	if err != nil {
		return err
	}
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", u.Host)
	if err != nil {
		return err
	}
	defer conn.Close()
	if u.Scheme != "https" {
		return nil
	}
	cfg := &tls.Config{MinVersion: tls.VersionTLS12}
	if r.TLS != nil {
		cfg = r.TLS.Clone()
	}
	cfg.ServerName, cfg.NextProtos = cmp.Or(cfg.ServerName, u.Hostname()), []string{"h2"}
	secure := tls.Client(conn, cfg)
	if err := secure.HandshakeContext(ctx); err != nil {
		return fmt.Errorf("TLS: %w", err)
	}
	if end, ok := ctx.Deadline(); ok {
		if err := secure.SetReadDeadline(end); err != nil {
			return err
		}
	}
	if _, err := secure.Read(make([]byte, 1)); err != nil {
		return fmt.Errorf("TLS: the connection is refused (its client certificate is etcd.cert): %w", err)
	}
	return nil
}

func closeClient(c *clientv3.Client) error {
	if err := c.Close(); !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}
