package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sa/satest"
	"portcullis/fabricsm/transport"
	"portcullis/fabricsm/transport/ibsim/ibsimlab"
)

// saClient is a Subnet Manager at work and a host that asks it.
type saClient struct {
	lab     *ibsimlab.Lab
	subject subject
	asker   *satest.Client
	other   string // another host

	gids []ib.GUID // of hosts to ask for
	lids []ib.LID
	next int // of them

	out, in []transport.Packet
	wanted  []int // by place in the window: index of the host asked for
	free    []int // places
	number  uint32
}

// attach brings a fabric up and attaches its last host, which learns the others' LIDs by
// asking for paths.
func (r *saResult) attach(ctx context.Context, o *options, c contender) (*saClient, error) {
	lab, err := ibsimlab.Start(ctx, ibsimlab.Options{Netlist: r.fabric.file})
	if err != nil {
		return nil, err
	}
	nodes := r.fabric.hostNodes
	name := func(fromEnd int) string { return r.fabric.list.Nodes[nodes[len(nodes)-fromEnd]].Name }
	a := &saClient{lab: lab, other: name(2)}
	if err := a.open(ctx, o, c, name(1)); err != nil {
		return nil, errors.Join(err, a.close())
	}
	for _, i := range nodes {
		a.gids = append(a.gids, r.fabric.list.Nodes[i].PortGUID(1))
	}
	a.lids = make([]ib.LID, len(a.gids))
	if err := a.learn(); err != nil {
		return nil, errors.Join(err, a.close())
	}
	return a, nil
}

// open brings the fabric up and attaches the host that asks.
func (a *saClient) open(ctx context.Context, o *options, c contender, asker string) (err error) {
	lab := a.lab
	partitions := filepath.Join(lab.Dir(), "partitions.conf")
	if err := os.WriteFile(partitions, []byte("Default=0x7fff: ALL=limited, SELF=full;\neverybody=0x1: ALL_CAS=full;\n"), 0o600); err != nil {
		return fmt.Errorf("write partitions: %w", err)
	}
	if a.subject, err = c.start(ctx, lab, o.program, partitions); err != nil {
		return err
	}
	a.asker, err = satest.Dial(ctx, lab.Socket(), asker)
	return err
}

func (a *saClient) close() (err error) {
	if a.asker != nil {
		err = a.asker.Close()
	}
	if a.subject != nil {
		err = errors.Join(err, a.subject.stop())
	}
	return errors.Join(err, a.lab.Stop())
}

const (
	// stride is how far apart hosts are that are asked for one after another.
	stride = 7919
	// placeBits are the bits of a transaction that hold the place in the window.
	placeBits = 9

	pathDGID, pathSGID, pathDLID, pathSLID = 8, 24, 40, 42 // offsets in a PathRecord
	pathNumb, pathPKey                     = 49, 50
	benchPKey                              = 0x8001 // of the partition of all hosts
	maskLIDs                               = 1<<4 | 1<<5 | 1<<12
	maskGIDs                               = 1<<2 | 1<<3 | 1<<10 | 1<<12 | 1<<13
)

// fill makes the question for the path to a host.
func (a *saClient) fill(p *transport.Packet, gids bool, to int, tid uint32) {
	p.LID, p.QP = a.asker.SM, 1
	m := &p.MAD
	*m = mad.MAD{}
	m.SetHeader(mad.Header{
		Class: mad.ClassSubnAdm, ClassVersion: mad.SAClassVersion, Method: mad.MethodGet,
		TID: ib.TID(tid), Attr: mad.AttrPathRecord,
	})
	r := m.SAData()
	r[pathNumb] = 1
	if !gids {
		m.SetComponentMask(maskLIDs)
		binary.BigEndian.PutUint16(r[pathDLID:], uint16(a.lids[to]))
		binary.BigEndian.PutUint16(r[pathSLID:], uint16(a.asker.LID))
		return
	}
	m.SetComponentMask(maskGIDs)
	binary.BigEndian.PutUint64(r[pathDGID:], uint64(ib.DefaultPrefix))
	binary.BigEndian.PutUint64(r[pathDGID+8:], uint64(a.gids[to]))
	binary.BigEndian.PutUint64(r[pathSGID:], uint64(ib.DefaultPrefix))
	binary.BigEndian.PutUint64(r[pathSGID+8:], uint64(a.asker.Port.GUID()))
	binary.BigEndian.PutUint16(r[pathPKey:], benchPKey)
}

// learn asks for the path to every host once, as IPoIB does.
func (a *saClient) learn() error {
	all, err := a.pump(&saAsk{window: 64, gids: true}, 0, len(a.gids))
	if err == nil && all != len(a.gids) {
		err = fmt.Errorf("%d answers of %d", all, len(a.gids))
	}
	return err
}

// measure keeps a window of requests outstanding for so long.
func (a *saClient) measure(q *saAsk, d time.Duration) (s saSample, err error) {
	pids := [2]int{a.subject.pid(), a.lab.PID()}
	var before, after [2]float64
	for i, pid := range pids {
		if before[i], err = cpuOf(pid); err != nil {
			return s, err
		}
	}
	begin := time.Now()
	answered, err := a.pump(q, d, 0)
	took := time.Since(begin).Seconds()
	if err != nil {
		return s, err
	}
	for i, pid := range pids {
		if after[i], err = cpuOf(pid); err != nil {
			return s, err
		}
	}
	each := 1e6 / float64(answered)
	return saSample{float64(answered) / took, (after[0] - before[0]) * each, (after[1] - before[1]) * each}, nil
}

