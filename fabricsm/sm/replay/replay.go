package replay

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/route"
	"portcullis/fabricsm/sm"
)

// ErrNotRecord is wrapped by errors about input that is no record, or one of
// another version.
var ErrNotRecord = errors.New("not a record of a subnet manager")

// Engines makes the routing engine of a name with the options of a record; see
// Engine.
type Engines func(name string, options []byte) (route.Engine, error)

// Result says how a replay went.
type Result struct {
	Steps int           // inputs that were stepped in
	Took  time.Duration // from the first to the last, as recorded
	// Ends says why the record ends: empty if it does with the run.
	Ends string
	// Differs is the first step whose output is not as recorded, nil if none.
	Differs *Difference
}

// Difference is a step whose output is not as recorded.
type Difference struct {
	Step  int           // from 1
	At    time.Duration // since the first
	Input string        // input of the step
	Parts []string      // what differs
	Got   []string      // output of the core now, one line each
}

// Replay runs a fresh core over a record. It stops at the first difference. An
// error says that the input is no record, or cannot be replayed here; a record
// that ends in the middle of a frame is no error.
func Replay(r io.Reader, engines Engines) (Result, error) {
	p := &player{r: bufio.NewReaderSize(r, 1<<20)}
	if err := p.begin(engines); err != nil {
		return Result{}, err
	}
	for {
		kind, data, err := p.take()
		switch {
		case errors.Is(err, io.EOF):
			return p.result, nil
		case errors.Is(err, errTorn):
			p.result.Ends = err.Error()
			return p.result, nil
		case err != nil:
			return p.result, err
		}
		if done, err := p.play(kind, data); done || err != nil {
			return p.result, err
		}
	}
}

// player is one replay.
type player struct {
	r       *bufio.Reader
	frames  int
	core    *sm.Core
	engines Engines
	began   time.Time
	source  *remade // nil: devices got no M_Keys
	ahead   *frame  // that was read and not played
	result  Result

	input string // last stepped in
	out   sm.Output
	fresh bool // out was not compared yet
	job   *sm.RouteJob
}

// errTorn says that a record ends in the middle of a frame, or that a frame is
// damaged.
var errTorn = errors.New("the record is torn")

// next reads a frame.
func (p *player) next() (kind byte, data []byte, err error) {
	var head [headerSize]byte
	switch _, err := io.ReadFull(p.r, head[:]); {
	case errors.Is(err, io.EOF):
		return 0, nil, io.EOF
	case errors.Is(err, io.ErrUnexpectedEOF):
		return 0, nil, fmt.Errorf("%w: it ends within frame %d", errTorn, p.frames+1)
	case err != nil:
		return 0, nil, err
	}
	size := binary.BigEndian.Uint32(head[:])
	if size == 0 || size > maxFrame {
		return 0, nil, fmt.Errorf("%w: frame %d says it has %d bytes", errTorn, p.frames+1, size)
	}
	var b bytes.Buffer // grows with the data that are there, not with the length in the frame
	if n, err := io.CopyN(&b, p.r, int64(size)); err != nil {
		if errors.Is(err, io.EOF) {
			return 0, nil, fmt.Errorf("%w: it ends within frame %d, after %d of %d bytes", errTorn, p.frames+1, n, size)
		}
		return 0, nil, err
	}
	if crc32.Checksum(b.Bytes(), crc32.MakeTable(crc32.Castagnoli)) != binary.BigEndian.Uint32(head[4:]) {
		return 0, nil, fmt.Errorf("%w: frame %d is damaged", errTorn, p.frames+1)
	}
	p.frames++
	return b.Bytes()[0], b.Bytes()[1:], nil
}

// frame is one that was read.
type frame struct {
	kind byte
	data []byte
	err  error
}

// take returns the next frame that was not played.
func (p *player) take() (kind byte, data []byte, err error) {
	if f := p.ahead; f != nil {
		p.ahead = nil
		return f.kind, f.data, f.err
	}
	return p.next()
}

