package web_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"portcullis/api"
	"portcullis/api/refusal"
	v1 "portcullis/api/v1"
	"portcullis/api/web/webtest"
)

// slowPast is a past of an hour with one switch, whose answers wait, or are refused.
type slowPast struct {
	waits   chan struct{} // an answer waits until it is closed
	asked   chan struct{}
	refuses atomic.Bool
}

func (s *slowPast) Known(context.Context, bool) (*v1.FabricHistory, error) {
	now := time.Now()
	return &v1.FabricHistory{From: now.Add(-time.Hour), Until: now, Keep: 86400, Every: 2, Gaps: []v1.FabricGap{}, Marks: []v1.FabricMark{}}, nil
}

func (s *slowPast) At(ctx context.Context, q v1.PastQuery, _ bool) (*v1.FabricPast, error) {
	if s.refuses.Load() {
		return nil, refusal.New(refusal.Unavailable, v1.CodeUnavailable, "ask again", "the past cannot be read")
	}
	s.asked <- struct{}{}
	select {
	case <-s.waits:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	return &v1.FabricPast{
		At: q.At, Known: true, Switches: []v1.PastSwitch{{GUID: "0x0000000000001000", Name: "<b>leaf1</b>"}}, Trunks: []v1.PastTrunk{}, Ports: []v1.PastPort{}, ProofWhy: "none",
	}, nil
}

func (s *slowPast) Changes(context.Context, v1.PastChangeQuery, bool) (*v1.PastChanges, error) {
	return &v1.PastChanges{Items: []v1.PastChange{}, Gaps: []v1.FabricGap{}}, nil
}

// TestPastLate: an answer about the past that comes once the present is asked for is not shown, and one that is refused leaves what is shown.
func TestPastLate(t *testing.T) {
	t.Parallel()
	past := &slowPast{waits: make(chan struct{}), asked: make(chan struct{}, 10)}
	_, server := served(t, func(o *api.Options) { o.Fabric, o.Past = &leaf{}, past }, "h1")
	p := webtest.Open(t, server.URL+"/ui/#/fabric", "/v1/fabric/history/at")
	p.SignIn(reader(t, server, "auditor", ""))
	p.AwaitText("6 ports of hosts")
	p.Click(".past summary")
	back := func() {
		p.Await(`(() => {
			const s = document.querySelector('#past');
			if (s.disabled) return false;
			s.value = s.min;
			return s.dispatchEvent(new Event('input'));
		})()`)
	}
	press := `(() => { const b = [...document.querySelectorAll('.past button')].find((b) => b.textContent === 'Now' && !b.disabled); b?.click(); return Boolean(b); })()`
	answered := `performance.getEntriesByType('resource').some((r) => r.name.includes('/history/at') && r.responseEnd > 0)`
	back()
	<-past.asked
	p.Await(press)
	p.Await(`document.querySelector('#past').getAttribute('aria-valuetext') === 'now'`)
	close(past.waits)
	p.Await(answered)
	frames := `(() => { window.frames_ = (window.frames_ || 0) + 1; return window.frames_ > 10; })()`
	p.Await(frames)
	if webtest.Value[bool](p, `Boolean(document.querySelector('.mapbox.was'))`) {
		t.Error("the map shows a past that was left before its answer came")
	}
	p.AwaitText("6 ports of hosts")

	past.refuses.Store(true)
	back()
	p.AwaitText("the past cannot be read")
	p.Await(`document.querySelector('#past').getAttribute('aria-valuetext') === 'now'`)
	if webtest.Value[bool](p, `Boolean(document.querySelector('.mapbox.was'))`) {
		t.Error("the map shows a past that was refused")
	}
	past.refuses.Store(false)
	back()
	p.AwaitText("The map shows the past: ")
	p.AwaitText("1 switches, 0 ports of hosts")
	if webtest.Value[bool](p, `Boolean(document.querySelector('main b'))`) {
		t.Error("the name of a switch is taken for HTML")
	}
	past.refuses.Store(true)
	p.Await(`(() => { const s = document.querySelector('#past'); window.was = s.getAttribute('aria-valuetext'); s.value = String(Number(s.min) + 600); return s.dispatchEvent(new Event('input')); })()`)
	p.AwaitText("the past cannot be read")
	p.Await(`document.querySelector('#past').getAttribute('aria-valuetext') === window.was`)
	p.Quiet()
}
