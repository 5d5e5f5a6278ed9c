package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"
)

// cpuOf returns the CPU seconds of all threads of a process that runs.
func cpuOf(pid int) (float64, error) {
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid))
	if err != nil || len(files) == 0 {
		return 0, fmt.Errorf("CPU time of process %d: it has ended", pid)
	}
	sum := 0.0
	for _, file := range files {
		data, err := os.ReadFile(file)
		if errors.Is(err, os.ErrNotExist) {
			continue // a thread that ended meanwhile
		}
		var ns float64
		if _, serr := fmt.Sscan(string(data), &ns); err != nil || serr != nil {
			return 0, fmt.Errorf("CPU time of process %d: %w", pid, errors.Join(err, serr))
		}
		sum += ns / 1e9
	}
	return sum, nil
}

// memory is what a process holds, in MiB.
type memory struct {
	peak    float64 // resident, the most there was: with the pages of its program
	private float64 // resident now, without them
}

// memoryOf returns the memory of a process, or zero if it has ended.
func memoryOf(pid int) (m memory) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return memory{}
	}
	for line := range strings.Lines(string(data)) {
		name, rest, _ := strings.Cut(line, ":")
		var to *float64
		switch name {
		case "VmHWM":
			to = &m.peak
		case "RssAnon":
			to = &m.private
		default:
			continue
		}
		if kib, err := strconv.ParseFloat(strings.Fields(rest)[0], 64); err == nil {
			*to = kib / 1024
		}
	}
	return m
}

// watchPeak follows the peak memory of a process that ends by itself. Its result may miss the last milliseconds. The
// kernel's own account at the end is of no use: it starts with the memory of the parent process.
func watchPeak(pid int) (stop func() memory) {
	const pace = 4 * time.Millisecond
	done, peak := make(chan struct{}), make(chan memory, 1)
	go func() {
		tick := time.NewTicker(pace)
		defer tick.Stop()
		var most memory
		for {
			select {
			case <-done:
				peak <- most
				return
			case <-tick.C:
				m := memoryOf(pid)
				most = memory{peak: max(most.peak, m.peak), private: max(most.private, m.private)}
			}
		}
	}()
	return func() memory {
		close(done)
		return <-peak
	}
}

func loadAverage() (float64, error) {
	data, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return 0, fmt.Errorf("read load: %w", err)
	}
	var one float64
	if _, err := fmt.Sscan(string(data), &one); err != nil {
		return 0, fmt.Errorf("read load: %w", err)
	}
	return one, nil
}

// machine describes the machine and the measured programs, a line each.
func machine(ctx context.Context, program string) ([]string, error) {
	out, err := exec.CommandContext(ctx, program, "--version").Output()
	if err != nil {
		return nil, fmt.Errorf("ask %s for its version: %w", program, err)
	}
	lines := []string{
		fmt.Sprintf("%s, %d CPUs, %s", cpuModel(), runtime.NumCPU(), runtime.Version()),
		strings.TrimSpace(strings.Split(string(out), "\n")[0]),
	}
	for _, p := range []string{"opensm", "ibsim-utils", "infiniband-diags"} {
		out, err := exec.CommandContext(ctx, "dpkg-query", "-W", "-f", "${Package} ${Version}", p).Output()
		if err != nil {
			out = []byte(p + " of unknown version")
		}
		lines = append(lines, string(out))
	}
	return lines, nil
}

func cpuModel() string {
	data, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return runtime.GOARCH
	}
	for line := range strings.Lines(string(data)) {
		if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return runtime.GOARCH
}