// readKeys reads the keys that the next step asks for.
func (p *player) readKeys() error {
	for p.source != nil {
		kind, data, err := p.take()
		if err != nil || kind != kindMade {
			p.ahead = &frame{kind, data, err}
			return nil
		}
		if err := p.source.add(data); err != nil {
			return err
		}
	}
	return nil
}

// begin reads the configuration and makes the core.
func (p *player) begin(engines Engines) error {
	line := make([]byte, len(magic))
	if _, err := io.ReadFull(p.r, line); err != nil || string(line) != magic {
		return fmt.Errorf("%w: it does not begin with %q", ErrNotRecord, magic)
	}
	kind, data, err := p.next()
	if err != nil || kind != kindConfig {
		return fmt.Errorf("%w: it has no configuration", ErrNotRecord)
	}
	var h header
	if err := json.Unmarshal(data, &h); err != nil {
		return fmt.Errorf("%w: configuration: %v", ErrNotRecord, err)
	}
	cfg := h.Config.Config
	if h.Keyed {
		cfg.SMKey = ib.NewSMKey(standIn)
	}
	if cfg.MKey.Import, err = h.Import.imported(); err != nil {
		return fmt.Errorf("%w: keys that were taken over: %v", ErrNotRecord, err)
	}
	if h.MKeys {
		p.source = &remade{}
		cfg.MKey.Source = p.source
	}
	if h.Classes {
		cfg.ClassKeys.Source = &remade{}
	}
	p.engines = engines
	if cfg.Engines, err = readEngines(h.Engines, engines); err != nil {
		return err
	}
	if h.Topology != nil {
		cfg.Topology.Mode, cfg.Topology.Back = h.Topology.Mode, h.Topology.Back
		if cfg.Topology.Spec, err = h.Topology.spec(); err != nil {
			return fmt.Errorf("%w: %w", ErrNotRecord, err)
		}
	}
	if err := cfg.Check(); err != nil {
		return fmt.Errorf("%w: %v", ErrNotRecord, err)
	}
	p.core, p.began = sm.New(cfg), h.Started
	return nil
}

// play executes a frame, and reports whether it was the last.
func (p *player) play(kind byte, data []byte) (done bool, err error) {
	switch kind {
	case kindOutput:
		return p.compare(data), nil
	case kindFull:
		p.result.Ends = "the record had reached its largest size"
		return true, nil
	case kindUnknown:
		p.result.Ends = fmt.Sprintf("an input followed that could not be written down: %s", cut(data))
		return true, nil
	}
	if len(data) < 8 {
		return false, fmt.Errorf("%w: frame %d is too short", ErrNotRecord, p.frames)
	}
	at := time.Duration(binary.BigEndian.Uint64(data))
	if at < p.result.Took {
		return false, fmt.Errorf("%w: time goes back in frame %d", ErrNotRecord, p.frames)
	}
	in, err := p.read(kind, data[8:])
	if err != nil {
		return false, err
	}
	if err := p.readKeys(); err != nil {
		return false, err
	}
	p.out, p.fresh = p.core.Step(p.began.Add(at), in), true
	if p.out.Job != nil {
		p.job = p.out.Job
	}
	p.result.Steps++
	p.result.Took = at
	p.input = describe(in)
	return false, nil
}

// cut returns text from a record, short enough for a message.
func cut(b []byte) string { return fmt.Sprintf("%.100q", b) }

