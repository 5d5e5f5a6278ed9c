// Command portcullis-bench measures portcullisd beside OpenSM on fabrics
// simulated by ibsim. "make bench-sm" builds and runs it; it is not shipped.
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
)

// Exit statuses.
const (
	exitDone    = 0
	exitFailed  = 1
	exitUsage   = 2
	exitStopped = 130
)

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
}

func run(ctx context.Context, args []string, stderr io.Writer) int {
	o, err := parse(args, stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return exitDone
	case err != nil:
		return exitUsage
	}
	if err := measure(ctx, o, stderr); err != nil {
		fmt.Fprintf(stderr, "portcullis-bench: %v\n", err)
		if ctx.Err() != nil {
			return exitStopped
		}
		return exitFailed
	}
	return exitDone
}

func parse(args []string, stderr io.Writer) (*options, error) {
	fs := flag.NewFlagSet("portcullis-bench", flag.ContinueOnError)
	fs.SetOutput(stderr)
	sizes := fs.String("sizes", "1944,5184", "hosts of the three-level fat trees to bring up")
	o := &options{}
	fs.IntVar(&o.runs, "runs", 3, "runs of each subnet manager on each fabric")
	fs.StringVar(&o.program, "portcullisd", "bin/portcullisd", "the program to measure")
	fs.StringVar(&o.out, "out", "docs/benchmarks/bringup.md", "where to write the table")
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
	if o.runs < 1 || fs.NArg() > 0 {
		return nil, wrong("want at least one run and no operands")
	}
	var err error
	if o.program, err = filepath.Abs(o.program); err != nil {
		return nil, wrong("--portcullisd: %w", err)
	}
	return o, nil
}

// measure runs everything and writes the table.
func measure(ctx context.Context, o *options, progress io.Writer) error {
	host, err := machine(ctx, o.program)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(o.out), 0o755); err != nil {
		return fmt.Errorf("make place for the table: %w", err)
	}
	var results []result
	for _, hosts := range o.sizes {
		f, err := newFabric(hosts)
		if err != nil {
			return err
		}
		of := result{fabric: f, samples: make([][]sample, len(managers))}
		for i := range o.runs {
			for k := range managers {
				k = (k + i) % len(managers) // nobody is always first
				s, err := f.once(ctx, &managers[k], o.program)
				if err != nil {
					return fmt.Errorf("%s at %d hosts: %w", managers[k].name, hosts, err)
				}
				fmt.Fprintf(progress, "%d hosts, run %d, %s: %.3f s, %d SMPs, CPU %.2f s and ibsim's %.2f s, %.0f MiB, load %.1f\n",
					hosts, i+1, managers[k].name, s.wall, s.smps, s.cpu, s.simCPU, s.rss, s.load)
				of.samples[k] = append(of.samples[k], s)
			}
		}
		results = append(results, of)
		if err := write(o, host, results); err != nil {
			return err
		}
	}
	return nil
}
