package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sa/salab"
	"portcullis/fabricsm/transport"
	"portcullis/fabricsm/transport/ibsim/ibsimlab"
)

// saKey makes requests trusted in both subjects.
const saKey = 0x0a5a0b5b0c5c0d5d

// saUnlimited lifts limits that OpenSM does not have: one host asks for all.
const saUnlimited = `fabric:
  sa:
    sa_pr_full_world_queries_allowed: true
    limits:
      requests: {all: unlimited, node: unlimited}
      others: {all: unlimited, node: unlimited}
`

// administrations are measured side by side, each on a simulator of its own with the
// same netlist.
func administrations() [2]contender {
	return [2]contender{
		{"OpenSM", func(ctx context.Context, lab *ibsimlab.Lab, program, partitions string) (subject, error) {
			conf := filepath.Join(lab.Dir(), "opensm.conf")
			if err := os.WriteFile(conf, fmt.Appendf(nil, "sa_key %#016x\n", uint64(saKey)), 0o600); err != nil {
				return nil, fmt.Errorf("write opensm.conf: %w", err)
			}
			return startOpenSM("-F", conf, "-s", "0")(ctx, lab, program, partitions)
		}},
		{"Portcullis", func(ctx context.Context, lab *ibsimlab.Lab, program, partitions string) (subject, error) {
			key := filepath.Join(lab.Dir(), "sa.key")
			if err := os.WriteFile(key, fmt.Appendf(nil, "%#016x\n", uint64(saKey)), 0o600); err != nil {
				return nil, fmt.Errorf("write key: %w", err)
			}
			conf := filepath.Join(lab.Dir(), "portcullisd.yaml")
			if err := os.WriteFile(conf, []byte(saUnlimited), 0o600); err != nil {
				return nil, fmt.Errorf("write configuration: %w", err)
			}
			return startPortcullisWith("--config", conf, "--sa-key-file", key)(ctx, lab, program, partitions)
		}},
	}
}

// saAsk is what the client asks, again and again.
type saAsk struct {
	name   string
	window int
	gids   bool // as IPoIB asks; else by LIDs
}

var saAsks = []saAsk{
	{"by LID", 1, false},
	{"by LID", 16, false},
	{"by LID", 64, false},
	{"by LID", 256, false},
	{"as IPoIB", 1, true},
	{"as IPoIB", 16, true},
	{"as IPoIB", 64, true},
	{"as IPoIB", 256, true},
}

// saSample is one turn.
type saSample struct {
	rate   float64 // answers a second
	cpu    float64 // microseconds of the Subnet Manager for each
	simCPU float64 // and of the simulator
}

// tableSample is one whole table of paths.
type tableSample struct {
	asked    bool
	seconds  float64 // until the last of it was there
	first    float64 // until the first
	cpu      float64 // seconds of the Subnet Manager
	more     float64 // MiB that it held at most, more than before
	segments int
	records  int
	slowest  float64 // seconds that another host waited for one path meanwhile
	others   int     // paths that it got
}

// saResult is what was measured on one fabric; the last index of asks is that of the
// subject.
type saResult struct {
	fabric *fabric
	load   float64
	asks   [][2][]saSample
	tables [2][]tableSample
	memory [2]float64 // MiB at rest
}

// mostForTables is the size of the largest fabric of which all paths are asked for:
// OpenSM makes all of them in memory, 172 bytes for each pair of ports, and what we
// send of 10,368 hosts, 34 million MADs, takes the simulator minutes.
const mostForTables = 4000

// administer measures subnet administration over the socket of ibsim.
func administer(ctx context.Context, o *options, progress io.Writer) error {
	host, err := machine(ctx, o.program)
	if err != nil {
		return err
	}
	var results []*saResult
	for _, hosts := range o.sizes {
		f, err := newFabric(hosts)
		if err != nil {
			return err
		}
		r := &saResult{fabric: f, asks: make([][2][]saSample, len(saAsks))}
		if r.load, err = loadAverage(); err != nil {
			return err
		}
		for run := range o.runs {
			if err := r.once(ctx, o, progress); err != nil {
				return fmt.Errorf("%d hosts, run %d: %w", hosts, run+1, err)
			}
		}
		results = append(results, r)
		if err := writeSA(o, host, results); err != nil {
			return err
		}
	}
	return nil
}

// once measures both in fresh processes.
func (r *saResult) once(ctx context.Context, o *options, progress io.Writer) (err error) {
	var both [2]*saClient
	for k, c := range administrations() {
		if both[k], err = r.attach(ctx, o, c); err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
		defer func() { err = errors.Join(err, both[k].close()) }()
		r.memory[k] = max(r.memory[k], memoryOf(both[k].subject.pid()).peak)
	}
	for i := range saAsks {
		var took [2][]float64
		for turn := range turns {
			for _, k := range [2]int{turn % 2, 1 - turn%2} {
				got, err := both[k].measure(&saAsks[i], o.duration/turns)
				if err != nil {
					return fmt.Errorf("%s, %s, %d outstanding: %w", administrations()[k].name, saAsks[i].name, saAsks[i].window, err)
				}
				r.asks[i][k] = append(r.asks[i][k], got)
				took[k] = append(took[k], got.rate)
			}
		}
		fmt.Fprintf(progress, "%d hosts, paths %s, %d outstanding: OpenSM %.0f/s, Portcullis %.0f/s\n",
			r.fabric.hosts, saAsks[i].name, saAsks[i].window, spreadOfValues(took[0]).median, spreadOfValues(took[1]).median)
	}
	for k := range both {
		if r.fabric.hosts > mostForTables {
			continue
		}
		got, err := both[k].table(ctx)
		if err != nil {
			return fmt.Errorf("%s, all paths: %w", administrations()[k].name, err)
		}
		r.tables[k] = append(r.tables[k], got)
		fmt.Fprintf(progress, "%d hosts, all paths from %s: %.3f s, CPU %.3f s, %.0f MiB more, %d segments; another host waited %.4f s at most\n",
			r.fabric.hosts, administrations()[k].name, got.seconds, got.cpu, got.more, got.segments, got.slowest)
	}
	return nil
}

// saClient is a Subnet Manager at work and a host that asks it.
type saClient struct {
	lab     *ibsimlab.Lab
	subject subject
	asker   *salab.Client
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
	a.asker, err = salab.Dial(ctx, lab.Socket(), asker)
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
	// placeBits are those of a transaction that tell the place in the window.
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
	trusted := salab.Question{Method: mad.MethodGetTable, Attr: mad.AttrPathRecord, Key: ib.NewSAKey(saKey)}
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

// bother has another host ask for a path every millisecond. stop gives the longest it
// waited.
func (a *saClient) bother(ctx context.Context) (failed func() error, stop func() (slowest float64, answers int), err error) {
	const pace = time.Millisecond
	asker, err := salab.Dial(ctx, a.lab.Socket(), a.other)
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
