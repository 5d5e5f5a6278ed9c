package main

import (
	"fmt"
	"strconv"
	"time"

	"portcullis/fabricsm/sim"
)

// Each of these adds to the faults that a node has; heal ends them all.

func (c *console) silence(args []string) error {
	return c.fabric.ChangeFault(args[0], func(f *sim.Fault) { f.Silent = true })
}

func (c *console) loss(args []string) error {
	share, err := percent("loss", args[len(args)-1])
	if err != nil {
		return err
	}
	return c.fabric.ChangeFault(args[0], func(f *sim.Fault) { f.Loss = share })
}

func (c *console) duplicate(args []string) error {
	share, err := percent("duplicate", args[1])
	if err != nil {
		return err
	}
	return c.fabric.ChangeFault(args[0], func(f *sim.Fault) { f.Duplicate = share })
}

func (c *console) delay(args []string) error {
	d, err := duration("delay", args[1])
	if err != nil {
		return err
	}
	return c.fabric.ChangeFault(args[0], func(f *sim.Fault) { f.Delay = d })
}

func (c *console) slow(args []string) error {
	d, err := duration("slow", args[1])
	if err != nil {
		return err
	}
	return c.fabric.ChangeFault(args[0], func(f *sim.Fault) { f.Work = d })
}

// percent reads a share of packets.
func percent(command, arg string) (share float64, err error) {
	n, err := strconv.ParseFloat(arg, 64)
	if err != nil || !(n >= 0 && n <= 100) {
		return 0, fmt.Errorf("%s %q: want a number from 0 to 100", command, arg)
	}
	return n / 100, nil
}

func duration(command, arg string) (time.Duration, error) {
	d, err := time.ParseDuration(arg)
	if err != nil || d < 0 {
		return 0, fmt.Errorf("%s %q: want a duration such as 5ms", command, arg)
	}
	return d, nil
}
