package main

import (
	"context"
	"fmt"
)

// eachSize measures on a fabric of each size, so many runs, and writes what is there after
// each.
func eachSize[R any](ctx context.Context, o *options, begin func(f *fabric, load float64) R, once func(R) error, write func(*options, []string, []R) error) error {
	host, err := machine(ctx, o.program)
	if err != nil {
		return err
	}
	var results []R
	for _, hosts := range o.sizes {
		f, err := newFabric(hosts)
		if err != nil {
			return err
		}
		load, err := loadAverage()
		if err != nil {
			return err
		}
		r := begin(f, load)
		for run := range o.runs {
			if err := once(r); err != nil {
				return fmt.Errorf("%d hosts, run %d: %w", hosts, run+1, err)
			}
		}
		results = append(results, r)
		if err := write(o, host, results); err != nil {
			return err
		}
	}
	return nil
}

// turns is the number of parts in which each measurement is taken, both in turn. Other load of the machine then affects
// both, and the result is the ratio of two turns that follow each other.
const turns = 20

// inTurns measures two candidates and changes which one is first, so that other load of the machine affects both. It
// returns the median rate of each.
func inTurns(measure func(k int) (rate float64, err error)) (medians [2]float64, err error) {
	var took [2][]float64
	for turn := range turns {
		for _, k := range [2]int{turn % 2, 1 - turn%2} {
			rate, err := measure(k)
			if err != nil {
				return medians, err
			}
			took[k] = append(took[k], rate)
		}
	}
	for k := range took {
		medians[k] = spreadOfValues(took[k]).median
	}
	return medians, nil
}
