package keys

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"portcullis/fabricsm/ib"
)

// device behaves as the specification, and for dual keys the documentation, says: it obeys its key, and perhaps the one
// before it; a restart clears both.
type device struct {
	dual              bool
	current, previous Key
}

func (d *device) obeys(header Key) bool {
	return d.current.IsZero() || header == d.current || !d.previous.IsZero() && header == d.previous
}

func (d *device) set(header, key Key) {
	switch {
	case !d.obeys(header):
	case key == d.current:
		d.previous = Key{}
	default:
		d.previous = Key{}
		if d.dual {
			d.previous = d.current
		}
		d.current = key
	}
}

func (d *device) restart() { d.current, d.previous = Key{}, Key{} }

// fault happens to one of the MADs of a run.
type fault string

const (
	none       fault = "no fault"
	lost       fault = "request lost"
	answerLost fault = "answer lost"
	late       fault = "request late" // it arrives after the next one
	restart    fault = "device restarts before"
	restarted  fault = "device restarts after"
)

// world is a fabric, the disk of its manager, and the manager's memory.
type world struct {
	t       *testing.T
	now     time.Time
	devices map[ib.GUID]*device
	disk    map[ib.GUID]Record
	cycles  map[Kind]Cycle
	source  Source

	book    *Book
	rotator *Rotator
	done    map[ib.GUID]bool // targets under way

	actions, killAt int // things that happen; the manager dies before number killAt
	mads, faultAt   int
	fault           fault
	delayed         func()
}

type killed struct{}

// act counts what happens, and is where the manager dies.
func (w *world) act() {
	w.actions++
	if w.actions == w.killAt {
		panic(killed{})
	}
}

func (w *world) place(g ib.GUID) ib.Place { return ib.Place{Switch: 1000, Port: ib.PortNum(g)} }

func (w *world) start() {
	var err error
	if w.book, err = NewBook(slices.Collect(maps.Values(w.disk))); err != nil {
		w.t.Fatal(err)
	}
	cfg := RotationConfig{Period: time.Hour, Grace: time.Minute, Window: 2}
	if w.rotator, err = NewRotator(cfg, []Kind{MKey}, w.now, slices.Collect(maps.Values(w.cycles))); err != nil {
		w.t.Fatal(err)
	}
	w.done = make(map[ib.GUID]bool)
}

// send carries one MAD, with the fault that is due.
func (w *world) send(g ib.GUID, header Key, deliver func(d *device)) (answered bool) {
	w.act()
	d := w.devices[g]
	rec := w.disk[g]
	if !header.IsZero() && header != rec.Current.Key && header != rec.Pending.Key && header != rec.Previous.Key {
		w.t.Fatalf("%v was sent a key that is not durable, or not its own", g)
	}
	w.mads++
	f := none
	if w.mads == w.faultAt {
		f = w.fault
	}
	if f == restart {
		d.restart()
	}
	if f == lost {
		return false
	}
	if f == late {
		w.delayed = func() { deliver(d) }
		return false
	}
	obeyed := d.obeys(header)
	deliver(d)
	if w.delayed != nil {
		w.delayed()
		w.delayed = nil
	}
	if f == restarted {
		d.restart()
		w.book.Ring(MKey, g).Again() // its link went down
		return false
	}
	w.act()
	return obeyed && f != answerLost
}

// step does what one ring asks for, and says whether it asks for anything.
func (w *world) step(g ib.GUID) bool {
	ring := w.book.Ring(MKey, g)
	s := ring.Next(w.place(g), true)
	if s.Save {
		w.act()
		w.disk[g] = ring.Record()
		w.act()
		ring.Saved()
	}
	switch s.Do {
	case Ask:
		var seen Key
		if w.send(g, s.Header, func(d *device) { seen = d.current }) {
			ring.Answered(Seen{Key: seen})
		} else {
			ring.Silent()
		}
	case Program:
		if w.send(g, s.Header, func(d *device) { d.set(s.Header, s.New) }) {
			ring.Sent(true)
		} else {
			ring.Lost()
		}
	case Nothing:
		if w.done[g] && ring.Settled() {
			delete(w.done, g)
			w.rotator.Done(MKey, g, true)
		}
		return s.Save
	case Stranded, Refusing:
		ring.Again() // the fault was one; it is over
	default:
		w.t.Fatalf("%v: %v", g, s.Do)
	}
	return true
}

func (w *world) guids() []ib.GUID { return slices.Sorted(maps.Keys(w.devices)) }

// settle runs all rings until none asks for anything.
func (w *world) settle() {
	for range 200 {
		busy := false
		for _, g := range w.guids() {
			if w.book.Ring(MKey, g) != nil && w.step(g) {
				busy = true
			}
		}
		if !busy {
			return
		}
	}
	w.t.Fatal("the rings never come to rest")
}

