package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"portcullis/cmd/internal/program"
)

// openSMPair are two OpenSMs with one SM_Key; the first has the higher priority.
type openSMPair struct {
	ground     *ground
	options    string // more lines of the configuration
	partitions string
	both       [2]*pairedOpenSM
	before     int // sweeps of the second one when the first was ended
}

// pairedOpenSM is one of them.
type pairedOpenSM struct {
	node string
	log  string
	cmd  *exec.Cmd // nil while it is down
}

func newOpenSMPair(ctx context.Context, g *ground, options string) (*openSMPair, error) {
	p := &openSMPair{ground: g, options: options}
	var err error
	if p.partitions, err = g.partitions(); err != nil {
		return nil, err
	}
	for k := range p.both {
		p.both[k] = &pairedOpenSM{node: g.node(g.seats[k])}
	}
	return p, p.begin(ctx)
}

// begin starts both afresh: the first one is master, and the second one standby.
func (p *openSMPair) begin(ctx context.Context) error {
	p.stop()
	if err := p.start(ctx, 0); err != nil {
		return err
	}
	if err := p.both[0].says(ctx, "SUBNET UP"); err != nil {
		return err
	}
	if err := p.start(ctx, 1); err != nil {
		return err
	}
	if err := p.both[1].says(ctx, "Entering STANDBY state"); err != nil {
		return err
	}
	return p.rest(ctx)
}

// rest waits until nothing was swept for a while.
func (p *openSMPair) rest(ctx context.Context) error {
	seen, since := 0, time.Now()
	return program.AwaitEvery(ctx, glance, "OpenSM rests", func() (bool, error) {
		n := p.both[0].ups() + p.both[1].ups()
		if n != seen {
			seen, since = n, time.Now()
		}
		return n > 0 && time.Since(since) >= 2*quiet, nil
	})
}

func (p *openSMPair) start(ctx context.Context, k int) error {
	const firstPriority = 14
	o := p.both[k]
	dir := filepath.Join(p.ground.dir, fmt.Sprintf("opensm-%d", k))
	if err := errors.Join(os.RemoveAll(dir), os.Mkdir(dir, 0o700)); err != nil {
		return err
	}
	conf := filepath.Join(dir, "opensm.conf")
	text := fmt.Sprintf("sm_key 0x5ec4e7ed5ec4e7ed\nsm_priority %d\nforce_log_flush TRUE\n%s", firstPriority-k, p.options)
	if err := os.WriteFile(conf, []byte(text), 0o600); err != nil {
		return err
	}
	client := p.ground.client
	client.Dir = dir
	o.log = filepath.Join(dir, "osm.log")
	cmd, err := client.Command(context.WithoutCancel(ctx), o.node, "opensm", "-F", conf, "-e", "-f", o.log, "-P", p.partitions)
	if err != nil {
		return err
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start opensm: %w", err)
	}
	o.cmd = cmd
	return nil
}

func (p *openSMPair) stop() {
	for _, o := range p.both {
		o.end()
	}
}

// end kills a process, if it runs.
func (o *pairedOpenSM) end() {
	if o.cmd == nil {
		return
	}
	_ = o.cmd.Process.Kill()
	_ = o.cmd.Wait() // it was killed
	o.cmd = nil
}

// says waits for a line of the log.
func (o *pairedOpenSM) says(ctx context.Context, what string) error {
	return program.AwaitEvery(ctx, glance, "the log of OpenSM has the line "+what, func() (bool, error) {
		data, err := os.ReadFile(o.log)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return false, err
		}
		return strings.Contains(string(data), what), nil
	})
}

// ups counts the lines SUBNET UP of the log.
func (o *pairedOpenSM) ups() int {
	data, err := os.ReadFile(o.log)
	if err != nil {
		return 0
	}
	return strings.Count(string(data), "SUBNET UP")
}
