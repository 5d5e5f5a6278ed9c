package proving

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"portcullis/api/isolation"
	"portcullis/cmd/portcullisd/proving/touched"
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/pause"
	"portcullis/fabricsm/proof/disclosure"
	"portcullis/fabricsm/proof/reader"
	"portcullis/fabricsm/sa"
	"portcullis/fabricsm/transport"
)

const (
	// mostAskers is how many ports ask subnet administration in an examination of everything, one of each tenant first.
	mostAskers = 1024
	// mostAgainAskers is how many do after a reading of what was touched, which may be soon after another one.
	mostAgainAskers = 32
	// heardFor is how long what was answered counts beside readings of what was touched, if it disclosed nothing.
	heardFor = 5 * time.Minute
	// askTime is how long the questions may take together. What was answered until then counts.
	askTime = time.Minute
	// confirmTime is how long the repeated ones may take.
	confirmTime = 30 * time.Second
	// askAgainAfter is when a question is repeated whose answer disclosed something: what the Subnet Manager has just changed may reach subnet
	// administration a moment later.
	askAgainAfter = time.Second
	// askQP is the queue pair that questions come from: that of general management.
	askQP = 1
)

// asker is one port that asks, or a LID that no port has.
type asker struct {
	port      int // or disclosure.None
	questions []disclosure.Question
}

// heardBy returns what subnet administration answers, by a reading that builds on another one, nil if it does not. A change of a few tables
// does not have it asked each time, but where it disclosed something before, or not all could ask.
func (p *Prover) heardBy(ctx context.Context, r, base *reading) (*isolation.Heard, time.Time) {
	now := p.Now()
	if base != nil && base.heard != nil && base.heard.Why == "" && !base.heard.Cut && len(base.heard.Findings)+base.heard.Withdrawn == 0 && now.Sub(base.heardAt) < heardFor {
		return base.heard, base.heardAt
	}
	return p.hear(ctx, r), now
}

// hear has subnet administration answer a sample of ports of a reading, and judges the answers.
func (p *Prover) hear(ctx context.Context, r *reading) *isolation.Heard {
	if p.Ask == nil {
		return &isolation.Heard{Why: "this service answers no hosts as subnet administration (fabric.sa.enabled)"}
	}
	h := &isolation.Heard{Tables: disclosure.New(r.found, p.prefix())}
	most := mostAskers
	if !r.when.Again.IsZero() {
		most = mostAgainAskers
	}
	if err := p.sample(ctx, h, most); err != nil {
		return &isolation.Heard{Tables: h.Tables, Why: err.Error()}
	}
	if h.Ports > 0 && h.Silent == h.Ports {
		return &isolation.Heard{Tables: h.Tables, Why: "subnet administration answered none of the ports"}
	}
	if len(h.Findings) > 0 {
		p.withdraw(h, r)
	}
	return h
}

// prefix returns the GID prefix of the subnet.
func (p *Prover) prefix() ib.Prefix {
	if p.Prefix == 0 {
		return ib.DefaultPrefix
	}
	return p.Prefix
}

// sample asks.
func (p *Prover) sample(ctx context.Context, h *isolation.Heard, most int) error {
	t := h.Tables
	chosen, parties, covered := t.Sample(most, rand.IntN)
	if len(chosen) == 0 {
		return errors.New("no port of a tenant was found whose LID is known")
	}
	askers := []asker{{disclosure.None, t.Questions(disclosure.None, t.Unused(rand.IntN), t.Stranger(disclosure.None, rand.IntN))}}
	for _, i := range chosen {
		askers = append(askers, asker{i, t.Questions(i, 0, t.Stranger(i, rand.IntN))})
	}
	var suspect []asker
	bounded, cancel := context.WithTimeoutCause(ctx, askTime, fmt.Errorf("it did not answer within %v", askTime))
	defer cancel()
	for i := range askers {
		a := &askers[i]
		judged, err := p.put(bounded, h.Tables, a)
		if err != nil && h.Ports > 0 && bounded.Err() != nil && ctx.Err() == nil {
			h.Cut = true
			break // the others are left out; the first ones are one of each party
		}
		if err != nil {
			return err
		}
		if a.port != disclosure.None {
			h.Ports++
		}
		again := asker{port: a.port}
		answered := false
		for k := range judged {
			answered = answered || judged[k].Answered && a.questions[k].Control
			if len(judged[k].Findings) > 0 {
				again.questions = append(again.questions, a.questions[k])
			}
			count(h, &judged[k])
		}
		if !answered && a.port != disclosure.None {
			h.Silent++
		}
		if len(again.questions) > 0 {
			suspect = append(suspect, again)
		}
	}
	h.Parties = min(covered, h.Ports)
	h.Unasked = parties - h.Parties
	bounded, cancel = context.WithTimeoutCause(ctx, confirmTime, fmt.Errorf("it did not answer within %v, asked once more", confirmTime))
	defer cancel()
	return p.confirm(bounded, h, suspect)
}

