// Command portcullis is the operator's command line: it asks portcullisd over
// its HTTPS API, and has tools that need no service.
//
// Exit codes: 0 done, 1 error, 2 wrong usage, 3 refused by a guard of the service
// or by the policy for firmware, 4 not converged in the time given to --wait;
// firmware that is 5 invalid, 6 not signed, 7 not verifiable; 8 an import by which
// the fabric behaves otherwise.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}
