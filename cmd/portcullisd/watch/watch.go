// Package watch serves what is seen of a fabric to users and Prometheus on this machine: by a unix socket, and as metrics on a
// loopback address.
package watch

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"golang.org/x/sync/errgroup"

	"portcullis/api"
	"portcullis/api/fabric/query"
	"portcullis/cmd/internal/version"
	"portcullis/cmd/portcullisd/command"
	"portcullis/cmd/portcullisd/config"
)

// Server serves what is seen of a fabric to those on this machine.
type Server struct {
	local   net.Listener // nil: none
	metrics net.Listener // nil: none
	server  *api.Server
}

// NewRegistry returns a registry with the counters of the process, and of the fabric unless it is nil.
func NewRegistry(fabric *query.Observer) *prometheus.Registry {
	r := prometheus.NewRegistry()
	if fabric != nil {
		r.MustRegister(fabric)
	}
	r.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return r
}

// Open opens what o asks for; path completes the path of the socket. operator is
// nil where the socket only shows the fabric, and hosts where nothing is done to hosts.
func Open(o config.Watch, path func(string) string, seen *query.Observer, operator api.FabricOperator, hosts api.HostRemover, log *slog.Logger) (*Server, error) {
	w := &Server{}
	if o.Socket == "" && o.Metrics == "" {
		return w, nil
	}
	w.server = api.NewLocal(api.LocalOptions{Fabric: seen, Operator: operator, Hosts: hosts, Version: version.Short(), Log: log, Registry: NewRegistry(seen)})
	if err := w.listen(o, path); err != nil {
		w.Close()
		return nil, err
	}
	return w, nil
}

func (w *Server) listen(o config.Watch, path func(string) string) (err error) {
	if o.Socket != "" {
		if w.local, err = listenUnix(path(o.Socket)); err != nil {
			return err
		}
	}
	if o.Metrics != "" {
		if w.metrics, err = net.Listen("tcp", o.Metrics); err != nil {
			return fmt.Errorf("serve metrics: %w", err)
		}
	}
	return nil
}

// Close closes the listeners.
func (w *Server) Close() {
	for _, l := range []net.Listener{w.local, w.metrics} {
		if l != nil {
			l.Close()
		}
	}
}

// Serve answers in goroutines of group until ctx ends.
func (w *Server) Serve(ctx context.Context, group *errgroup.Group) {
	if w.local != nil {
		group.Go(func() error { return w.server.ServeLocal(ctx, w.local) })
	}
	if w.metrics != nil {
		group.Go(func() error { return serveMetrics(ctx, w.metrics, w.server) })
	}
}

// serveMetrics answers GET /metrics and /metrics/fabric, and nothing else.
func serveMetrics(ctx context.Context, l net.Listener, all http.Handler) error {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", all)
	mux.Handle("GET /metrics/fabric", all)
	srv := &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second, WriteTimeout: 30 * time.Second, MaxHeaderBytes: 16 << 10}
	stop := context.AfterFunc(ctx, func() { srv.Close() })
	defer stop()
	if err := srv.Serve(l); !errors.Is(err, http.ErrServerClosed) && (ctx.Err() == nil || !errors.Is(err, net.ErrClosed)) {
		return fmt.Errorf("serve metrics on %v: %w", l.Addr(), err)
	}
	return nil
}

// unixListener removes its path when it is closed.
type unixListener struct {
	*net.UnixListener
	path string
}

func (l *unixListener) Close() error {
	err := l.UnixListener.Close()
	if e := os.Remove(l.path); e != nil && !errors.Is(e, fs.ErrNotExist) {
		err = errors.Join(err, e)
	}
	return err
}

// listenUnix listens on a unix socket that only this user can open. It replaces a socket without a listener, and nothing
// else. The socket is created where no other user can reach it, so that it is never open to others.
func listenUnix(path string) (net.Listener, error) {
	if err := free(path); err != nil {
		return nil, fmt.Errorf("socket %s: %w", path, err)
	}
	dir, err := os.MkdirTemp(filepath.Dir(path), ".portcullis-")
	if err != nil {
		return nil, fmt.Errorf("socket %s: %w", path, err)
	}
	defer os.RemoveAll(dir)
	made := filepath.Join(dir, "s")
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: made, Net: "unix"})
	if err != nil {
		return nil, fmt.Errorf("socket %s: %w", path, err)
	}
	l.SetUnlinkOnClose(false)
	if err := errors.Join(os.Chmod(made, 0o600), os.Rename(made, path)); err != nil {
		l.Close()
		return nil, fmt.Errorf("socket %s: %w", path, err)
	}
	return &unixListener{l, path}, nil
}

// free reports why a path cannot be taken for a socket.
func free(path string) error {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case info.Mode().Type() != fs.ModeSocket:
		return command.Hint(errors.New("a file that is no socket is there"), "name another path")
	}
	conn, err := net.Dial("unix", path)
	if err == nil {
		conn.Close()
		return command.Hint(errors.New("another process listens there"), "stop it, or name another path")
	}
	if !errors.Is(err, syscall.ECONNREFUSED) {
		return err
	}
	return nil
}
