package etcd

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"go.etcd.io/etcd/server/v3/etcdserver/api/v3rpc"

	"portcullis/api/store"
)

// controlFD is the descriptor at which the member's process has the control socket.
const controlFD = 3

// word is a message of the member's process to the one that started it, a line of JSON each on
// its standard output.
type word struct {
	Ready bool   `json:"ready,omitempty"`
	Died  string `json:"died,omitempty"` // why it ends
	Full  bool   `json:"full,omitempty"` // that is store.ErrFull
}

// ServeMember is a whole process that serves the member of a store with Options.Command:
// it reads the options on in, serves until in ends, and reports its state on out. It returns
// an error when the member did not start or died; the process must end then, since a dead
// member holds its locks. It ignores the signals that end services: only the service that
// started it may end it.
func ServeMember(ctx context.Context, in io.Reader, out io.Writer, log *slog.Logger) error {
	signal.Ignore(syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGPIPE)
	lines := bufio.NewReader(in)
	line, err := lines.ReadBytes('\n')
	if err != nil {
		return fmt.Errorf("read how to serve the store (a service starts this command, nothing else): %w", err)
	}
	var o Options
	if err := json.Unmarshal(line, &o); err != nil {
		return fmt.Errorf("read how to serve the store: %w", err)
	}
	o.Log = log
	tell := json.NewEncoder(out)
	err = serveMember(ctx, o, lines, func() error { return tell.Encode(word{Ready: true}) })
	if err != nil {
		err = errors.Join(err, tell.Encode(word{Died: err.Error(), Full: errors.Is(err, store.ErrFull)}))
	}
	return err
}

// serveMember serves until in ends.
func serveMember(ctx context.Context, o Options, in io.Reader, ready func() error) error {
	control, err := connOf(os.NewFile(controlFD, "control"))
	if err != nil {
		return err
	}
	m, err := runMember(ctx, o)
	if err != nil {
		return errors.Join(err, control.Close())
	}
	server, l := v3rpc.Server(m.etcd.Server, nil, departed), &handed{control: control}
	served := make(chan error, 1)
	go func() { served <- server.Serve(l) }()
	if err := ready(); err != nil {
		return err
	}
	ended := make(chan struct{})
	go func() {
		_, _ = io.Copy(io.Discard, in) // its end is all that is waited for
		close(ended)
	}()
	select {
	case <-m.failed:
		return m.err()
	case err := <-served:
		if m.err() != nil {
			return m.err()
		}
		m.etcd.Close()
		return fmt.Errorf("serve the store: %w", err)
	case <-ended: // the service asks for the end, or has died
		server.Stop()
		return m.stop()
	}
}
