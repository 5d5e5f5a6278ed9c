// Package simtest serves a simulated fabric to other programs' clients in tests:
// on ibsim's socket protocol, under a name that no other test has.
package simtest

import (
	"context"
	"crypto/rand"
	"testing"

	"portcullis/fabricsm/sim"
	"portcullis/fabricsm/sim/ibsimserver"
	"portcullis/fabricsm/transport/ibsim"
	"portcullis/fabricsm/transport/ibsim/ibsimlab"
)

// Serve serves a fabric until the test and its cleanups have ended: clients end first.
func Serve(t testing.TB, f *sim.Fabric) ibsimlab.Client {
	t.Helper()
	client, stop := ServeUntil(t, f)
	t.Cleanup(stop)
	return client
}

// ServeUntil serves a fabric until stop is called, once.
func ServeUntil(t testing.TB, f *sim.Fabric) (client ibsimlab.Client, stop func()) {
	t.Helper()
	server, err := ibsim.Listen("portcullis-" + rand.Text())
	if err != nil {
		t.Fatal(err)
	}
	// Not t.Context, which ends before clients are closed.
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- ibsimserver.Serve(ctx, server, f) }()
	return ibsimlab.Client{Socket: server.Socket(), Dir: t.TempDir()}, func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}
