package rerouting

import (
	"errors"
	"slices"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/route"
	"portcullis/fabricsm/topo"
)

// Job is a routing computation: a pure function of an immutable snapshot.
type Job struct {
	fabric  *topo.Fabric
	prev    *route.Tables
	found   [][]ib.PortNum // by topo.NodeID: tables that another SM wrote; nil: prev counts
	ruled   uint32
	engines []route.Engine
	early   bool
}

// Result is how a Job ended.
type Result struct {
	Fabric *topo.Fabric
	Tables *route.Tables // nil: none were accepted
	Report *route.Report // of the tables
	Err    error         // why engines were passed over
	ruled  uint32
	early  bool
}

// Run computes the tables and judges them. It may run in any goroutine.
func (j *Job) Run() Result {
	if j.early && oneLane(j.engines) {
		t, err := route.Tree(j.fabric)
		return Result{ruled: j.ruled, early: true, Fabric: j.fabric, Tables: t, Err: err}
	}
	prev := j.prev
	if t := j.adopted(); t != nil {
		prev = t
	}
	choice, err := route.First(j.fabric, prev, j.engines...)
	if err != nil {
		return Result{ruled: j.ruled, early: j.early, Err: err}
	}
	return Result{ruled: j.ruled, early: j.early, Fabric: j.fabric, Tables: choice.Tables, Report: &choice.Report, Err: errors.Join(choice.Refused...)}
}

// oneLane reports whether the tables of all engines need one lane, so that a tree shows hosts what those will: which ports are
// reached, at service level 0.
func oneLane(engines []route.Engine) bool {
	return !slices.ContainsFunc(engines, func(e route.Engine) bool {
		_, one := e.(route.OneLane)
		return !one
	})
}

// Adopts reports whether a job looks for routes to keep in tables that were found.
func (j *Job) Adopts() bool { return j.found != nil }

// adopted returns the tables that another SM left, nil when there are none, or none that fit the fabric.
func (j *Job) adopted() *route.Tables {
	if !j.Adopts() {
		return nil
	}
	t, err := route.Found(j.fabric, func(id topo.NodeID) []ib.PortNum {
		if int(id) >= len(j.found) {
			return nil
		}
		return j.found[id]
	})
	if err != nil {
		return nil // routing meets the same error, and reports it
	}
	return t
}
