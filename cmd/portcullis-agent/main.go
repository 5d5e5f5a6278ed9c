// Command portcullis-agent runs on a host that is being provisioned: it proves
// to portcullisd which host this is and which InfiniBand adapters it has, and
// waits until the fabric has admitted them.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}