func (p *player) read(kind byte, data []byte) (sm.Input, error) {
	const replySize, receivedSize = 5 + mad.Size, 6 + mad.Size
	switch {
	case kind == kindReply && len(data) == replySize:
		return &sm.Reply{
			ID: sm.RequestID(binary.BigEndian.Uint32(data)), Outcome: sm.Outcome(data[4]), MAD: mad.MAD(data[5:]),
		}, nil
	case kind == kindReceived && len(data) == receivedSize:
		return &sm.Received{
			LID: ib.LID(binary.BigEndian.Uint16(data)), QP: binary.BigEndian.Uint32(data[2:]), MAD: mad.MAD(data[6:]),
		}, nil
	case kind == kindWoken:
		return &sm.Woken{}, nil
	case kind == kindTables && p.job != nil:
		job := p.job
		p.job = nil
		return job.Run(), nil
	case kind == kindOther:
		name, text, _ := bytes.Cut(data, []byte{0})
		if form := p.form(string(name)); form != nil {
			in, err := form(text)
			if err != nil {
				return nil, fmt.Errorf("%w: frame %d: input %s: %w", ErrNotRecord, p.frames, name, err)
			}
			return in, nil
		}
		if string(name) == startedName {
			in, err := readStarted(text)
			if err != nil {
				return nil, fmt.Errorf("%w: frame %d: input %s: %w", ErrNotRecord, p.frames, name, err)
			}
			return in, nil
		}
		made := others()[string(name)]
		if made == nil {
			return nil, fmt.Errorf("%w: frame %d has input %s, which is not known here", ErrNotRecord, p.frames, cut(name))
		}
		in := made()
		if err := json.Unmarshal(text, in); err != nil {
			return nil, fmt.Errorf("%w: frame %d: input %s: %v", ErrNotRecord, p.frames, name, err)
		}
		return in, nil
	default:
		return nil, fmt.Errorf("%w: frame %d is of kind %q with %d bytes", ErrNotRecord, p.frames, kind, len(data))
	}
}

// form returns the reader of an input that has a form of its own, nil if it has none.
func (p *player) form(name string) func([]byte) (sm.Input, error) {
	switch name {
	case policyName:
		return func(text []byte) (sm.Input, error) { return readPolicy(text, p.engines) }
	case topologySetName:
		return readTopologySet
	default:
		return nil
	}
}

// compare judges the output of the last step, and reports whether it differs.
func (p *player) compare(recorded []byte) bool {
	if !p.fresh {
		return false
	}
	p.fresh = false
	d := digestOf(&p.out, p.began, nil)
	got := d.bytes()
	if bytes.Equal(got, recorded) {
		return false
	}
	diff := &Difference{Step: p.result.Steps, At: p.result.Took, Input: p.input, Got: lines(&p.out)}
	for i, name := range parts {
		if lo, hi := 4*i, 4*i+4; hi > len(recorded) || !bytes.Equal(got[lo:hi], recorded[lo:hi]) {
			diff.Parts = append(diff.Parts, name)
		}
	}
	p.result.Differs = diff
	return true
}

func describe(in sm.Input) string {
	switch in := in.(type) {
	case *sm.Reply:
		switch in.Outcome {
		case sm.Answered:
			return fmt.Sprintf("answer to request %d: %v modifier %d, %v, from route %v", in.ID, in.MAD.Attr(), in.MAD.Mod(), in.MAD.Status(), in.MAD.Route())
		case sm.TimedOut:
			return fmt.Sprintf("no answer to request %d", in.ID)
		default:
			return fmt.Sprintf("request %d came back", in.ID)
		}
	case *sm.Received:
		return fmt.Sprintf("%v %v from LID %v", in.MAD.Method(), in.MAD.Attr(), in.LID)
	default:
		return typeName(in)
	}
}

// lines describes an output.
func lines(out *sm.Output) (text []string) {
	for _, f := range out.Save {
		text = append(text, fmt.Sprintf("save %s of %v", f.Kind, f.GUID))
	}
	for i := range out.Answer {
		text = append(text, fmt.Sprintf("answer %v %v to LID %v", out.Answer[i].MAD.Method(), out.Answer[i].MAD.Attr(), out.Answer[i].LID))
	}
	for i := range out.Send {
		r := &out.Send[i]
		text = append(text, fmt.Sprintf("request %d: %v %v modifier %d to route %v", r.ID, r.MAD.Method(), r.MAD.Attr(), r.MAD.Mod(), r.MAD.Route()))
	}
	for _, e := range out.Events {
		text = append(text, "event: "+e.String())
	}
	return text
}
