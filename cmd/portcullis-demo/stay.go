package main

import (
	"context"
	"fmt"
	"time"

	"portcullis/cmd/internal/program"
)

// bounded returns a context that ends after the deadline of the story, unless over is called before: then it ends with ctx alone. The
// caller must call end.
func bounded(ctx context.Context, limit time.Duration) (_ context.Context, over, end func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	timer := time.AfterFunc(limit, func() { cancel(fmt.Errorf("not done after %v", limit)) })
	return ctx, func() { timer.Stop() }, func() { timer.Stop(); cancel(nil) }
}

// stay keeps everything running until ctx ends, and says how to look at it. An end of the service is an error.
func (t *story) stay(ctx context.Context) error {
	t.chapter("It keeps running")
	token := t.path("etc", "operator.token")
	t.raw(fmt.Sprintf(`open        https://%[1]s/
token       cat %[2]s
certificate %[3]s: have the browser trust it, or accept its warning
commands    %[4]s host list --service https://%[1]s --ca %[3]s --token-file %[2]s
`, t.address, token, t.caFile(), t.at("portcullis")))
	t.say("Ctrl-C ends everything, and removes %s", t.dir)
	return await(ctx, t.service)
}

// await waits until ctx ends, which is as it is to be, or the service does, which is not.
func await(ctx context.Context, service *program.Process) error {
	select {
	case <-ctx.Done():
		return nil
	case <-service.Done():
		return fmt.Errorf("while the demonstration stayed: %w", service.Ended())
	}
}
