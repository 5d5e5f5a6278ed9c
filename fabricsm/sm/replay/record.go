// Package replay records the inputs of a Subnet Manager core, and plays them to a new core again. The same inputs at the
// same times lead to the same outputs, so that a failure in the field can be examined anywhere.
//
// A record is a line with the version of the format, then frames: length and CRC-32C of the rest (4 bytes each, big
// endian), a kind, and the data of the kind. Each frame is written with one call before the core is stepped, so that an
// input that crashes the program is the last one in its record. No key is in a record: other numbers stand for them
// wherever they were, see veil.go.
package replay

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"reflect"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/route"
	"portcullis/fabricsm/sm"
)

const (
	magic      = "portcullis-record 1\n"
	headerSize = 8
	// maxFrame bounds a frame: the largest is an intent of a large fabric.
	maxFrame = 64 << 20
)

// Kinds of frames.
const (
	kindConfig   = 'C' // JSON of header: the first frame
	kindOutput   = 'O' // digest of the output of the step before
	kindReply    = 'R' // time, id, outcome, MAD
	kindReceived = 'X' // time, LID, QP, MAD
	kindWoken    = 'W' // time
	kindTables   = 'T' // time: the routing job that was out is done
	kindOther    = 'J' // time, name of the type, 0, JSON
	kindFull     = 'F' // the record has reached its size: nothing follows
	kindMade     = 'K' // JSON of made: a key that the step after the input before asked for
	kindUnknown  = 'U' // name of an input that cannot be written down
)

// header is the first frame.
type header struct {
	Started time.Time
	Config  config
	Keyed   bool // there was an SM_Key
	MKeys   bool // and a source of M_Keys
	Classes bool // and one of keys of classes, which no core asks
	Import  *imported
	Engines []engine
	// Topology is the declared one, nil in records that were made without.
	Topology *declared `json:",omitempty"`
}

// config is a configuration of which key, engines and declared topology are not
// written: the first must not be, the others have forms of their own.
type config struct {
	sm.Config
	SMKey    *struct{} `json:",omitempty"`
	Engines  *struct{} `json:",omitempty"`
	Topology *struct{} `json:",omitempty"`
}

// Writer records one run of a core. Its methods must not be called at the same
// time. The first failure ends the record, not the run.
type Writer struct {
	w     io.Writer
	left  int64
	fail  func(error)
	ended bool
	began time.Time
	veil  *veil
	buf   []byte
}

// NewWriter returns a Writer that writes at most limit bytes. It calls fail once with the reason if the record ends before
// the run does.
func NewWriter(w io.Writer, limit int64, fail func(error)) *Writer {
	return &Writer{w: w, left: limit, fail: fail}
}

// Begin writes the configuration, as the core gets it.
func (w *Writer) Begin(now time.Time, cfg sm.Config) {
	w.began, w.veil = now, newVeil(cfg.SMKey.Reveal())
	h := header{
		Started: now.Round(0), Keyed: !cfg.SMKey.IsZero(),
		MKeys: cfg.MKey.Source != nil, Classes: cfg.ClassKeys.Source != nil, Import: w.veil.imported(cfg.MKey.Import),
	}
	if cfg.Engines == nil {
		cfg.Engines = sm.DefaultConfig().Engines
	}
	var err error
	if h.Engines, err = writeEngines(cfg.Engines); err != nil {
		w.end(err)
		return
	}
	if cfg.Topology.Spec != nil {
		if h.Topology, err = writeDeclared(&sm.TopologySet{Spec: cfg.Topology.Spec, Mode: cfg.Topology.Mode, Back: cfg.Topology.Back}); err != nil {
			w.end(err)
			return
		}
	}
	cfg.SMKey, cfg.Engines, cfg.Topology = ib.SMKey{}, nil, sm.TopologyConfig{}
	cfg.MKey.Source, cfg.MKey.Import = nil, nil
	cfg.ClassKeys.Source, cfg.ClassKeys.Import = nil, nil // package keymgr alone uses them
	h.Config.Config = cfg
	data, err := json.Marshal(h)
	var back header
	if err == nil {
		err = json.Unmarshal(data, &back)
	}
	if err == nil && !reflect.DeepEqual(back.Config, h.Config) {
		err = errors.New("part of it has no written form")
	}
	if err != nil {
		w.end(fmt.Errorf("write the configuration down: %w", err))
		return
	}
	if len(data) > maxFrame/2 {
		w.end(errors.New("write the configuration down: it is too large"))
		return
	}
	w.write([]byte(magic))
	w.frame(kindConfig, data)
}

// Engine returns an engine of the type of e with the options of a record.
func Engine(e route.Engine, options []byte) (route.Engine, error) {
	made := reflect.New(reflect.TypeOf(e))
	if err := json.Unmarshal(options, made.Interface()); err != nil {
		return nil, fmt.Errorf("options: %w", err)
	}
	return made.Elem().Interface().(route.Engine), nil
}

func typeName(v any) string {
	t := reflect.TypeOf(v)
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t.String()
}

