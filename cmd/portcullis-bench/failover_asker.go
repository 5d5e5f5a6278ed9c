package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"time"

	"portcullis/cmd/internal/program"
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sa/satest"
	"portcullis/fabricsm/transport"
)

// askEvery is how often a host asks for a path.
const askEvery = 10 * time.Millisecond

// lookBit is set in the transactions in which a host asks its own port.
const lookBit = 1 << 31

// answered is a right answer of subnet administration.
type answered struct {
	at   time.Time // with the monotonic clock
	from ib.LID
}

// pathAsker is a host that asks for the path to another one every askEvery, whether or not
// the last question was answered. Before each question it reads in its own port which LID
// the subnet manager has.
type pathAsker struct {
	client *satest.Client
	target ib.GUID
	pkey   ib.PKey
	tid    uint32
	halt   context.CancelFunc
	ended  chan struct{}

	mu      sync.Mutex
	answers []answered
	lid     ib.LID // of the target; 0: not known yet
	wrong   error
}

// ask starts to ask at a fabric that is up.
func (g *ground) ask(ctx context.Context) (*pathAsker, error) {
	host, target := g.asks()
	c, err := satest.Dial(ctx, g.client.Socket, g.node(host))
	if err != nil {
		return nil, err
	}
	a := &pathAsker{client: c, target: g.guid(target), pkey: pkeyOf(g.tenantOf(host)).Full(), ended: make(chan struct{})}
	ctx, a.halt = context.WithCancel(ctx)
	go func() {
		defer close(a.ended)
		a.run(ctx)
	}()
	return a, nil
}

func (a *pathAsker) stop() error {
	a.halt()
	<-a.ended
	return errors.Join(a.wrong, a.client.Close())
}

func (a *pathAsker) run(ctx context.Context) {
	in := make([]transport.Packet, 64)
	for ctx.Err() == nil {
		next := time.Now().Add(askEvery)
		a.post()
		for {
			n, err := a.client.Port.TryReceive(in)
			if err == nil && n == 0 {
				left := time.Until(next)
				if left <= 0 {
					break
				}
				err = a.client.Port.Pause(left)
			}
			for i := range in[:n] {
				a.take(&in[i])
			}
			if err != nil {
				a.mu.Lock()
				a.wrong = err
				a.mu.Unlock()
				return
			}
		}
	}
}

// post asks the own port, and subnet administration where that said it is.
func (a *pathAsker) post() {
	a.tid = (a.tid + 1) % lookBit
	out := make([]transport.Packet, 2)
	out[0].LID = ib.PermissiveLID
	mad.NewSMP(&out[0].MAD, mad.Header{Method: mad.MethodGet, Attr: mad.AttrPortInfo, TID: ib.TID(a.tid | lookBit)}, &mad.Route{}, ib.MKey{})
	out[1].LID, out[1].QP = a.client.SM, 1
	m := &out[1].MAD
	m.SetHeader(mad.Header{
		Class: mad.ClassSubnAdm, ClassVersion: mad.SAClassVersion, Method: mad.MethodGet, TID: ib.TID(a.tid), Attr: mad.AttrPathRecord,
	})
	m.SetComponentMask(maskGIDs)
	r := m.SAData()
	r[pathNumb] = 1
	binary.BigEndian.PutUint64(r[pathDGID:], uint64(ib.DefaultPrefix))
	binary.BigEndian.PutUint64(r[pathDGID+8:], uint64(a.target))
	binary.BigEndian.PutUint64(r[pathSGID:], uint64(ib.DefaultPrefix))
	binary.BigEndian.PutUint64(r[pathSGID+8:], uint64(a.client.Port.GUID()))
	binary.BigEndian.PutUint16(r[pathPKey:], uint16(a.pkey))
	_, _ = a.client.Port.TrySend(out) // what has no room now is asked again in a moment
}

// take takes what arrives: only a right answer counts.
func (a *pathAsker) take(p *transport.Packet) {
	m := &p.MAD
	switch {
	case p.Undelivered || m.Method() != mad.MethodGetResp || m.Status() != mad.StatusOK:
		return
	case m.IsSMP() && uint32(m.TID())&lookBit != 0:
		var info mad.PortInfo
		if err := mad.Decode(m.Data(), &info); err == nil && info.MasterSMLID != 0 {
			a.client.SM = info.MasterSMLID
		}
		return
	case m.Class() != mad.ClassSubnAdm:
		return
	}
	r := m.SAData()
	lid := ib.LID(binary.BigEndian.Uint16(r[pathDLID:]))
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.lid == 0 {
		a.lid = lid
	}
	if guid := ib.GUID(binary.BigEndian.Uint64(r[pathDGID+8:])); guid != a.target || lid != a.lid {
		a.wrong = errors.Join(a.wrong, fmt.Errorf("asked for the path to %v at LID %v, got that to %v at %v", a.target, a.lid, guid, lid))
		return
	}
	a.answers = append(a.answers, answered{time.Now(), p.LID})
}

// forget forgets the answers so far, and returns from where the last one came.
func (a *pathAsker) forget(ctx context.Context) (from ib.LID, err error) {
	err = program.AwaitEvery(ctx, glance, "subnet administration answers", func() (bool, error) {
		a.mu.Lock()
		defer a.mu.Unlock()
		if len(a.answers) == 0 {
			return false, a.wrong
		}
		from, a.answers = a.answers[len(a.answers)-1].from, nil
		return true, a.wrong
	})
	return from, err
}

// first waits for the first answer after a moment that comes from elsewhere than a LID, and
// returns how long the host had none at all before it.
func (a *pathAsker) first(ctx context.Context, after time.Time, not ib.LID) (at time.Time, silent time.Duration, err error) {
	err = program.AwaitEvery(ctx, glance, "another subnet manager answers", func() (bool, error) {
		a.mu.Lock()
		defer a.mu.Unlock()
		last := after
		for _, x := range a.answers {
			if x.at.Before(after) {
				continue
			}
			if x.from != not {
				at = x.at
				silent = max(silent, x.at.Sub(last))
				return true, a.wrong
			}
			silent, last = max(silent, x.at.Sub(last)), x.at
		}
		silent = 0
		return false, a.wrong
	})
	return at, silent, err
}
