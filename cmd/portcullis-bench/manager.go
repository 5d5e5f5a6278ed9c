package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"time"

	"portcullis/fabricsm/transport/ibsim/ibsimlab"
)

// limit bounds one bring-up.
const limit = 5 * time.Minute

// manager is a subnet manager to measure.
type manager struct {
	name string
	run  func(ctx context.Context, lab *ibsimlab.Lab, program string) (sample, error)
}

// managers are measured side by side; the last is ours.
var managers = [...]manager{
	{name: "OpenSM", run: opensm()},
	{name: "OpenSM -n 32 -A", run: opensm("-n", "32", "-A")},
	{name: "Portcullis", run: portcullis},
}

// ours is the index of ours in managers.
const ours = len(managers) - 1

// portcullis measures the whole process: it ends when the fabric is settled.
func portcullis(ctx context.Context, lab *ibsimlab.Lab, program string) (s sample, err error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, "sm", "--port", "ibsim:"+lab.Socket()+"/sm", "--once", "--json", "--enforcement", "accepted")
	var out, complaint bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &complaint
	began := time.Now()
	if err := cmd.Start(); err != nil {
		return s, fmt.Errorf("start %s: %w", program, err)
	}
	peak := watchPeak(cmd.Process.Pid)
	err = cmd.Wait()
	s.wall = time.Since(began).Seconds()
	s.memory = peak()
	if err != nil {
		return s, fmt.Errorf("%s: %w: %s", program, err, &complaint)
	}
	s.cpu = (cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds()
	var said struct {
		SMPs struct {
			Total uint64 `json:"total"`
		} `json:"smps"`
		Problems []string `json:"problems"`
	}
	if err := json.Unmarshal(out.Bytes(), &said); err != nil {
		return s, fmt.Errorf("report of %s: %w", program, err)
	}
	if len(said.Problems) > 0 {
		return s, fmt.Errorf("%s met problems: %q", program, said.Problems)
	}
	s.smps = said.SMPs.Total
	return s, nil
}