// Input writes the next input of the core.
func (w *Writer) Input(now time.Time, in sm.Input) {
	if w.ended {
		return
	}
	w.buf = binary.BigEndian.AppendUint64(w.buf[:0], uint64(now.Sub(w.began)))
	switch in := in.(type) {
	case *sm.Reply:
		w.buf = binary.BigEndian.AppendUint32(w.buf, uint32(in.ID))
		w.buf = append(w.buf, byte(in.Outcome))
		w.mad(&in.MAD)
		w.frame(kindReply, w.buf)
	case *sm.Received:
		w.buf = binary.BigEndian.AppendUint16(w.buf, uint16(in.LID))
		w.buf = binary.BigEndian.AppendUint32(w.buf, in.QP)
		w.mad(&in.MAD)
		w.frame(kindReceived, w.buf)
	case *sm.Woken:
		w.frame(kindWoken, w.buf)
	case *sm.TablesReady:
		w.frame(kindTables, w.buf)
	default:
		w.other(in)
	}
}

func (w *Writer) other(in sm.Input) {
	name := typeName(in)
	data, err := w.writeOther(in)
	if err == nil && len(data) > maxFrame/2 {
		err = errors.New("it is too large")
	}
	if err != nil {
		w.frame(kindUnknown, []byte(name))
		w.end(fmt.Errorf("input %s cannot be written down: %v", name, err))
		return
	}
	w.buf = append(append(append(w.buf, name...), 0), data...)
	w.frame(kindOther, w.buf)
}

// errNoForm says that a type of input is not written.
var errNoForm = errors.New("inputs of this type have no written form")

func (w *Writer) writeOther(in sm.Input) ([]byte, error) {
	switch in := in.(type) {
	case *sm.PolicySet:
		return writePolicy(in)
	case *sm.TopologySet:
		return writeTopologySet(in)
	case *sm.Started:
		return w.veil.started(in)
	}
	if others()[typeName(in)] == nil {
		return nil, errNoForm
	}
	return json.Marshal(in)
}

// Output writes the output of the step.
func (w *Writer) Output(out *sm.Output) {
	if !w.ended {
		d := digestOf(out, w.began, w.veil)
		w.frame(kindOutput, d.bytes())
	}
}

// mad writes a MAD down without keys.
func (w *Writer) mad(m *mad.MAD) {
	at := len(w.buf)
	w.buf = append(w.buf, m[:]...)
	w.veil.mad((*mad.MAD)(w.buf[at:]))
}

func (w *Writer) frame(kind byte, data []byte) {
	if w.ended {
		return
	}
	size := headerSize + 1 + len(data)
	if int64(size) > w.left-headerSize-1 && kind != kindFull {
		w.frame(kindFull, nil)
		w.end(errors.New("the record has reached its largest size"))
		return
	}
	b := make([]byte, headerSize, size)
	b = append(append(b, kind), data...)
	binary.BigEndian.PutUint32(b, uint32(len(b)-headerSize))
	binary.BigEndian.PutUint32(b[4:], crc32.Checksum(b[headerSize:], crc32.MakeTable(crc32.Castagnoli)))
	w.write(b)
}

func (w *Writer) write(b []byte) {
	if w.ended {
		return
	}
	w.left -= int64(len(b))
	if _, err := w.w.Write(b); err != nil {
		w.end(fmt.Errorf("write: %w", err))
	}
}

func (w *Writer) end(err error) {
	if !w.ended {
		w.ended = true
		w.fail(err)
	}
}

// others returns constructors of the inputs that are written as JSON, by type.
func others() map[string]func() sm.Input {
	return map[string]func() sm.Input{
		"sm.ReleaseKeys":     func() sm.Input { return &sm.ReleaseKeys{} },
		"sm.ResumeKeys":      func() sm.Input { return &sm.ResumeKeys{} },
		"sm.MoveKey":         func() sm.Input { return &sm.MoveKey{} },
		"sm.LendKey":         func() sm.Input { return &sm.LendKey{} },
		"sm.RetireKey":       func() sm.Input { return &sm.RetireKey{} },
		"sm.IntentSet":       func() sm.Input { return &sm.IntentSet{} },
		"sm.IntentChanged":   func() sm.Input { return &sm.IntentChanged{} },
		"sm.TopologyRelease": func() sm.Input { return &sm.TopologyRelease{} },
		"sm.HealthMarked":    func() sm.Input { return &sm.HealthMarked{} },
		"sm.Suspected":       func() sm.Input { return &sm.Suspected{} },
		"sm.ClassTrapJudged": func() sm.Input { return &sm.ClassTrapJudged{} },
		"sm.PacketsRefused":  func() sm.Input { return &sm.PacketsRefused{} },
		"sm.PortCounted":     func() sm.Input { return &sm.PortCounted{} },
		"sm.AliasesSet":      func() sm.Input { return &sm.AliasesSet{} },
		"sm.GroupsSet":       func() sm.Input { return &sm.GroupsSet{} },
		"sm.GroupsChanged":   func() sm.Input { return &sm.GroupsChanged{} },
		"sm.Resign":          func() sm.Input { return &sm.Resign{} },
		"sm.Mandate":         func() sm.Input { return &sm.Mandate{} },
	}
}
