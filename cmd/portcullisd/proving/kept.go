package proving

import (
	"context"
	"errors"
	"time"

	"portcullis/api/isolation"
	"portcullis/api/isolation/outsiders"
	"portcullis/api/isolation/standing"
	"portcullis/api/refusal"
	v1 "portcullis/api/v1"
	"portcullis/fabricsm/ib"
)

// maxAgeUnpaced is how long a result counts where the service makes none by itself.
const maxAgeUnpaced = 24 * time.Hour

// kept is what was found last of all tenants, under the assumption of the configuration.
type kept struct {
	found   *v1.Isolation // nil: nothing was found yet
	ports   []v1.IsolationPortVerdict
	drift   []v1.Drift
	reading *reading         // of the same examination
	mine    bool             // it was made since this instance leads
	beside  *outsiders.Found // what passes a P_Key without a membership, of the same examination
	origin  origin
	failed  error // why the newest examination by the service itself has no result; nil: it has one
	at      time.Time
}

// note keeps what was found of all tenants, by a reading.
func (p *Prover) note(r *reading, out *v1.Isolation, q v1.IsolationQuery, why origin) {
	if q.Tenant != "" || q.Membership != p.Pace.Membership {
		return
	}
	p.told.Lock()
	known, ports, drift, beside := p.kept.reading == r, p.kept.ports, p.kept.drift, p.kept.beside
	p.told.Unlock()
	if !known { // the same record is not written again for each request that shares a reading
		before := drift
		drift = r.proven.Drift()
		isolation.KeepSince(drift, before, &out.Bounds)
		ports, beside = r.proven.Ports(), &outsiders.Found{Begun: out.Bounds.Newest(), Outsiders: r.proven.Outsiders()}
	}
	p.told.Lock()
	defer p.told.Unlock()
	if was := p.kept.found; was != nil && out.Bounds.Newest().Before(was.Bounds.Newest()) {
		return // a reading that is shared may be older
	}
	p.kept.found, p.kept.ports, p.kept.drift, p.kept.origin, p.kept.failed = out, ports, drift, why, nil
	p.kept.reading, p.kept.beside, p.kept.mine = r, beside, true
	if p.standing != nil {
		p.standing.News()
	}
}

// noteFailure keeps why the service found nothing.
func (p *Prover) noteFailure(err error) {
	p.told.Lock()
	defer p.told.Unlock()
	p.kept.failed, p.kept.at = err, p.Now()
}

// Last returns what was found when all tenants were examined last, and when that began; nil before the first time.
func (p *Prover) Last() (*v1.Isolation, time.Time) {
	p.told.Lock()
	defer p.told.Unlock()
	if p.kept.found == nil {
		return nil, time.Time{}
	}
	return p.kept.found, p.kept.found.Bounds.Begun
}

// Standing returns how the isolation of all tenants stands. It reports false while this instance does not lead, or has not read what
// others found.
func (p *Prover) Standing() (standing.Standing, bool) {
	p.told.Lock()
	k := p.standing
	p.told.Unlock()
	if k == nil {
		return standing.Standing{}, false
	}
	return k.Standing()
}

// lead has what is found recorded until ctx ends, which is to be while this instance leads.
func (k *Keeper) lead(ctx context.Context) {
	p := k.Prover
	s := standing.New(standing.Options{
		Store: p.Store, Log: p.Log, Now: p.Now, Every: p.Pace.Every, MaxAge: p.Pace.MaxAge(),
		Newest: func() *v1.Isolation { found, _ := p.Last(); return found }, Why: k.why,
		Beside: func(ctx context.Context) error { return errors.Join(p.recordBeside(ctx), p.remedy(ctx)) },
	})
	p.lead(s)
	defer func() {
		p.lead(nil)
		p.forget()
		found, _ := p.beside()
		p.recordedBeside(found) // the instance that leads next records newer ones, which this one must not replace when it leads again
	}()
	s.Run(ctx)
}

// recordBeside records what passes a P_Key without a membership.
func (p *Prover) recordBeside(ctx context.Context) error {
	found, recorded := p.beside()
	if found == nil || found == recorded {
		return nil
	}
	if err := outsiders.Record(ctx, p.Store, found); err != nil {
		return err
	}
	p.recordedBeside(found)
	return nil
}

// remedy does what follows from the drift of the newest reading, if that reading still counts, and began when the Subnet Manager had
// nothing left to write.
func (p *Prover) remedy(ctx context.Context) error {
	p.told.Lock()
	now := p.kept
	p.told.Unlock()
	if p.Remedy == nil || now.found == nil || !now.mine || now.found.Bounds.Newest().Add(p.Pace.MaxAge()).Before(p.Now()) {
		return nil
	}
	if v := now.reading.seen; v == nil || v.State != ib.SMMaster || !v.Intent || !v.Settled {
		return nil // what was not written yet would show as drift
	}
	return p.Remedy.Look(ctx, now.drift, &now.found.Bounds)
}

// forget has no reading build on those that were made so far: what others touch while they lead is not seen here.
func (p *Prover) forget() {
	p.told.Lock()
	defer p.told.Unlock()
	p.plain, p.membership, p.basis, p.kept.mine = nil, nil, nil, false
}

// beside returns what passed a P_Key without a membership when all tenants were examined last, and what of it was recorded last; nil before
// the first time.
func (p *Prover) beside() (found, recorded *outsiders.Found) {
	p.told.Lock()
	defer p.told.Unlock()
	return p.kept.beside, p.recorded
}

func (p *Prover) recordedBeside(f *outsiders.Found) {
	p.told.Lock()
	defer p.told.Unlock()
	p.recorded = f
}

func (p *Prover) lead(s *standing.Keeper) {
	p.told.Lock()
	defer p.told.Unlock()
	p.standing = s
}

// why returns why there is no newer result; empty: not known.
func (k *Keeper) why() string {
	p := k.Prover
	p.told.Lock()
	failed := p.kept.failed
	p.told.Unlock()
	switch {
	case failed != nil:
		return failed.Error()
	case p.Pace.Every == 0:
		return "the service makes none by itself (verify.every)"
	case !k.Settled():
		return "the Subnet Manager has not settled the fabric"
	}
	return ""
}

// Kept implements api.IsolationProver.
func (p *Prover) Kept(context.Context) (*v1.IsolationKept, error) {
	p.told.Lock()
	now := p.kept
	p.told.Unlock()
	why := ""
	if now.failed != nil {
		why = now.failed.Error()
	}
	if now.found == nil {
		return nil, notExamined(why)
	}
	most := p.Pace.MaxAge()
	age := max(0, p.Now().Sub(now.found.Bounds.Begun))
	out := &v1.IsolationKept{
		Found: *now.found, By: v1.ByRequest, Age: age.Seconds(), MaxAge: most.Seconds(), Current: age <= most, Every: p.Pace.Every.Seconds(), Failure: why,
	}
	if now.origin == itself {
		out.By = v1.ByItself
	}
	if why != "" {
		at := now.at.UTC()
		out.FailedAt = &at
	}
	return out, nil
}

// notExamined is the refusal where nothing was found yet; why the newest attempt failed, empty: it is not said.
func notExamined(why string) error {
	detail := "this instance has not examined all tenants since it started"
	if why != "" {
		detail += "; the newest attempt: " + why
	}
	return &refusal.Error{Code: v1.CodeNotExamined, Status: refusal.NotFound, Detail: detail, Hint: "portcullis verify examines them now"}
}