func (w *world) fleet(Kind) []Member {
	var out []Member
	for _, r := range w.book.Records() {
		out = append(out, Member{
			GUID: r.GUID, Epoch: r.Current.Epoch, Dual: r.GUID != 4, Depth: int(r.GUID),
			Keyed: !r.Current.IsZero(), Prior: !r.Previous.IsZero(),
		})
	}
	return out
}

// turn lets the rotator have its way once.
func (w *world) turn() Turn {
	t := w.rotator.Next(w.now, true, w.fleet)
	for _, c := range t.Save {
		w.act()
		w.cycles[c.Kind] = c
		w.act()
	}
	for _, c := range t.Change {
		w.done[c.GUID] = true
		ring := w.book.Ring(MKey, c.GUID)
		if !ring.Record().Pending.IsZero() {
			continue
		}
		h, err := w.source.Make(MKey, c.GUID, c.Epoch, w.now)
		if err == nil {
			err = ring.Plan(h)
		}
		if err != nil {
			w.t.Fatal(err)
		}
	}
	for _, c := range t.Commit {
		w.done[c.GUID] = true
		w.book.Ring(MKey, c.GUID).Commit()
	}
	return t
}

// live runs the manager until a time, from its start to its death.
func (w *world) live(until time.Time) (died bool) {
	defer func() {
		if r := recover(); r != nil {
			if _, ok := r.(killed); !ok {
				panic(r)
			}
			died = true
		}
	}()
	w.start()
	w.settle()
	for w.now.Before(until) {
		t := w.turn()
		w.settle()
		if len(t.Change) == 0 && len(t.Commit) == 0 && len(t.Save) == 0 {
			w.now = w.now.Add(time.Minute)
		}
	}
	return false
}

// fabric makes a world with four devices that have keys of epoch 1. Number 4
// has no dual keys as far as the manager knows.
func fabric(t *testing.T, dual bool) *world {
	w := &world{
		t: t, now: time.Unix(1e9, 0).UTC(), devices: map[ib.GUID]*device{}, disk: map[ib.GUID]Record{},
		cycles: map[Kind]Cycle{}, source: Derived{testMaster(t, 7)},
	}
	for g := ib.GUID(1); g <= 4; g++ {
		h, err := w.source.Make(MKey, g, 1, w.now)
		if err != nil {
			t.Fatal(err)
		}
		w.devices[g] = &device{dual: dual && g != 4, current: h.Key}
		w.disk[g] = Record{Kind: MKey, GUID: g, Place: w.place(g), Current: h}
	}
	return w
}

// judge says what must hold after a whole rotation, whatever went wrong in it.
func (w *world) judge() error {
	for g, d := range w.devices {
		rec := w.disk[g]
		if err := rec.Check(); err != nil {
			return err
		}
		switch {
		case d.current != rec.Current.Key || d.current.IsZero():
			return fmt.Errorf("device %v is not on the key that is known", g)
		case !d.previous.IsZero():
			return fmt.Errorf("device %v still obeys the key before", g)
		case !rec.Pending.IsZero() || !rec.Previous.IsZero():
			return fmt.Errorf("device %v: more than one key is known", g)
		case (g == 4) != (rec.Current.Epoch == 1):
			return fmt.Errorf("device %v is on epoch %d", g, rec.Current.Epoch)
		}
	}
	if c := w.cycles[MKey]; c.Ended.IsZero() {
		return fmt.Errorf("cycle of epoch %d did not end", c.Epoch)
	}
	return nil
}

// TestRotationSurvivesAKillAtEveryStep kills the manager before every step of a rotation: each save, each MAD, each answer.
// In each of these runs, one of the MADs meets a fault. The next manager has only the disk.
func TestRotationSurvivesAKillAtEveryStep(t *testing.T) {
	const hours = 2
	runs := 0
	for _, dual := range []bool{true, false} {
		plain := fabric(t, dual)
		plain.live(plain.now.Add(hours * time.Hour))
		if err := plain.judge(); err != nil {
			t.Fatalf("undisturbed, dual %v: %v", dual, err)
		}
		for killAt := 1; killAt <= plain.actions; killAt++ {
			for _, f := range []fault{none, lost, answerLost, late, restart, restarted} {
				for faultAt := 1; faultAt <= plain.mads; faultAt++ {
					w := fabric(t, dual)
					w.killAt, w.fault, w.faultAt = killAt, f, faultAt
					end := w.now.Add(hours * time.Hour)
					if !w.live(end) && f == none {
						t.Fatalf("dual %v, kill at %d: it lived on", dual, killAt)
					}
					w.delayed = nil // the network is empty before the next one runs
					w.live(end.Add(hours * time.Hour))
					if err := w.judge(); err != nil {
						t.Fatalf("dual %v, kill at %d of %d, %s at %d: %v", dual, killAt, plain.actions, f, faultAt, err)
					}
					runs++
					if f == none {
						break
					}
				}
			}
		}
	}
	t.Logf("%d runs", runs)
}
