package replay_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"portcullis/fabricsm/driver"
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/keys"
	"portcullis/fabricsm/keys/keystest"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sim"
	"portcullis/fabricsm/sim/netlist"
	"portcullis/fabricsm/sm"
	"portcullis/fabricsm/sm/keyevent"
	"portcullis/fabricsm/sm/mkeys"
	"portcullis/fabricsm/sm/mkeys/keyimport"
	"portcullis/fabricsm/sm/mkeys/keyplace"
	"portcullis/fabricsm/sm/replay"
)

// memory is a store that forgets nothing while it is there.
type memory struct{ facts []sm.Fact }

func (m *memory) Load() ([]sm.Fact, error) { return append([]sm.Fact(nil), m.facts...), nil }
func (m *memory) Save(f []sm.Fact) error   { m.facts = append(m.facts, f...); return nil }

// Keys that others show, or hold.
const (
	wrongKey   = 0x0ff3_0ff3_feed_beef
	foreignKey = 0x7777_1111_2222_aaaa
	otherSMKey = 0x5e5e_1234_9876_0001

	foreignCCKey = 0x1357_9bdf_0246_8ace
)

// keyedRun is the state of a fabric with M_Keys while it was recorded.
type keyedRun struct {
	fabric *sim.Fabric
	list   *netlist.Netlist
	store  memory
	seen   map[uint64]bool // keys that devices had
}

func newKeyedRun(t *testing.T) *keyedRun {
	t.Helper()
	l, err := netlist.FatTree2(netlist.Shape{Hosts: 6, Leaves: 2, Spines: 2, Radix: 8})
	if err != nil {
		t.Fatal(err)
	}
	return &keyedRun{fabric: sim.NewWith(l, sim.Options{LoseSilently: true, Seed: 3, Device: sim.Modern()}), list: l, seen: make(map[uint64]bool)}
}

