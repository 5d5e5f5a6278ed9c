package driver

// Stay describes a run that goes on answering as subnet administration after its ctx has ended, until another instance
// does. The core is not stepped any more, and no request is sent: what is answered is what the core saw last. Hosts ask
// the Subnet Manager that their port names, which is this one until the next master writes another LID there.
//
// Registrations are not confirmed once Options.Fence is closed, so hosts repeat them at the next master.
type Stay struct {
	// Until ends the run.
	Until <-chan struct{}
	// Begin is called once, when the core has sent its last packet. It reports whether the run goes on, and must not block.
	Begin func() bool
}

// stays reports whether the run goes on, and begins that.
func (l *loop) stays() bool {
	if l.o.Stay == nil || l.o.Fence == nil || l.ended || l.sa == nil || !l.o.Stay.Begin() {
		return false
	}
	// The next master would wait for an answer to SMInfo otherwise.
	if err := l.o.Port.SetIsSM(false); err != nil {
		l.log.Warn("the port still announces a subnet manager that has ended", "error", err)
	}
	return true
}

// stay drops received packets, which are for a master, until Stay ends.
func (l *loop) stay() error {
	for {
		select {
		case <-l.o.Stay.Until:
			return nil
		case buf := <-l.full:
			l.free <- buf
		case err := <-l.failure:
			return l.lost("answer on", err)
		}
	}
}

// stayPolled is stay on a transport that can be polled.
func (l *loop) stayPolled(p *poller) error {
	for {
		if !p.waiting {
			n, err := p.port.TryReceive(p.buf)
			if err != nil {
				return l.lost("receive from", err)
			}
			if n > 0 {
				continue
			}
			p.waiting = true
			p.wait <- struct{}{}
		}
		select {
		case <-l.o.Stay.Until:
			return nil
		case err := <-p.ready:
			p.waiting = false
			if err != nil {
				return l.lost("receive from", err)
			}
		case err := <-l.failure:
			return l.lost("answer on", err)
		}
	}
}
