package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"portcullis/fabricsm/transport/ibsim/ibsimlab"
)

// quiet is how long nothing must happen for the work to have ended.
const quiet = time.Second

// runningOpenSM is an OpenSM that has brought the fabric up.
type runningOpenSM struct {
	cmd     *exec.Cmd
	console io.Writer
	said    *transcript
	log     string
	ups     int    // SUBNET UP lines at the mark
	sent    uint64 // SMPs at the mark
}

// startOpenSM returns the function that starts an OpenSM with arguments. Its light sweep every ten seconds stays on.
// Without it a change is lost permanently when so many ports change at once that OpenSM's filter of repeated traps drops
// the last ones.
func startOpenSM(args ...string) func(context.Context, *ibsimlab.Lab, string, string) (subject, error) {
	return func(ctx context.Context, lab *ibsimlab.Lab, _, partitions string) (subject, error) {
		o := &runningOpenSM{log: filepath.Join(lab.Dir(), "osm.log"), said: &transcript{}}
		var err error
		o.cmd, err = lab.Client().Command(ctx, "sm", "opensm",
			append([]string{"-f", o.log, "-e", "-d2", "-q", "local", "-P", partitions}, args...)...)
		if err != nil {
			return nil, err
		}
		if o.console, err = o.cmd.StdinPipe(); err != nil {
			return nil, fmt.Errorf("open console of opensm: %w", err)
		}
		o.cmd.Stdout, o.cmd.Stderr = o.said, o.said
		if err := o.cmd.Start(); err != nil {
			return nil, fmt.Errorf("start opensm: %w", err)
		}
		if _, _, err := o.settled(ctx); err != nil {
			return nil, errors.Join(err, o.stop())
		}
		return o, nil
	}
}

func (o *runningOpenSM) pid() int      { return o.cmd.Process.Pid }
func (o *runningOpenSM) stop() error   { return stopOpenSM(o.cmd) }
func (o *runningOpenSM) reread() error { return o.cmd.Process.Signal(syscall.SIGHUP) }

func (o *runningOpenSM) mark(ctx context.Context) error {
	stamps, err := o.stamps()
	if err != nil {
		return err
	}
	o.ups = len(stamps)
	o.sent, err = o.smps(ctx)
	return err
}

// settled takes the first SUBNET UP for the end, although others may follow:
// the doubt is OpenSM's. The SMPs are all of them.
func (o *runningOpenSM) settled(ctx context.Context) (at time.Time, sent requests, err error) {
	tick := time.NewTicker(glance)
	defer tick.Stop()
	seen, since := o.ups, time.Now()
	for {
		stamps, err := o.stamps()
		if err != nil {
			return at, sent, err
		}
		if len(stamps) != seen {
			seen, since = len(stamps), time.Now()
		}
		if seen > o.ups && time.Since(since) >= quiet {
			all, err := o.smps(ctx)
			return stamps[o.ups], requests{all: all - o.sent}, err
		}
		select {
		case <-ctx.Done():
			return at, sent, fmt.Errorf("opensm did not end its sweep: %w", context.Cause(ctx))
		case <-tick.C:
		}
	}
}

// stamps returns the times of the SUBNET UP lines.
func (o *runningOpenSM) stamps() (all []time.Time, err error) {
	data, err := os.ReadFile(o.log)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("read log of opensm: %w", err)
	}
	for line := range strings.Lines(string(data)) {
		if strings.Contains(line, "SUBNET UP") && strings.HasSuffix(line, "\n") {
			t, err := stamp(line)
			if err != nil {
				return nil, err
			}
			all = append(all, t)
		}
	}
	return all, nil
}

func (o *runningOpenSM) smps(ctx context.Context) (uint64, error) {
	o.said.clear()
	return sentBy(ctx, o.console, o.said)
}
