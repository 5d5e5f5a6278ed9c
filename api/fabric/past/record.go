package past

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"portcullis/api/fabric/timeline"
	"portcullis/api/fabric/timeline/spool"
	v1 "portcullis/api/v1"
	"portcullis/fabricsm/pause"
)

const (
	// Every is how often the fabric is looked at, at most.
	Every = 2 * time.Second
	// share is how many times as long as a look took nothing is done after it.
	share = 50
	// aliveEvery is how often it is recorded that nothing changed: how much of what is known a crash may take.
	aliveEvery = 30 * time.Second
	// retryAfter is the pause after a write that failed.
	retryAfter = 30 * time.Second
	// mostBack is how far the clock may be behind what was recorded last: events of that time get the next millisecond.
	mostBack = time.Minute
	// pageSize is how many rows are asked for at once.
	pageSize = v1.MaxPage
)

// Fabric shows what the Subnet Manager sees. Package query implements it.
type Fabric interface {
	Nodes(ctx context.Context, q v1.NodeQuery) (*v1.Page[v1.FabricNode], error)
	Links(ctx context.Context, q v1.LinkQuery) (*v1.Page[v1.FabricLink], error)
	Ports(ctx context.Context, q v1.PortQuery) (*v1.Page[v1.FabricPort], error)
}

// Sight says what is seen, without showing it.
type Sight struct {
	Version any    // differs where something else is seen; comparable
	Why     string // nothing is seen; empty: something is
	Settled bool   // all that is to be found was found
}

// Options are what a Recorder is made of. All are required.
type Options struct {
	Spool  *spool.Spool
	Fabric Fabric
	Sight  func() Sight
	Hosts  *Hosts
	Proof  func() Proof
	Now    func() time.Time
	Log    *slog.Logger
}

// Recorder records what the map shows.
type Recorder struct {
	Options
	every atomic.Int64 // from one look to the next, as it is now

	table   timeline.State
	known   bool
	version any                    // of what is in the table
	had     map[timeline.Kind]bool // rows of the kind were known once
	hosts   uint64                 // version
	proof   Proof
	why     string // nothing is known of the time before the next beginning
	said    string // in the log
	retry   time.Time
}

// away is why nothing is known of the time before an instance records.
const away = "this instance did not lead, or did not run"

// NewRecorder returns a Recorder that has recorded nothing.
func NewRecorder(o Options) *Recorder {
	r := &Recorder{Options: o, why: away, had: map[timeline.Kind]bool{}, proof: Proof{Why: "nothing was asked yet"}}
	r.every.Store(int64(Every))
	return r
}

// Every returns how often the fabric is looked at now.
func (r *Recorder) Every() time.Duration { return time.Duration(r.every.Load()) }

// Run records until ctx ends, which is to be while this instance leads.
func (r *Recorder) Run(ctx context.Context) {
	for {
		began := time.Now()
		r.look(ctx, r.Now())
		r.every.Store(int64(max(Every, share*time.Since(began))))
		if !pause.For(ctx, r.Every()) {
			break
		}
	}
	r.unknown(r.Now(), "this instance does not lead any longer")
	r.why, r.retry = away, time.Time{}
	if err := r.Spool.Close(); err != nil {
		r.Log.Warn("the file of how the fabric was is not closed", "error", err)
	}
}

// look records what changed since the last look.
func (r *Recorder) look(ctx context.Context, now time.Time) {
	sight := r.Sight()
	last := r.Spool.Written()
	switch {
	case now.Before(last.Add(-mostBack)):
		// Nothing is recorded of a time that may have been recorded already, or is still to come.
		r.unknown(now, "the clock was set back")
		r.failed(now, fmt.Errorf("the clock is behind what was recorded last, at %s: wait until then, or stop the service and remove the files of history", last.Format(time.RFC3339)))
		return
	case now.Before(r.retry) && r.retry.Sub(now) <= retryAfter:
		return
	case sight.Why != "":
		r.unknown(now, sight.Why)
		return
	case !r.known && !sight.Settled:
		return // what is not found yet would be recorded as gone
	}
	seen, err := r.changes(ctx, sight)
	if err != nil {
		if ctx.Err() == nil {
			r.unknown(now, "the fabric was not shown: "+err.Error())
		}
		return
	}
	r.note(now, r.write(now, seen))
}

// write adds what changed.
func (r *Recorder) write(now time.Time, seen looked) error {
	s := r.Spool
	switch {
	case !s.Open():
		return s.Begin(now, r.why, &r.table)
	case !r.known:
		return s.Resume(now, append(seen.changes, seen.undated...), &r.table)
	case len(seen.undated) > 0:
		// The table has both already, so that no segment may begin with it in between.
		if len(seen.changes) > 0 {
			if err := s.Change(now, seen.changes, nil); err != nil {
				return err
			}
		}
		return s.Resume(now, seen.undated, &r.table)
	case len(seen.changes) > 0 || now.Sub(s.Written()) >= aliveEvery:
		return s.Change(now, seen.changes, &r.table)
	default:
		s.Looked(now)
		return nil
	}
}

