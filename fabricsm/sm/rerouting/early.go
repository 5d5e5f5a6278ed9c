package rerouting

import (
	"time"

	"portcullis/fabricsm/route"
)

// Early tables are of a fabric whose own tables are read only after its ports are configured. They are computed of the links
// alone, and no switch ever gets them: subnet administration answers by them. Only tables of one lane are of use for that,
// since others have another service level for each pair of ports. Where no engine makes others, a tree is enough.

// earlyPatience is how long the tables of switches wait at most for the ports to be configured.
const earlyPatience = 5 * time.Second

// early is how far this is.
type early struct {
	stage  earlyStage
	since  time.Time
	tables *route.Tables // nil: none that could be used
}

type earlyStage uint8

const (
	noEarly      earlyStage = iota // tables that are computed are those that switches get
	earlyDue                       // a job is due
	earlyRuns                      // a job is out
	earlyDone                      // it has ended
	earlyReading                   // the tables of switches are read
)

// BeginEarly asks for early tables at the beginning of a mastership, in place of Begin.
func (r *Routing) BeginEarly() { r.early = early{stage: earlyDue, since: r.fabric.Now()} }

// ReadsLater reports whether tables of switches are left until the ports are configured.
func (r *Routing) ReadsLater() bool {
	switch r.early.stage {
	case noEarly:
		return r.tables == nil && !r.fabric.IsWriting()
	case earlyReading:
		return false
	default:
		return true
	}
}

func (r *Routing) earlyJob(engines []route.Engine) (Job, bool) {
	if r.early.stage != earlyDue || r.running || !r.fabric.IsWriting() {
		return Job{}, false
	}
	r.early.stage, r.running = earlyRuns, true
	return Job{fabric: r.topo.Freeze(), ruled: r.ruled, engines: engines, early: true}, true
}

func (r *Routing) earlyEnded(res *Result) {
	r.early.stage = earlyDone
	if res.Tables != nil && res.Tables.Layers() <= 1 {
		r.early.tables = res.Tables
	}
}

// Early returns the early tables, nil before there are any, once others were taken, and where they could not be used.
func (r *Routing) Early() *route.Tables { return r.early.tables }

// MayReadNow reports whether the tables of switches are to be read now. quiet says that no other work is left.
func (r *Routing) MayReadNow(quiet bool) bool {
	return r.early.stage == earlyDone && (quiet || r.fabric.Now().Sub(r.early.since) >= earlyPatience)
}

// ReadsNow takes that the tables of switches are read from now on.
func (r *Routing) ReadsNow() { r.early.stage = earlyReading }

// IsReading reports whether they are.
func (r *Routing) IsReading() bool { return r.early.stage == earlyReading }

// EndEarly ends all that, so that the tables of switches are computed. Early tables stay until then.
func (r *Routing) EndEarly() { r.early.stage = noEarly }