func count(h *isolation.Heard, j *disclosure.Judgment) {
	h.Questions++
	h.Records += j.Records
	h.Undecided += j.Undecided
	if j.Answered {
		h.Answers++
	}
}

// maxHeard bounds the findings that are kept.
const maxHeard = 10_000

// confirm asks again what disclosed something. Only what is disclosed again counts, also where the time is over before all was asked again: of the
// rest nothing is known.
func (p *Prover) confirm(ctx context.Context, h *isolation.Heard, suspect []asker) error {
	if len(suspect) == 0 {
		return nil
	}
	if !pause.For(ctx, askAgainAfter) {
		return context.Cause(ctx)
	}
	for i := range suspect {
		judged, err := p.put(ctx, h.Tables, &suspect[i])
		if err != nil && len(h.Findings) > 0 {
			for _, a := range suspect[i:] {
				h.Undecided += len(a.questions)
			}
			return nil
		}
		if err != nil {
			return err
		}
		known := map[disclosure.Finding]bool{}
		for k := range judged {
			for _, f := range judged[k].Findings {
				once := f
				once.Field, once.Value = "", ""
				if !known[once] && len(h.Findings) < maxHeard {
					known[once] = true
					h.Findings = append(h.Findings, f)
				}
			}
		}
	}
	return nil
}

// put asks the questions of one port, and judges what is answered.
func (p *Prover) put(ctx context.Context, t *disclosure.Tables, a *asker) ([]disclosure.Judgment, error) {
	packets := make([]transport.Packet, len(a.questions))
	first := rand.Uint64()
	for i := range a.questions {
		q := &a.questions[i]
		packets[i] = transport.Packet{MAD: q.MAD, LID: q.LID, QP: askQP}
		packets[i].MAD.SetTID(ib.TID(first + uint64(i)))
		if q.Claim != (ib.GID{}) {
			packets[i].GRH = transport.GRH{Present: true, GID: q.Claim}
		}
	}
	heard, err := p.Ask(ctx, packets)
	if err != nil {
		return nil, err
	}
	out := make([]disclosure.Judgment, len(heard))
	for i := range heard {
		out[i] = t.Judge(a.port, &a.questions[i], heard[i].Segments, heard[i].Cut)
	}
	return out, nil
}

// withdraw takes findings back that rest on tables which may have changed since they were read. They are looked at again by the next reading.
func (p *Prover) withdraw(h *isolation.Heard, r *reading) {
	var since *touched.Values
	if now := p.view(); now != nil && r.seen != nil {
		since = touched.Since(r.seen, now)
	}
	kept := h.Findings[:0]
	for _, f := range h.Findings {
		if since != nil && !f.Secret && (isTouched(h.Tables, since, f.Asker) || isTouched(h.Tables, since, f.Subject)) {
			h.Undecided++
			h.Withdrawn++
			continue
		}
		kept = append(kept, f)
	}
	h.Findings = kept
}

// isTouched reports whether the tables by which a port was judged may have changed.
func isTouched(t *disclosure.Tables, since *touched.Values, i int) bool {
	if i == disclosure.None {
		return false
	}
	end, _ := t.End(i)
	for _, v := range []reader.Value{
		{Node: t.Node(i), Port: end.Port.Port, Attr: mad.AttrPKeyTable},
		{Node: t.Node(i), Port: end.Port.Port, Attr: mad.AttrPortInfo},
		{Node: t.Node(i), Port: end.Port.Port, Attr: mad.AttrGUIDInfo},
		{Node: end.At.Switch, Port: end.At.Port, Attr: mad.AttrPKeyTable},
		{Node: end.At.Switch, Port: end.At.Port, Attr: mad.AttrPortInfo},
		{Node: end.At.Switch, Port: end.At.Port, Attr: mad.AttrNodeInfo},
	} {
		if since.Has(v) {
			return true
		}
	}
	return false
}

// Asked answers questions as subnet administration does that come from ports.
type Asked func(ctx context.Context, questions []transport.Packet) ([]sa.Heard, error)