// pump asks for so long, or so many.
func (a *saClient) pump(q *saAsk, d time.Duration, most int) (answered int, err error) {
	p := a.asker.Port
	a.in, a.out = make([]transport.Packet, max(q.window, 16)), make([]transport.Packet, 0, 2*q.window)
	a.wanted, a.free = make([]int, q.window), a.free[:0]
	for i := range q.window {
		a.free = append(a.free, i)
	}
	begin := time.Now()
	last := begin
	asked := 0
	for ending := false; ; {
		for !ending && len(a.free) > 0 {
			a.post(q.gids)
			asked++
			ending = asked == most
		}
		// Never wait for room to send: the simulator may wait for room to answer.
		sent, err := p.TrySend(a.out)
		if err != nil {
			return answered, err
		}
		a.out = a.out[:copy(a.out, a.out[sent:])]
		n, err := p.TryReceive(a.in)
		if err != nil {
			return answered, err
		}
		if n > 0 || sent > 0 {
			last = time.Now()
			ending = ending || d > 0 && last.Sub(begin) >= d
		}
		for i := range a.in[:n] {
			ours, err := a.check(&a.in[i])
			if err != nil {
				return answered, err
			}
			if ours {
				answered++
			}
		}
		switch {
		case ending && len(a.free) == q.window:
			return answered, nil
		case n > 0 || sent > 0:
		case time.Since(last) >= lost:
			return answered, fmt.Errorf("%d questions unanswered for %s", q.window-len(a.free), lost)
		default:
			// As the Subnet Manager waits: in the system, not in the runtime's poller.
			if err := p.Pause(lost); err != nil {
				return answered, err
			}
		}
	}
}

// post puts the next question into a free place.
func (a *saClient) post(gids bool) {
	place := a.free[len(a.free)-1]
	a.free = a.free[:len(a.free)-1]
	a.next = (a.next + stride) % len(a.gids)
	a.number++
	a.wanted[place] = a.next
	a.out = a.out[:len(a.out)+1]
	a.fill(&a.out[len(a.out)-1], gids, a.next, a.number<<placeBits|uint32(place))
}

// check takes an answer, which must be right.
func (a *saClient) check(p *transport.Packet) (ours bool, err error) {
	m := &p.MAD
	if m.Class() != mad.ClassSubnAdm || !p.Undelivered && m.Method() != mad.MethodGetResp {
		return false, nil
	}
	place := int(uint32(m.TID()) & (1<<placeBits - 1))
	if p.Undelivered || m.Status() != mad.StatusOK || place >= len(a.wanted) {
		return false, fmt.Errorf("a question was answered with status %v, undelivered: %t", m.Status(), p.Undelivered)
	}
	to, r := a.wanted[place], m.SAData()
	lid := ib.LID(binary.BigEndian.Uint16(r[pathDLID:]))
	if a.lids[to] == 0 {
		a.lids[to] = lid
	}
	if guid := ib.GUID(binary.BigEndian.Uint64(r[pathDGID+8:])); guid != a.gids[to] || lid != a.lids[to] {
		return false, fmt.Errorf("asked for the path to %v at LID %v, got that to %v at %v", a.gids[to], a.lids[to], guid, lid)
	}
	a.free = append(a.free, place)
	return true, nil
}

// table asks for all paths there are, with the key, while another host goes on asking
// for single ones.
func (a *saClient) table(ctx context.Context) (s tableSample, err error) {
	trusted := satest.Question{Method: mad.MethodGetTable, Attr: mad.AttrPathRecord, Key: ib.NewSAKey(saKey)}
	pid := a.subject.pid()
	before, err := cpuOf(pid)
	if err != nil {
		return s, err
	}
	atRest := memoryOf(pid).private
	other, stop, err := a.bother(ctx)
	if err != nil {
		return s, err
	}
	peak := watchPeak(pid)
	begin := time.Now()
	counted, err := a.asker.Count(trusted)
	s.seconds, s.first = time.Since(begin).Seconds(), counted.First.Sub(begin).Seconds()
	s.more = max(0, peak().private-atRest)
	s.slowest, s.others = stop()
	if err = errors.Join(err, other()); err != nil {
		return s, err
	}
	after, err := cpuOf(pid)
	if err != nil {
		return s, err
	}
	s.asked, s.cpu = true, after-before
	s.segments, s.records = counted.Segments, counted.Bytes/64
	return s, nil
}

// bother has another host ask for a path every millisecond. stop returns its longest wait.
func (a *saClient) bother(ctx context.Context) (failed func() error, stop func() (slowest float64, answers int), err error) {
	const pace = time.Millisecond
	asker, err := satest.Dial(ctx, a.lab.Socket(), a.other)
	if err != nil {
		return nil, nil, err
	}
	host := &saClient{asker: asker, gids: a.gids, lids: a.lids}
	done, ended := make(chan struct{}), make(chan struct{})
	var slowest float64
	var answers int
	var wrong error
	go func() {
		defer close(ended)
		for {
			select {
			case <-done:
				return
			case <-time.After(pace):
			}
			begin := time.Now()
			if _, wrong = host.pump(&saAsk{window: 1, gids: true}, 0, 1); wrong != nil {
				return
			}
			slowest = max(slowest, time.Since(begin).Seconds())
			answers++
		}
	}()
	stop = func() (float64, int) {
		close(done)
		<-ended
		return slowest, answers
	}
	return func() error { return errors.Join(wrong, asker.Close()) }, stop, nil
}
