package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"portcullis/fabricsm/transport/ibsim/ibsimlab"
)

// settledLine is what "portcullisd sm --json" says each time the fabric is
// settled.
type settledLine struct {
	Time     time.Time `json:"time"`
	Event    string    `json:"event"`
	SMPs     uint64    `json:"smps"`
	Repeated uint64    `json:"repeated"`
}

// runningOurs is a "portcullisd sm" that has brought the fabric up.
type runningOurs struct {
	cmd       *exec.Cmd
	complaint bytes.Buffer
	read      sync.WaitGroup

	mu    sync.Mutex
	lines []settledLine
	wrong error // a line that can't be read
	ended bool  // no line follows
	from  int   // lines at the mark
}

func startPortcullis(ctx context.Context, lab *ibsimlab.Lab, program, partitions string) (subject, error) {
	return startPortcullisWith()(ctx, lab, program, partitions)
}

// startPortcullisWith returns the function that starts a portcullisd with more arguments.
func startPortcullisWith(args ...string) func(ctx context.Context, lab *ibsimlab.Lab, program, partitions string) (subject, error) {
	return func(ctx context.Context, lab *ibsimlab.Lab, program, partitions string) (subject, error) {
		return runPortcullis(ctx, program, append([]string{
			"sm", "--port", "ibsim:" + lab.Socket() + "/sm", "--json",
			"--enforcement", "accepted", "--partitions", partitions,
		}, args...))
	}
}

func runPortcullis(ctx context.Context, program string, args []string) (subject, error) {
	p := &runningOurs{}
	p.cmd = exec.CommandContext(ctx, program, args...)
	p.cmd.Stderr = &p.complaint
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", program, err)
	}
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", program, err)
	}
	p.read.Go(func() { p.follow(out) })
	if _, _, err := p.settled(ctx); err != nil {
		return nil, errors.Join(err, p.stop())
	}
	return p, nil
}

func (p *runningOurs) follow(out io.Reader) {
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		var l settledLine
		err := json.Unmarshal(lines.Bytes(), &l)
		p.mu.Lock()
		p.wrong = errors.Join(p.wrong, err)
		if l.Event == "settled" {
			p.lines = append(p.lines, l)
		}
		p.mu.Unlock()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.wrong, p.ended = errors.Join(p.wrong, lines.Err()), true
}

func (p *runningOurs) pid() int      { return p.cmd.Process.Pid }
func (p *runningOurs) reread() error { return p.cmd.Process.Signal(syscall.SIGHUP) }

func (p *runningOurs) stop() error {
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return fmt.Errorf("stop portcullisd: %w", err)
	}
	p.read.Wait()
	if err := p.cmd.Wait(); err != nil {
		return fmt.Errorf("portcullisd: %w: %s", err, &p.complaint)
	}
	return nil
}

func (p *runningOurs) mark(context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.from = len(p.lines)
	return p.wrong
}

// settled takes the last line for the end.
func (p *runningOurs) settled(ctx context.Context) (at time.Time, sent requests, err error) {
	tick := time.NewTicker(glance)
	defer tick.Stop()
	for {
		since, ended, wrong := p.since()
		if n := len(since); n > 0 && time.Since(since[n-1].Time) >= quiet {
			for _, l := range since {
				sent.all += l.SMPs
				sent.repeated += l.Repeated
			}
			return since[n-1].Time, sent, wrong
		}
		if ended {
			return at, sent, errors.Join(wrong, errors.New("portcullisd ended before the fabric was settled"))
		}
		select {
		case <-ctx.Done():
			return at, sent, fmt.Errorf("portcullisd did not settle: %w: %s", context.Cause(ctx), &p.complaint)
		case <-tick.C:
		}
	}
}

func (p *runningOurs) since() (lines []settledLine, ended bool, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.lines[p.from:], p.ended, p.wrong
}