// note takes whether what was seen is recorded.
func (r *Recorder) note(now time.Time, err error) {
	if r.known = err == nil; r.known {
		if r.said != "" {
			r.Log.Info("how the fabric changes is recorded again")
		}
		r.said, r.why = "", ""
		return
	}
	r.failed(now, err)
}

func (r *Recorder) failed(now time.Time, err error) {
	r.retry, r.why = now.Add(retryAfter), "recording failed: "+err.Error()
	if r.said != err.Error() {
		r.said = err.Error()
		r.Log.Warn("how the fabric changes is not recorded; nothing else depends on it", "error", err, "retry_in", retryAfter)
	}
}

// unknown records that nothing is known from now on.
func (r *Recorder) unknown(now time.Time, why string) {
	if !r.known {
		return
	}
	r.known = false
	if err := r.Spool.End(now, why); err != nil {
		r.failed(now, err)
	}
}

// looked is what a look found.
type looked struct {
	changes []timeline.Change
	undated []timeline.Change // rows of what became known for the first time: they did not change
}

// changes has the table be what is seen, and returns what differs.
func (r *Recorder) changes(ctx context.Context, sight Sight) (looked, error) {
	var out looked
	if sight.Version != r.version || r.version == nil {
		rows, err := r.seen(ctx)
		if err != nil {
			return out, err
		}
		out.changes = r.table.Replace([]timeline.Kind{kindSwitch, kindTrunk, kindPort}, rows)
		r.version = sight.Version
	}
	if rows, version := r.Hosts.rows(r.hosts); version != r.hosts {
		r.replace(&out, kindAboutHosts, kindHost, rows)
		r.hosts = version
	}
	if proof := r.Proof(); !proof.same(&r.proof) {
		r.replace(&out, kindAboutProof, kindProof, proof.rows())
		r.proof = proof
	}
	return out, nil
}

// replace has the rows of a kind be others, the last of which says why they are not known. Where they are not, those that were known last stay in the
// table, so that what is another one once they are known again is a change that is noticed then.
func (r *Recorder) replace(out *looked, about, kind timeline.Kind, rows []timeline.Row) {
	if last := rows[len(rows)-1:]; last[0].Value[0] != "" {
		out.changes = append(out.changes, r.table.Replace([]timeline.Kind{about}, last)...)
		return
	}
	changes := r.table.Replace([]timeline.Kind{kind, about}, rows)
	if r.had[kind] {
		out.changes = append(out.changes, changes...)
		return
	}
	r.had[kind] = true
	out.undated = append(out.undated, changes...)
}

// seen returns the rows of what is seen. Each was right at some time during the call.
func (r *Recorder) seen(ctx context.Context) ([]timeline.Row, error) {
	var rows []timeline.Row
	err := pages(func(q v1.PageQuery) (*v1.Page[v1.FabricNode], error) {
		return r.Fabric.Nodes(ctx, v1.NodeQuery{Type: "switch", PageQuery: q})
	}, func(n *v1.FabricNode) { rows = append(rows, switchRow(n)) })
	if err == nil {
		err = pages(func(q v1.PageQuery) (*v1.Page[v1.FabricLink], error) {
			return r.Fabric.Links(ctx, v1.LinkQuery{Trunks: true, PageQuery: q})
		}, func(l *v1.FabricLink) { rows = append(rows, trunkRow(l)) })
	}
	if err == nil {
		err = pages(func(q v1.PageQuery) (*v1.Page[v1.FabricPort], error) {
			return r.Fabric.Ports(ctx, v1.PortQuery{Type: "CA", PageQuery: q})
		}, func(p *v1.FabricPort) {
			if !p.Place.IsZero() {
				rows = append(rows, portRow(p))
			}
		})
	}
	return rows, err
}

// pages calls each with the items of all pages, MaxRows of them at most and one page more.
func pages[T any](ask func(v1.PageQuery) (*v1.Page[T], error), each func(*T)) error {
	q := v1.PageQuery{Limit: pageSize}
	for n := 0; n <= timeline.MaxRows; {
		page, err := ask(q)
		if err != nil {
			return err
		}
		for i := range page.Items {
			each(&page.Items[i])
		}
		n += len(page.Items)
		if q.After = page.Next; q.After == "" {
			return nil
		}
	}
	return timeline.ErrTooMany
}