// run records a manager from its start until the keys have changed twice. While it
// runs a host shows wrong keys, and another subnet manager its own.
func (k *keyedRun) run(t *testing.T, cfg sm.Config) []byte {
	t.Helper()
	var file bytes.Buffer
	port, err := k.fabric.Attach("sm", true)
	if err != nil {
		t.Fatal(err)
	}
	if err := k.fabric.RogueSM("h4", &mad.SMInfo{GUID: k.list.Find("h4").PortGUID(1), SMKey: ib.NewSMKey(otherSMKey), Priority: 15, SMState: ib.SMMaster}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	inputs := make(chan sm.Input, 3)
	said := false
	rotations := 0
	err = driver.Run(ctx, driver.Options{
		Port: port, Store: &k.store, Record: replay.NewWriter(&file, 1<<30, noFailure(t)), Core: cfg, Inputs: inputs,
		OnView: func(v *sm.View) {
			if v.Settled {
				k.note()
				k.attack(t)
				if !said {
					said = true
					inputs <- &sm.LendKey{GUID: k.list.Find("h3").PortGUID(1), Until: time.Now().Add(20 * time.Second), To: "a tool"}
					inputs <- &sm.MoveKey{GUID: k.list.Find("h3").PortGUID(1)}
					inputs <- &sm.RetireKey{GUID: k.list.Find("h3").PortGUID(1)}
				}
			}
		},
		OnEvent: func(e sm.Event) {
			if _, ok := e.(*keyevent.KeysRotated); ok {
				if rotations++; rotations == 2 {
					cancel()
				}
			}
		},
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	k.note()
	return file.Bytes()
}

// note remembers the keys of all devices.
func (k *keyedRun) note() {
	for i := range k.list.Nodes {
		n := &k.list.Nodes[i]
		for num := range n.Ports {
			if n.Type == ib.NodeSwitch || num > 0 {
				k.seen[k.fabric.PortInfo(n.Name, ib.PortNum(num)).MKey.Reveal()] = true
			}
		}
	}
	delete(k.seen, 0)
}

// attack has h1 show its switch a wrong key.
func (k *keyedRun) attack(t *testing.T) {
	way := mad.MakeRoute(1)
	f := sim.Forged{SLID: ib.PermissiveLID, DLID: ib.PermissiveLID}
	mad.NewSMP(&f.MAD, mad.Header{Method: mad.MethodGet, Attr: mad.AttrPortInfo, TID: 7}, &way, ib.NewMKey(wrongKey))
	if err := k.fabric.InjectMAD(sim.Endpoint{Node: "h1", Port: 1}, f); err != nil {
		t.Error(err)
	}
}

// TestRecordShowsNoKey records a run with M_Keys, which change, with keys that others assigned, wrong ones that are shown,
// and SM_Keys of ours and another one. It also records the next run over the saved facts. No key is in a record, and both
// replay.
func TestRecordShowsNoKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		master, err := keys.DrawMaster(rand.NewChaCha8([32]byte{1}))
		if err != nil {
			t.Fatal(err)
		}
		k := newKeyedRun(t)
		cfg := sm.Config{SMKey: ib.NewSMKey(secret), MKey: mkeys.Config{
			Source: keys.Derived{Master: master}, Places: keyplace.Seen,
			Rotation: keys.RotationConfig{Period: time.Minute, Grace: time.Second, Window: 4},
			Import:   &keyimport.Keys{Keys: map[ib.GUID]keys.Key{k.list.Find("h2").PortGUID(1): keys.New(foreignKey)}},
		}, ClassKeys: sm.ClassKeysConfig{
			Source: keys.Derived{Master: master}, CC: sm.ClassKeyConfig{Enable: sm.KeyEnabled},
			Import: map[keys.Kind]map[ib.GUID]keys.Key{keys.CCKey: {k.list.Find("h2").PortGUID(1): keys.New(foreignCCKey)}},
		}}
		records := [][]byte{k.run(t, cfg), k.run(t, cfg)}
		scan := keystest.New(secret, wrongKey, foreignKey, otherSMKey, foreignCCKey)
		for key := range k.seen {
			scan.Bytes("a key of a device", binary.BigEndian.AppendUint64(nil, key))
		}
		if len(k.seen) < 20 {
			t.Fatalf("devices had %d keys, so nothing is proven", len(k.seen))
		}
		for i, b := range records {
			scan.Clean(t, "record", b)
			r, err := replay.Replay(bytes.NewReader(b), engines)
			if err != nil {
				t.Fatalf("record %d: %v", i+1, err)
			}
			if r.Differs != nil || r.Ends != "" || r.Steps < 100 {
				t.Errorf("replay of record %d: %+v, first difference %+v", i+1, r, r.Differs)
			}
		}
	})
}

// TestKeysOfRecordsAreChecked: a record whose keys are not those that its steps ask
// for is not as recorded; it does not run on.
func TestKeysOfRecordsAreChecked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		master, err := keys.DrawMaster(rand.NewChaCha8([32]byte{1}))
		if err != nil {
			t.Fatal(err)
		}
		k := newKeyedRun(t)
		b := k.run(t, sm.Config{MKey: mkeys.Config{
			Source: keys.Derived{Master: master}, Places: keyplace.Seen,
			Rotation: keys.RotationConfig{Period: time.Minute, Grace: time.Second, Window: 4},
		}})
		changed := false
		eachFrame(b, func(frame []byte) {
			if changed || frame[8] != 'K' {
				return
			}
			if at := bytes.Index(frame, []byte(`"Epoch":1`)); at > 0 {
				frame[at+len(`"Epoch":`)], changed = '2', true
			}
		})
		r, err := replay.Replay(bytes.NewReader(b), engines)
		if err != nil || !changed {
			t.Fatalf("%v; changed: %v", err, changed)
		}
		if r.Differs == nil || !strings.Contains(strings.Join(r.Differs.Got, "\n"), "the record has the m_key of") {
			t.Errorf("%+v, %+v", r, r.Differs)
		}
	})
}
