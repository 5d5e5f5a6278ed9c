package driver

import (
	"context"
	"time"

	"portcullis/fabricsm/sm"
	"portcullis/fabricsm/transport"
)

// Where the transport can be polled, one goroutine receives, steps and sends. So nothing is passed between threads while
// the fabric answers faster than we send requests. Packets that the wire has no room for wait here: a loop that waits for
// room does not receive, and a simulator that cannot write does not read either.

const (
	// eager is how often in a row the wire is looked at before it is waited for,
	// while answers are due. A look costs less than to be woken.
	eager = 32
	// crowd is how many answers are due where it is waited for at once: the other
	// end has much to do, and does it sooner when it is left alone.
	crowd = 32
	// patience is how long the loop itself waits for the wire, after that: tables, intents and inputs wait with it. To let
	// another goroutine wait costs two wake-ups.
	patience = time.Millisecond
	// retrySend is when to look for room on a wire that took nothing and delivered nothing.
	retrySend = 200 * time.Microsecond
)

// poller is the state of a loop on a transport that can be polled.
type poller struct {
	port    transport.Poller
	buf     []transport.Packet
	sent    int           // of loop.send
	wait    chan struct{} // have the waiter wait
	ready   chan error    // it has
	waiting bool
}

func newPoller(port transport.Poller) *poller {
	return &poller{
		port: port, buf: make([]transport.Packet, batch),
		wait: make(chan struct{}, 1), ready: make(chan error, 1),
	}
}

// waiter waits for the wire on request.
func (p *poller) waiter(done <-chan struct{}) {
	for {
		select {
		case <-p.wait:
		case <-done:
			return
		}
		p.ready <- p.port.Wait()
	}
}

// poll runs the loop until it ends.
func (l *loop) poll(ctx context.Context, p *poller, intents <-chan sm.Intent) error {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	l.told = ctx.Done()
	for idle := 0; !l.ended && !l.resigned; {
		moved, err := l.exchange(p)
		if err != nil {
			return err
		}
		if idle++; moved {
			idle = 0
		}
		due := l.waits()
		switch {
		case p.waiting && idle > 0, due == 0 && idle > 0, idle > eager:
			idle = 0
			if err := l.rest(p, timer, &intents); err != nil {
				return err
			}
			continue
		case idle == eager, idle > 0 && due >= crowd:
			if err := l.pause(p); err != nil {
				return err
			}
		case idle > 0:
			continue
		}
		if err := l.others(&intents); err != nil {
			return err
		}
	}
	_, err := l.push(p) // the last answers of a master
	return err
}

// exchange receives waiting packets, steps them in, and sends as many as there is room for. It reports whether anything
// moved.
func (l *loop) exchange(p *poller) (moved bool, err error) {
	if !p.waiting {
		n, err := p.port.TryReceive(p.buf)
		if err != nil {
			return false, l.lost("receive from", err)
		}
		l.take(l.sift(time.Now(), p.buf[:n]))
		moved = n > 0
	} else {
		l.now = time.Now()
	}
	n, err := l.push(p)
	return moved || n > 0, err
}

// push makes facts durable, then sends what there is room for.
func (l *loop) push(p *poller) (int, error) {
	if saved, err := l.saveFacts(); !saved || err != nil {
		return 0, err
	}
	if l.ended {
		return 0, nil
	}
	all := 0
	l.resend(len(l.send) - p.sent)
	for {
		if p.sent = l.guard(p.sent); p.sent == len(l.send) {
			if l.send, p.sent = l.answers.take(l.send[:0]), 0; len(l.send) == 0 {
				break
			}
			continue
		}
		some := l.send[p.sent:min(len(l.send), p.sent+most)]
		n, err := p.port.TrySend(some)
		all += n
		if err != nil {
			return all, l.lost("send to", err)
		}
		p.sent += n
		l.stamp(l.now)
		if n < len(some) {
			return all, nil
		}
	}
	return all, nil
}

// others looks, without waiting, whether there is something to do besides the
// wire.
func (l *loop) others(intents *<-chan sm.Intent) error {
	select {
	case <-l.told:
		l.leave()
	case t := <-l.tables:
		l.routes(t)
	case in, ok := <-*intents:
		l.intent(in, ok, intents)
	case in, ok := <-l.o.Inputs:
		l.input(in, ok)
	case t := <-l.fromSA:
		l.administered(t)
	case err := <-l.failure:
		return l.lost("receive from", err)
	default:
	}
	if !l.now.Before(l.next()) {
		l.expire()
	}
	return nil
}

// pause waits for the wire, but not long.
func (l *loop) pause(p *poller) error {
	d := min(patience, time.Until(l.next()))
	if p.sent < len(l.send) {
		d = min(d, retrySend)
	}
	if d <= 0 {
		return nil
	}
	if err := p.port.Pause(d); err != nil {
		return l.lost("receive from", err)
	}
	return nil
}

// rest waits until there is something to do.
func (l *loop) rest(p *poller, timer *time.Timer, intents *<-chan sm.Intent) error {
	if !p.waiting {
		p.waiting = true
		p.wait <- struct{}{}
	}
	pause := time.Until(l.next())
	if p.sent < len(l.send) && l.saveAt.IsZero() {
		pause = min(pause, retrySend)
	}
	timer.Reset(pause)
	select {
	case <-l.told:
		l.leave()
	case err := <-p.ready:
		p.waiting = false
		if err != nil {
			return l.lost("receive from", err)
		}
	case t := <-l.tables:
		l.routes(t)
	case in, ok := <-*intents:
		l.intent(in, ok, intents)
	case in, ok := <-l.o.Inputs:
		l.input(in, ok)
	case t := <-l.fromSA:
		l.administered(t)
	case err := <-l.failure:
		return l.lost("receive from", err)
	case <-timer.C:
		l.expire()
	}
	return nil
}
