// Command portcullis-bench measures portcullisd beside OpenSM on fabrics
// simulated by ibsim. "make bench-sm" and its sisters build and run it; it is
// not shipped.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Exit statuses.
const (
	exitDone    = 0
	exitFailed  = 1
	exitUsage   = 2
	exitStopped = 130
)

// benchmark is one of the things that can be measured.
type benchmark struct {
	name  string
	about string
	sizes string // hosts, when none are asked for
	out   string // where its table goes
	run   func(ctx context.Context, o *options, progress io.Writer) error

	program string // that is measured, portcullisd by default
}

func benchmarks() []benchmark {
	return []benchmark{
		{"bringup", "from a cold start to all ports Active", "1944,5184,10368", "docs/benchmarks/bringup.md", bringUp, ""},
		{"route", "what routing engines cost, and how evenly they load links", "648,1944,5184,10368,37000", "docs/benchmarks/routing.md", routing, ""},
		{"events", "what one change of a running fabric costs", "1944,5184", "docs/benchmarks/events.md", events, ""},
		{"sim", "what portcullis-sim answers beside ibsim", "648,10368", "docs/benchmarks/sim.md", simulate, "portcullis-sim"},
		{"sa", "what subnet administration answers", "36,1944,10368", "docs/benchmarks/sa.md", administer, ""},
		{"failover", "what it takes to replace a subnet manager", "36,1944,10368", "docs/benchmarks/failover.md", failover, ""},
		{"proof", "what it costs to read a fabric and to prove that its tenants are isolated", "36,1944,10368", "docs/benchmarks/proof.md", prove, ""},
		{"control", "what programs of a cloud, their agents and readers get at once", "1944,10368", "docs/benchmarks/control.md", control, ""},
	}
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(run(ctx, os.Args[1:], os.Stderr))
}

// options are the command line.
type options struct {
	sizes   []int
	runs    int
	program string
	out     string

	duration time.Duration // of each run of sim and sa, and of the changes of control
	only     string        // the one rival that failover measures; empty: all
	ways     []string      // that failover measures; empty: all
	own      bool          // failover measures on our simulator alone
}

func run(ctx context.Context, args []string, stderr io.Writer) int {
	b, args, err := choose(args, stderr)
	if err != nil {
		return exitUsage
	}
	o, err := b.parse(args, stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return exitDone
	case err != nil:
		return exitUsage
	}
	if err := b.measure(ctx, o, stderr); err != nil {
		fmt.Fprintf(stderr, "portcullis-bench: %v\n", err)
		if ctx.Err() != nil {
			return exitStopped
		}
		return exitFailed
	}
	return exitDone
}

// choose finds the benchmark that the first operand names.
func choose(args []string, stderr io.Writer) (*benchmark, []string, error) {
	all := benchmarks()
	if len(args) > 0 {
		for i := range all {
			if all[i].name == args[0] {
				return &all[i], args[1:], nil
			}
		}
	}
	fmt.Fprintln(stderr, "Usage: portcullis-bench BENCHMARK [options]; BENCHMARK is one of")
	for i := range all {
		fmt.Fprintf(stderr, "  %-10s %s\n", all[i].name, all[i].about)
	}
	return nil, nil, errors.New("no such benchmark")
}

func (b *benchmark) parse(args []string, stderr io.Writer) (*options, error) {
	fs := flag.NewFlagSet("portcullis-bench "+b.name, flag.ContinueOnError)
	fs.SetOutput(stderr)
	sizes := fs.String("sizes", b.sizes, "hosts of the three-level fat trees to measure on")
	o := &options{}
	o.runs = 1
	if b.name != "control" {
		fs.IntVar(&o.runs, "runs", 3, "runs of each subject on each fabric")
	}
	program := "portcullisd"
	if b.program != "" {
		program = b.program
	}
	fs.StringVar(&o.program, program, "bin/"+program, "the program to measure")
	if b.name == "sim" || b.name == "sa" {
		fs.DurationVar(&o.duration, "duration", time.Second, "how long each measurement goes on")
	}
	if b.name == "control" {
		fs.DurationVar(&o.duration, "duration", 10*time.Minute, "how long hosts change their cluster; clients read for a tenth of it")
	}
	ways := ""
	if b.name == "failover" {
		fs.StringVar(&o.only, "only", "", "measure this rival alone, such as Portcullis")
		fs.StringVar(&ways, "ways", "", "measure these ways alone, of killed, paused, planned and stopped, in which a leader ends, and restart")
		fs.BoolVar(&o.own, "own", false, "measure on portcullis-sim alone")
	}
	fs.StringVar(&o.out, "out", b.out, "where to write the table")
	if err := fs.Parse(args); err != nil {
		return nil, err
	}
	wrong := func(format string, args ...any) error {
		err := fmt.Errorf(format, args...)
		fmt.Fprintf(stderr, "portcullis-bench: %v\n", err)
		return err
	}
	for s := range strings.SplitSeq(*sizes, ",") {
		n, err := strconv.Atoi(strings.TrimSpace(s))
		if err != nil || n < 2 {
			return nil, wrong("size %q: want a number of hosts from 2", s)
		}
		o.sizes = append(o.sizes, n)
	}
	for way := range strings.SplitSeq(ways, ",") {
		switch way {
		case "":
		case killed, paused, planned, stopped, restarted:
			o.ways = append(o.ways, way)
		default:
			return nil, wrong("way %q: want killed, paused, planned, stopped or restart", way)
		}
	}
	if o.runs < 1 || fs.NArg() > 0 {
		return nil, wrong("want at least one run and no operands")
	}
	var err error
	if o.program, err = filepath.Abs(o.program); err != nil {
		return nil, wrong("--%s: %w", program, err)
	}
	return o, nil
}

// measure runs the benchmark; its table gets a folder to go to.
func (b *benchmark) measure(ctx context.Context, o *options, progress io.Writer) error {
	if err := os.MkdirAll(filepath.Dir(o.out), 0o755); err != nil {
		return fmt.Errorf("make place for the table: %w", err)
	}
	return b.run(ctx, o, progress)
}
