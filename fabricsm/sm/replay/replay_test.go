package replay_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"portcullis/fabricsm/driver"
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/route"
	"portcullis/fabricsm/route/minhop"
	"portcullis/fabricsm/route/updn"
	"portcullis/fabricsm/sim"
	"portcullis/fabricsm/sim/netlist"
	"portcullis/fabricsm/sm"
	"portcullis/fabricsm/sm/replay"
	"portcullis/fabricsm/transport/ibsim"
	"portcullis/fabricsm/transport/ibsim/ibsimtest"
)

func engines(name string, options []byte) (route.Engine, error) {
	switch name {
	case "minhop":
		return replay.Engine(minhop.Engine{}, options)
	case "updn":
		return replay.Engine(updn.Engine{}, options)
	default:
		return nil, fmt.Errorf("no engine %s here", name)
	}
}

const secret = 0x1122334455667788

// recorded returns the record of a bring-up with a tenant, a lossy host and a cable that is pulled.
func recorded(t *testing.T, limit int64, fail func(error)) []byte {
	t.Helper()
	var file bytes.Buffer
	synctest.Test(t, func(t *testing.T) {
		l, err := netlist.FatTree2(netlist.Shape{Hosts: 6, Leaves: 2, Spines: 2, Radix: 8})
		if err != nil {
			t.Fatal(err)
		}
		f := sim.NewWith(l, sim.Options{LoseSilently: true, Seed: 3})
		if err := f.SetFault("h2", sim.Fault{Loss: 0.3}); err != nil {
			t.Fatal(err)
		}
		port, err := f.Attach("sm", true)
		if err != nil {
			t.Fatal(err)
		}
		h1 := l.Find("h1")
		intents := make(chan sm.Intent, 1)
		intents <- sm.Intent{Revision: 7, Grants: []sm.Grant{{
			GUID: h1.PortGUID(1), PKey: 0x8001,
			Place: ib.Place{Switch: l.Find(h1.Ports[1].Peer).GUID, Port: h1.Ports[1].PeerPort},
		}}}
		ctx, cancel := context.WithCancel(t.Context())
		settled := 0
		err = driver.Run(ctx, driver.Options{
			Port: port, Record: replay.NewWriter(&file, limit, fail),
			Core: sm.Config{SMKey: ib.NewSMKey(secret), IntentWait: time.Minute},
			OnView: func(v *sm.View) {
				if !v.Settled {
					return
				}
				if settled++; settled == 1 {
					if err := f.Unlink("h3", 1); err != nil {
						t.Error(err)
					}
				}
				if settled > 3 {
					cancel()
				}
			},
		}, intents)
		cancel()
		if err != nil {
			t.Fatal(err)
		}
	})
	return file.Bytes()
}

func noFailure(t *testing.T) func(error) {
	return func(err error) { t.Errorf("the record ends early: %v", err) }
}

// TestReplay: a new core has the outputs of the recorded one.
func TestReplay(t *testing.T) {
	b := recorded(t, 1<<30, noFailure(t))
	r, err := replay.Replay(bytes.NewReader(b), engines)
	if err != nil {
		t.Fatal(err)
	}
	if r.Differs != nil || r.Ends != "" || r.Steps < 100 || r.Took <= 0 {
		t.Errorf("replay: %+v, first difference %+v", r, r.Differs)
	}
	if key := binary.BigEndian.AppendUint64(nil, secret); bytes.Contains(b, key) {
		t.Error("the SM_Key is in the record")
	}
}

// TestReplayFindsDifference: a changed answer leads to another output, and the place is reported.
func TestReplayFindsDifference(t *testing.T) {
	b := recorded(t, 1<<30, noFailure(t))
	changed := 0
	eachFrame(b, func(frame []byte) {
		// A reply is a kind, a time, an id, an outcome and a MAD.
		if changed > 0 || frame[8] != 'R' {
			return
		}
		m := (*mad.MAD)(frame[8+1+8+5:])
		if m.Attr() == mad.AttrNodeInfo && m.Route().Len() == 2 {
			m.Data()[12+7] ^= 0x40 // node GUID
			changed++
		}
	})
	r, err := replay.Replay(bytes.NewReader(b), engines)
	if err != nil || changed == 0 {
		t.Fatalf("%v; %d answers changed", err, changed)
	}
	if r.Differs == nil || len(r.Differs.Parts) == 0 || r.Differs.Input == "" {
		t.Errorf("no difference found: %+v", r)
	}
}

