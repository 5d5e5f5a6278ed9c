package api

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"portcullis/api/preauth"
	"portcullis/api/servercert"
)

// Timeouts and sizes of the server. A host that trickles bytes holds one
// connection for readTimeout at most.
const (
	readTimeout    = 20 * time.Second
	writeTimeout   = 30 * time.Second // streams extend theirs event by event
	idleTimeout    = 2 * time.Minute
	handlerTimeout = 25 * time.Second // a store that does not answer ends as "unavailable"
	longTimeout    = 10 * time.Minute // of requests that read a whole store
	maxHeaderBytes = 16 << 10
	maxStreams     = 64 // HTTP/2 streams of one connection
	// Memory that HTTP/2 holds for a connection before a handler reads anything. net/http would take 1 MiB for each of the three.
	maxFrame        = 16 << 10
	maxStreamBuffer = 64 << 10
	maxConnBuffer   = 64 << 10

	// drainTimeout is how long requests under way may take after the service was asked to stop.
	drainTimeout = 10 * time.Second
)

type drainKey struct{}

// draining is closed when the server stops, so that event streams end and do
// not hold it up. Other requests under way may finish.
func draining(ctx context.Context) <-chan struct{} {
	done, _ := ctx.Value(drainKey{}).(<-chan struct{})
	return done
}

// Serve answers on l until ctx ends, then lets requests under way finish and
// returns nil. It takes over l.
func (s *Server) Serve(ctx context.Context, l net.Listener, cert *servercert.Certificate) error {
	base := context.WithValue(context.WithoutCancel(ctx), drainKey{}, ctx.Done())
	srv := &http.Server{
		Handler:           s,
		TLSConfig:         s.askForCertificate(cert.Config()),
		ReadHeaderTimeout: preauth.HeaderTimeout, ReadTimeout: readTimeout,
		WriteTimeout: writeTimeout, IdleTimeout: idleTimeout,
		MaxHeaderBytes: maxHeaderBytes,
		HTTP2: &http.HTTP2Config{
			MaxConcurrentStreams: maxStreams, MaxReadFrameSize: maxFrame,
			MaxReceiveBufferPerStream: maxStreamBuffer, MaxReceiveBufferPerConnection: maxConnBuffer,
		},
		ConnState:   preauth.NoteState,
		BaseContext: func(net.Listener) context.Context { return base },
		ErrorLog:    slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
	}
	guarded := s.preauth.Listener(l, s.connections, s.refusals, func() { s.metrics.refused("connections") })
	failed := make(chan error, 1)
	go func() { failed <- srv.ServeTLS(guarded, "", "") }()
	select {
	case err := <-failed:
		return fmt.Errorf("serve the API on %v: %w", l.Addr(), err)
	case <-ctx.Done():
	}
	drain, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainTimeout)
	defer cancel()
	err := srv.Shutdown(drain)
	if errors.Is(err, context.DeadlineExceeded) {
		err = srv.Close()
	}
	if ended := <-failed; !errors.Is(ended, http.ErrServerClosed) {
		err = errors.Join(err, ended)
	}
	return err
}
