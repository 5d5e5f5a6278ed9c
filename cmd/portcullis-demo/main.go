// Command portcullis-demo shows the whole product at work on one machine: an
// simulated fabric, a software TPM for each host, the service, the agents, and
// proofs read from the devices. "make demo" builds and runs it; it is not shipped.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"portcullis/cmd/internal/program"
)

// Exit statuses.
const (
	exitProven  = 0
	exitFailed  = 1 // a proof failed, or a step could not be done
	exitUsage   = 2
	exitStopped = 130
)

// deadline bounds the whole story. It takes some twenty seconds; a machine
// that needs this long is in trouble, and says so.
const deadline = 5 * time.Minute

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	fs := flag.NewFlagSet("portcullis-demo", flag.ContinueOnError)
	fs.SetOutput(stderr)
	keep := fs.Bool("keep", false, "keep the scratch directory with every log and file, and say where it is")
	stay := fs.Bool("stay", false, "keep everything running after the story, until Ctrl-C, and say where the pages are")
	kind := fs.String("fabric", string(ownSimulator), "the simulator: portcullis-sim, or ibsim, which must be installed")
	read := fs.String("reader", "", `what reads the proofs: smpquery, or "directed-route SMPs" of our own (default: smpquery if installed)`)
	programs := fs.String("programs", "", "directory of portcullisd, portcullis-agent, portcullis and portcullis-sim (default: where this program is)")
	if err := fs.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return exitProven
		}
		return exitUsage
	}
	if fs.NArg() > 0 {
		fmt.Fprintf(stderr, "portcullis-demo: unexpected argument %q\nhint: portcullis-demo --help names the options\n", fs.Arg(0))
		return exitUsage
	}
	if *read != "" && *read != (smpquery{}).name() && *read != (directReader{}).name() {
		fmt.Fprintf(stderr, "portcullis-demo: --reader %q: want %s or %q\n", *read, smpquery{}.name(), directReader{}.name())
		return exitUsage
	}
	if *kind != string(ownSimulator) && *kind != string(ibsimFabric) {
		fmt.Fprintf(stderr, "portcullis-demo: --fabric %q: want %s or %s\n", *kind, ownSimulator, ibsimFabric)
		return exitUsage
	}
	dir, err := program.Find(*programs, "portcullisd", "portcullis-agent", "portcullis", "portcullis-sim")
	if err != nil {
		fmt.Fprintf(stderr, "portcullis-demo: %v\n", err)
		return exitFailed
	}
	ctx, over, end := bounded(ctx, deadline)
	defer end()
	o := stageOptions{kind: fabricKind(*kind), reader: *read, keep: *keep}
	if *stay {
		o.stay = over
	}
	return exitCode(ctx, play(ctx, newNarrator(stdout), dir, o), stderr)
}

func exitCode(ctx context.Context, err error, stderr io.Writer) int {
	switch {
	case err == nil:
		return exitProven
	case errors.Is(context.Cause(ctx), context.Canceled):
		fmt.Fprintln(stderr, "portcullis-demo: stopped; everything it started is ended and removed")
		return exitStopped
	default:
		fmt.Fprintf(stderr, "portcullis-demo: %v\n", err)
		return exitFailed
	}
}
