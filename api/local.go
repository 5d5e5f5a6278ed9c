package api

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"

	"github.com/go-chi/chi/v5"
	"github.com/prometheus/client_golang/prometheus"

	"portcullis/api/preauth"
	"portcullis/api/problem"
	v1 "portcullis/api/v1"
)

// LocalOptions are what a local server is made of. All but Operator and Hosts are required.
type LocalOptions struct {
	Fabric   FabricReader
	Operator FabricOperator // nil: the fabric is only shown
	Hosts    HostRemover    // nil: nothing is done to hosts
	Version  string
	Log      *slog.Logger
	Registry *prometheus.Registry // the HTTP counters join it; served at /metrics
}

// NewLocal creates a server for the fabric alone, and for any caller that can connect: for a socket that the file system
// guards. It has no credentials and no limits.
func NewLocal(o LocalOptions) *Server {
	s := &Server{
		fabric: o.Fabric, operator: o.Operator, version: o.Version, log: o.Log, metrics: newMetrics(o.Registry), local: true,
		ready: func(context.Context) []v1.Condition { return nil },
	}
	r := chi.NewRouter()
	r.Use(s.observe)
	does := "shows the fabric and nothing else"
	if o.Hosts != nil {
		does = "shows the fabric and takes single hosts off it"
	}
	r.NotFound(func(w http.ResponseWriter, r *http.Request) {
		problem.Write(w, problem.New(http.StatusNotFound, v1.CodeNotFound, "no such path here: this socket "+does,
			"hosts, tenants and inventory are asked for at the service: --service https://HOST:PORT"))
	})
	plain := r.With(unconditional)
	plain.Get("/livez", s.livez)
	plain.Get("/version", s.versionz)
	plain.Get("/metrics", s.serveMetrics(o.Registry))
	plain.Get("/metrics/fabric", s.serveDevices)
	s.document = s.localRoutes(r, o.Hosts)
	s.handler = r
	return s
}

// ServeLocal answers plain HTTP on l until ctx ends. It takes over l.
func (s *Server) ServeLocal(ctx context.Context, l net.Listener) error {
	base := context.WithValue(context.WithoutCancel(ctx), drainKey{}, ctx.Done())
	srv := &http.Server{
		Handler: s, ReadHeaderTimeout: preauth.HeaderTimeout, ReadTimeout: readTimeout, WriteTimeout: writeTimeout,
		IdleTimeout: idleTimeout, MaxHeaderBytes: maxHeaderBytes,
		BaseContext: func(net.Listener) context.Context { return base },
		ConnContext: withPeer,
		ErrorLog:    slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
	}
	failed := make(chan error, 1)
	go func() { failed <- srv.Serve(l) }()
	select {
	case err := <-failed:
		if ctx.Err() != nil && errors.Is(err, net.ErrClosed) {
			return nil // l was closed with ctx, before this server
		}
		return fmt.Errorf("serve on %v: %w", l.Addr(), err)
	case <-ctx.Done():
	}
	err := srv.Close() // only questions are cut off
	if errors.Is(err, net.ErrClosed) {
		err = nil
	}
	if ended := <-failed; !errors.Is(ended, http.ErrServerClosed) && !errors.Is(ended, net.ErrClosed) {
		err = errors.Join(err, ended)
	}
	return err
}
