package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"portcullis/fabricsm/transport/ibsim/ibsimlab"
)

const (
	// glance is how often the log is looked at. The time itself is the log's.
	glance = 20 * time.Millisecond
	// stampLayout is the beginning of a line of OpenSM's log.
	stampLayout = "Jan 02 15:04:05 000000"
	stampSize   = len(stampLayout)
)

// opensm returns the function that measures an OpenSM with arguments: a cold start, no periodic sweeps, until its log says
// SUBNET UP.
func opensm(args ...string) func(context.Context, *ibsimlab.Lab, string) (sample, error) {
	return func(ctx context.Context, lab *ibsimlab.Lab, _ string) (s sample, err error) {
		ctx, cancel := context.WithTimeout(ctx, limit)
		defer cancel()
		log := filepath.Join(lab.Dir(), "osm.log")
		cmd, err := lab.Client().Command(ctx, "sm", "opensm",
			append([]string{"-f", log, "-e", "-d2", "-s", "0", "-q", "local"}, args...)...)
		if err != nil {
			return s, err
		}
		console, err := cmd.StdinPipe()
		if err != nil {
			return s, fmt.Errorf("open console of opensm: %w", err)
		}
		said := &transcript{}
		cmd.Stdout, cmd.Stderr = said, said
		began := time.Now()
		if err := cmd.Start(); err != nil {
			return s, fmt.Errorf("start opensm: %w", err)
		}
		defer func() { err = errors.Join(err, stopOpenSM(cmd)) }()
		up, err := subnetUp(ctx, log)
		if err != nil {
			return s, fmt.Errorf("%w; opensm said: %s", err, said)
		}
		s.wall = up.Sub(began).Seconds()
		if s.cpu, err = cpuOf(cmd.Process.Pid); err != nil {
			return s, err
		}
		s.memory = memoryOf(cmd.Process.Pid)
		s.smps, err = sentBy(ctx, console, said)
		return s, err
	}
}

func stopOpenSM(cmd *exec.Cmd) error {
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return fmt.Errorf("stop opensm: %w", err)
	}
	if err := cmd.Wait(); err != nil && cmd.ProcessState.ExitCode() > 0 {
		return fmt.Errorf("opensm: %w", err)
	}
	return nil
}

// subnetUp waits for the end of the first sweep and returns its time in the log.
func subnetUp(ctx context.Context, file string) (time.Time, error) {
	tick := time.NewTicker(glance)
	defer tick.Stop()
	for {
		data, err := os.ReadFile(file)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return time.Time{}, fmt.Errorf("read log of opensm: %w", err)
		}
		for line := range strings.Lines(string(data)) {
			if strings.Contains(line, "SUBNET UP") && strings.HasSuffix(line, "\n") {
				return stamp(line)
			}
		}
		select {
		case <-ctx.Done():
			return time.Time{}, fmt.Errorf("opensm did not bring the subnet up: %w", context.Cause(ctx))
		case <-tick.C:
		}
	}
}

// stamp reads the time of a log line, which names no year.
func stamp(line string) (time.Time, error) {
	if len(line) < stampSize {
		return time.Time{}, fmt.Errorf("log line %q has no time", line)
	}
	now := time.Now()
	s := strings.ReplaceAll(line[:stampSize], " ", ".")
	t, err := time.ParseInLocation("2006.Jan.02.15:04:05.000000", fmt.Sprintf("%d.%s", now.Year(), s), time.Local)
	if err != nil {
		return time.Time{}, fmt.Errorf("time of log line: %w", err)
	}
	return t, nil
}

var sentLine = regexp.MustCompile(`QP0 MADs sent\s*:\s*(\d+)`)

// sentBy asks OpenSM's console how many SMPs it sent.
func sentBy(ctx context.Context, console io.Writer, said *transcript) (uint64, error) {
	if _, err := io.WriteString(console, "status\n"); err != nil {
		return 0, fmt.Errorf("ask opensm for its status: %w", err)
	}
	tick := time.NewTicker(glance)
	defer tick.Stop()
	for {
		if m := sentLine.FindStringSubmatch(said.String()); m != nil {
			return strconv.ParseUint(m[1], 10, 64)
		}
		select {
		case <-ctx.Done():
			return 0, fmt.Errorf("opensm returned no status: %w", context.Cause(ctx))
		case <-tick.C:
		}
	}
}

// transcript is what a process printed so far.
type transcript struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

// Write implements io.Writer.
func (t *transcript) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.buf.Write(p)
}

// clear forgets what was printed.
func (t *transcript) clear() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.buf.Reset()
}

func (t *transcript) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.buf.String()
}
