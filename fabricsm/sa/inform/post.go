package inform

import (
	"time"

	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sa/registry"
)

// Tens of thousands may have subscribed to a trap. Each call looks at some of them, and
// others have their turns in between.

// posting is a notice on its way into the queues of the interested subscribers, with the subscriptions at the time of the
// notice.
type posting struct {
	notice *registry.Notice
	of     [2]registry.Map[uint64, *sub] // that may want it, by topic
	topic  int                           // of these
	after  uint64                        // the last that was looked at; 0: none was
}

// stride is how many subscriptions a call looks at.
const stride = 2048

// post queues a notice for the interested subscribers.
func (r *Registry) post(n *registry.Notice) {
	if r.fabric == nil {
		return
	}
	h := &n.Report.NoticeHeader
	generic := uint8(0)
	if h.IsGeneric {
		generic = 1
	}
	p := posting{notice: n, topic: 1}
	if h.TrapNumber != mad.AllTraps {
		if of, ok := r.heard.Get(topic{generic, h.TrapNumber}); ok {
			p.of[0], p.topic = of, 0
		}
	}
	all, ok := r.heard.Get(topic{generic, mad.AllTraps})
	p.of[1] = all
	switch {
	case !ok && p.topic == 1: // there is no subscriber
	case len(r.posts) >= r.cfg.MaxQueued:
		r.stats.Dropped++
	default:
		r.posts = append(r.posts, p)
	}
}

// spread continues to deliver the notices, in the order in which they were posted.
func (r *Registry) spread(now time.Time) {
	left := stride
	for len(r.posts) > 0 && left > 0 {
		p := &r.posts[0]
		left = r.hand(p, left)
		if left == 0 {
			break
		}
		if p.topic++; p.topic < len(p.of) {
			p.after = 0
			continue
		}
		*p = posting{}
		r.posts = r.posts[1:]
	}
	if r.more = (time.Time{}); len(r.posts) > 0 {
		r.more = now.Add(1)
	} else {
		r.posts = nil // its memory was walked through
	}
}

// hand puts a notice into the queues of the interested subscriptions of a topic, with at most left looks. It returns the
// remaining looks: 0 if there may be more subscriptions to look at.
func (r *Registry) hand(p *posting, left int) int {
	of := p.of[p.topic]
	if of.Len() == 0 {
		return left
	}
	for id, s := range of.Above(p.after) {
		if left == 0 {
			return 0
		}
		left--
		p.after = id
		if !s.gone && s.party.until == 0 && s.wants(p.notice) && r.mayHear(s, p.notice) {
			r.queue(s, p.notice)
		}
	}
	return left
}
