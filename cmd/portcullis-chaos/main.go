// Command portcullis-chaos runs instances of portcullisd on a simulated fabric, injects faults
// from a seed, and judges by the simulator's own tables and data packets whether tenants stay
// isolated and connected. "make chaos" builds and runs it. It is not shipped.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"portcullis/cmd/internal/program"
)

// Exit statuses.
const (
	exitHeld   = 0
	exitBroken = 1 // a rule was broken, or a step could not be done
	exitUsage  = 2
)

// options are what the caller chose.
type options struct {
	seed      uint64
	faults    int
	from      int // number of the first fault that is injected, from 1
	hosts     int
	instances int
	programs  string
	keep      bool
	only      string // names of faults with commas between; empty: all
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	var o options
	fs := flag.NewFlagSet("portcullis-chaos", flag.ContinueOnError)
	fs.SetOutput(stderr)
	fs.Uint64Var(&o.seed, "seed", 0, "seed of the faults; 0 draws one, which is printed")
	fs.IntVar(&o.faults, "faults", 200, "number of faults")
	fs.IntVar(&o.from, "from", 1, "number of the first fault that is injected, of those of the seed")
	fs.IntVar(&o.hosts, "hosts", maxHosts, fmt.Sprintf("number of hosts, a multiple of %d up to %d", hostsPerLeaf, maxHosts))
	fs.IntVar(&o.instances, "instances", maxManagers, fmt.Sprintf("number of instances of portcullisd, 1 or %d", maxManagers))
	fs.StringVar(&o.programs, "programs", "", "directory of portcullisd and portcullis (default: that of this program)")
	fs.BoolVar(&o.keep, "keep", false, "keep the scratch directory with every log and file")
	fs.StringVar(&o.only, "only", "", "inject these faults alone, with commas between: "+strings.Join(faultNames(), ", "))
	if err := fs.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return exitHeld
		}
		return exitUsage
	}
	if err := o.check(fs.Args()); err != nil {
		fmt.Fprintf(stderr, "portcullis-chaos: %v\nhint: portcullis-chaos --help names the options\n", err)
		return exitUsage
	}
	if o.seed == 0 {
		o.seed = rand.Uint64N(1 << 32)
	}
	began := time.Now()
	say := func(format string, args ...any) {
		fmt.Fprintf(stdout, "%7.2fs  %s\n", time.Since(began).Seconds(), fmt.Sprintf(format, args...))
	}
	say("seed %d: %d faults, %d hosts, %d instances; the same again: make chaos SEED=%d", o.seed, o.faults, o.hosts, o.instances, o.seed)
	if err := chaos(ctx, o, say); err != nil {
		fmt.Fprintf(stderr, "portcullis-chaos: seed %d: %v\n", o.seed, err)
		return exitBroken
	}
	return exitHeld
}

// check judges the options and finds the programs.
func (o *options) check(rest []string) (err error) {
	switch {
	case len(rest) > 0:
		return fmt.Errorf("unexpected argument %q", rest[0])
	case o.hosts < 2*hostsPerLeaf || o.hosts > maxHosts || o.hosts%hostsPerLeaf != 0:
		return fmt.Errorf("--hosts %d: want a multiple of %d from %d to %d", o.hosts, hostsPerLeaf, 2*hostsPerLeaf, maxHosts)
	case o.instances != 1 && o.instances != maxManagers:
		return fmt.Errorf("--instances %d: want 1, or %d, of which one can fail", o.instances, maxManagers)
	case o.faults < 1:
		return fmt.Errorf("--faults %d: want at least 1", o.faults)
	case o.from < 1 || o.from > o.faults:
		return fmt.Errorf("--from %d: want a number from 1 to that of --faults, %d", o.from, o.faults)
	}
	if _, err := chosen(o.only, o.instances); err != nil {
		return err
	}
	o.programs, err = program.Find(o.programs, "portcullisd", "portcullis")
	return err
}

// chaos builds the site, injects the faults, and judges.
func chaos(ctx context.Context, o options, say func(string, ...any)) (err error) {
	// Names of network namespaces and addresses are the same in each run.
	alone, err := net.Listen("unix", "@portcullis-chaos")
	if err != nil {
		return fmt.Errorf("another run goes on on this machine, and one would take the other's network: wait until it has ended: %w", err)
	}
	defer alone.Close()
	s, err := build(ctx, o, say)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			s.describe(context.WithoutCancel(ctx))
		}
		err = errors.Join(err, s.remove(o.keep || err != nil))
	}()
	return inject(ctx, o, s)
}
