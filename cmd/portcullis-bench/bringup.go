package main

import (
	"context"
	"fmt"
	"io"
)

// bringUp measures cold starts and writes the table.
func bringUp(ctx context.Context, o *options, progress io.Writer) error {
	host, err := machine(ctx, o.program)
	if err != nil {
		return err
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
				k = (k + i) % len(managers) // no manager is always first
				s, err := f.once(ctx, &managers[k], o.program)
				if err != nil {
					return fmt.Errorf("%s at %d hosts: %w", managers[k].name, hosts, err)
				}
				fmt.Fprintf(progress, "%d hosts, run %d, %s: %.3f s, %d SMPs, CPU %.2f s and ibsim's %.2f s, %.0f MiB, load %.1f\n",
					hosts, i+1, managers[k].name, s.wall, s.smps, s.cpu, s.simCPU, s.memory.peak, s.load)
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