// eachFrame lets frames be changed, and makes their checksums right.
func eachFrame(b []byte, change func(frame []byte)) {
	for at := len("portcullis-record 1\n"); at+8 <= len(b); {
		size := 8 + int(binary.BigEndian.Uint32(b[at:]))
		change(b[at : at+size])
		binary.BigEndian.PutUint32(b[at+4:], crc32.Checksum(b[at+8:at+size], crc32.MakeTable(crc32.Castagnoli)))
		at += size
	}
}

// TestTornRecord: whatever is there of a record is replayed, and it is said that
// it is torn or damaged.
func TestTornRecord(t *testing.T) {
	b := recorded(t, 1<<30, noFailure(t))
	whole := 0
	for at := len(b); at > len(b)-2000; at -= 7 {
		r, err := replay.Replay(bytes.NewReader(b[:at]), engines)
		if err != nil || r.Differs != nil {
			t.Fatalf("cut at %d: %v, %+v", at, err, r.Differs)
		}
		if r.Ends == "" {
			whole++
		}
	}
	if whole > 40 {
		t.Errorf("%d of the cuts count as whole records", whole)
	}
	damaged := bytes.Clone(b)
	damaged[len(b)/2] ^= 1
	if r, err := replay.Replay(bytes.NewReader(damaged), engines); err != nil || !strings.Contains(r.Ends, "damaged") && !strings.Contains(r.Ends, "bytes") {
		t.Errorf("damaged in the middle: %v, %+v", err, r)
	}
}

// TestNoRecord: data that are no record are rejected with a reason.
func TestNoRecord(t *testing.T) {
	b := recorded(t, 1<<30, noFailure(t))
	for name, in := range map[string][]byte{
		"empty": nil, "text": []byte("hello, world, this is text\n"), "another version": append([]byte("portcullis-record 2\n"), b[20:]...),
		"head alone": b[:20],
	} {
		if _, err := replay.Replay(bytes.NewReader(in), engines); !errors.Is(err, replay.ErrNotRecord) {
			t.Errorf("%s: error %v, want %v", name, err, replay.ErrNotRecord)
		}
	}
	none := func(string, []byte) (route.Engine, error) { return nil, errors.New("none here") }
	if _, err := replay.Replay(bytes.NewReader(b), none); err == nil || !strings.Contains(err.Error(), "engine minhop") {
		t.Errorf("error %v, want the engine that is missing", err)
	}
}

// TestFullRecord: a record does not grow beyond its size, the run goes on, and
// what there is can be replayed.
func TestFullRecord(t *testing.T) {
	const limit = 30000
	var told error
	b := recorded(t, limit, func(err error) { told = err })
	if len(b) > limit || told == nil {
		t.Errorf("%d bytes, told %v; want at most %d", len(b), told, limit)
	}
	r, err := replay.Replay(bytes.NewReader(b), engines)
	if err != nil || r.Differs != nil || !strings.Contains(r.Ends, "largest size") || r.Steps == 0 {
		t.Errorf("replay: %v, %+v", err, r)
	}
}

// TestReplayOfRealRun records a bring-up on a real ibsim, over real time.
func TestReplayOfRealRun(t *testing.T) {
	ibsimtest.Need(t)
	l, err := netlist.FatTree2(netlist.Shape{Hosts: 12, Leaves: 3, Spines: 2, Radix: 12})
	if err != nil {
		t.Fatal(err)
	}
	var text bytes.Buffer
	if _, err := l.WriteTo(&text); err != nil {
		t.Fatal(err)
	}
	lab := ibsimtest.Start(t, text.Bytes())
	port, err := ibsim.Dial(t.Context(), ibsim.Options{Socket: lab.Socket(), Node: "sm", AsSM: true})
	if err != nil {
		t.Fatal(err)
	}
	var file bytes.Buffer
	err = driver.Run(t.Context(), driver.Options{
		Port: port, Record: replay.NewWriter(&file, 1<<30, noFailure(t)), Until: driver.UntilSettled,
		Core: sm.Config{Enforcement: sm.Accepted},
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	r, err := replay.Replay(&file, engines)
	if err != nil || r.Differs != nil || r.Ends != "" || r.Steps < 100 {
		t.Errorf("replay: %v, %+v, first difference %+v", err, r, r.Differs)
	}
}

// FuzzReplay: no bytes make a replay crash, or take memory that they do not
// have.
func FuzzReplay(f *testing.F) {
	f.Add([]byte("portcullis-record 1\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := replay.Replay(bytes.NewReader(b), engines)
		if err == nil && r.Steps > len(b) {
			t.Errorf("%d steps out of %d bytes", r.Steps, len(b))
		}
	})
}
