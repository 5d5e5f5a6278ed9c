package keys

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"portcullis/fabricsm/ib"
)

var (
	here  = ib.Place{Switch: 0x10, Port: 1}
	there = ib.Place{Switch: 0x10, Port: 2}
	old   = Held{Key: New(0xA1B2C3D4E5F60718), Epoch: 3, Origin: OriginRandom}
	fresh = Held{Key: New(0x8F3A5C917B2E4D60), Epoch: 4, Origin: OriginRandom}
	other = New(0x6B0D4A93C2F81E57)
)

// ringOf returns a ring whose device was seen on old.
func ringOf(t *testing.T) *Ring {
	t.Helper()
	r, err := LoadRing(Record{Kind: MKey, GUID: 1, Place: here, Current: old})
	if err != nil {
		t.Fatal(err)
	}
	if f := r.Answered(Seen{Key: old.Key}); f != FoundCurrent || !r.Settled() {
		t.Fatalf("found %v", f)
	}
	return r
}

func TestRingWithholds(t *testing.T) {
	r := ringOf(t)
	if err := r.Plan(fresh); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name     string
		place    ib.Place
		verified bool
		want     Do
	}{
		{"at its place", here, true, Program},
		{"not verified", here, false, Withhold},
		{"elsewhere", there, true, Withhold},
		{"nowhere", ib.Place{}, true, Withhold},
	} {
		s := r.Next(tt.place, tt.verified)
		_, known := r.Now(tt.place, tt.verified)
		if s.Do != tt.want || known != (tt.want == Program) {
			t.Errorf("%s: %v, key known %v; want %v", tt.name, s.Do, known, tt.want)
		}
		if s.Do == Withhold && (!s.Header.IsZero() || !s.New.IsZero()) {
			t.Errorf("%s: a step that withholds has a key", tt.name)
		}
		if !r.IsKnown() {
			t.Errorf("%s: the key of the device is not known", tt.name)
		}
	}
	if r.Move(there); r.IsKnown() {
		t.Error("the key of a device that moved is known")
	}
	if a, b := r.Next(there, true).Do, r.Next(here, true).Do; a != Ask || b != Withhold {
		t.Errorf("after it moved: %v there, %v here; want ask and withhold", a, b)
	}
}

// TestRingTriesTwoKeys: only its own two keys are tried on a silent device.
func TestRingTriesTwoKeys(t *testing.T) {
	r, err := LoadRing(Record{Kind: MKey, GUID: 1, Current: old, Pending: fresh})
	if err != nil {
		t.Fatal(err)
	}
	var tried []Key
	for range 4 {
		if s := r.Next(here, true); s.Do == Ask {
			tried = append(tried, s.Header)
			r.Silent()
		}
	}
	if d := cmp.Diff([]Key{old.Key, fresh.Key}, tried); d != "" {
		t.Errorf("tried (-want +got):\n%s", d)
	}
	if s := r.Next(here, true); s.Do != Stranded {
		t.Errorf("then %v, want stranded", s.Do)
	}
	r.Again()
	if s := r.Next(here, true); s.Do != Ask || s.Header != old.Key {
		t.Errorf("again: %v", s.Do)
	}
}

func TestRingAsksForTheNewKeyFirstAfterASet(t *testing.T) {
	r := ringOf(t)
	if err := r.Plan(fresh); err != nil {
		t.Fatal(err)
	}
	if s := r.Next(here, true); s.Do != Program || !s.Save || s.Header != old.Key || s.New != fresh.Key {
		t.Fatalf("step %v, save %v", s.Do, s.Save)
	}
	r.Saved()
	r.Sent(false)
	if s := r.Next(here, true); s.Do != Ask || s.Header != fresh.Key {
		t.Errorf("after the Set: %v", s.Do)
	}
	r.Silent()
	if s := r.Next(here, true); s.Do != Ask || s.Header != old.Key {
		t.Errorf("then: %v", s.Do)
	}
}

func TestRingGivesUpOnADeviceThatRefuses(t *testing.T) {
	r := ringOf(t)
	if err := r.Plan(fresh); err != nil {
		t.Fatal(err)
	}
	sets := 0
	for range 20 {
		switch s := r.Next(here, true); s.Do {
		case Program:
			sets++
			r.Sent(true)
		case Ask:
			r.Answered(Seen{Key: old.Key})
		default:
		}
	}
	if s := r.Next(here, true); s.Do != Refusing || sets != maxSets {
		t.Errorf("%v after %d Sets, want refusing after %d", s.Do, sets, maxSets)
	}
	if rec := r.Record(); rec.Current != old || rec.Pending != fresh {
		t.Error("it forgot one of the two keys")
	}
}

// TestRingBearsLostSets: a lost Set counts less than a refused one, so that lost packets do not soon make a device count as
// refusing.
func TestRingBearsLostSets(t *testing.T) {
	for _, tt := range []struct{ lost, refused int }{{lost: maxSets * lostPerSet}, {lost: lostPerSet, refused: maxSets - 1}} {
		r := ringOf(t)
		if err := r.Plan(fresh); err != nil {
			t.Fatal(err)
		}
		for i := range tt.lost + tt.refused {
			if s := r.Next(here, true); s.Do != Program {
				t.Fatalf("%+v: %v after %d Sets, want another", tt, s.Do, i)
			}
			if i < tt.lost {
				r.Lost()
			} else {
				r.Sent(false)
			}
			r.Answered(Seen{Key: old.Key})
		}
		if s := r.Next(here, true); s.Do != Refusing {
			t.Errorf("%+v: %v in the end, want refusing", tt, s.Do)
		}
	}
}

func TestRingFindings(t *testing.T) {
	for _, tt := range []struct {
		name string
		seen Seen
		want Finding
		next Do
	}{
		{"current", Seen{Key: old.Key}, FoundCurrent, Program},
		{"pending", Seen{Key: fresh.Key}, FoundNew, Nothing},
		{"none", Seen{}, FoundOpen, Program},
		{"hidden", Seen{Hidden: true}, FoundNothing, Ask},
		{"foreign", Seen{Key: other}, FoundForeign, Foreign},
	} {
		r, err := LoadRing(Record{Kind: MKey, GUID: 1, Current: old, Pending: fresh})
		if err != nil {
			t.Fatal(err)
		}
		if got, next := r.Answered(tt.seen), r.Next(here, true); got != tt.want || next.Do != tt.next {
			t.Errorf("%s: %v, then %v; want %v, then %v", tt.name, got, next.Do, tt.want, tt.next)
		}
	}
}

// TestRingFallsBack: a device that lost its new key and is on the one before it gets it again.
func TestRingFallsBack(t *testing.T) {
	r, err := LoadRing(Record{Kind: MKey, GUID: 1, Current: fresh, Previous: old})
	if err != nil {
		t.Fatal(err)
	}
	if got := r.Answered(Seen{Key: old.Key}); got != FoundPrevious {
		t.Fatalf("found %v", got)
	}
	if s := r.Next(here, true); s.Do != Program || s.Header != old.Key || s.New != fresh.Key {
		t.Errorf("then %v", s.Do)
	}
}

func TestRingRefuses(t *testing.T) {
	blind, err := LoadRing(Record{Kind: MKey, GUID: 1, Current: old})
	if err != nil {
		t.Fatal(err)
	}
	busy, gone := ringOf(t), ringOf(t)
	if err := busy.Plan(fresh); err != nil {
		t.Fatal(err)
	}
	gone.Retire()
	for _, tt := range []struct {
		name string
		err  error
		want string
	}{
		{"before it is known", blind.Plan(fresh), "ask it first"},
		{"before the last is settled", busy.Plan(Held{Key: other, Epoch: 9}), "not settled"},
		{"no key", ringOf(t).Plan(Held{Epoch: 9}), "no key"},
		{"all ones", ringOf(t).Plan(Held{Key: New(^uint64(0)), Epoch: 9}), "no key"},
		{"the same", ringOf(t).Plan(Held{Key: old.Key, Epoch: 9}), "make another"},
		{"an old epoch", ringOf(t).Plan(Held{Key: other, Epoch: 3}), "never come back"},
		{"a retired epoch", gone.Plan(Held{Key: other, Epoch: 3}), "never come back"},
		{"adopt over ours", ringOf(t).Adopt(Held{Key: other}), "retire it first"},
		{"adopt none", NewRing(MKey, 1, here).Adopt(Held{}), "there is none"},
	} {
		if tt.err == nil || !strings.Contains(tt.err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", tt.name, tt.err, tt.want)
		}
	}
}

func TestRetireDestroysKeys(t *testing.T) {
	r := ringOf(t)
	r.Retire()
	if d := cmp.Diff(Record{Kind: MKey, GUID: 1, Retired: true, Floor: 3}, r.Record()); d != "" {
		t.Errorf("record (-want +got):\n%s", d)
	}
	if s := r.Next(here, true); s.Do != Nothing || !s.Save {
		t.Errorf("step %v, save %v", s.Do, s.Save)
	}
	if err := r.Plan(fresh); err != nil || r.NextEpoch() != 5 {
		t.Errorf("a device that came back gets no new key: %v", err)
	}
}

func TestAdoptHasToBeConfirmed(t *testing.T) {
	r := NewRing(MKey, 1, here)
	if err := r.Adopt(Held{Key: old.Key}); err != nil {
		t.Fatal(err)
	}
	if _, known := r.Now(here, true); known {
		t.Error("a key that was taken over is believed before a Get")
	}
	if s := r.Next(here, true); s.Do != Ask || !s.Save || s.Header != old.Key {
		t.Errorf("step %v, save %v", s.Do, s.Save)
	}
	r.Answered(Seen{Key: old.Key})
	if err := r.Plan(fresh); err != nil {
		t.Errorf("it is not changed afterwards: %v", err)
	}
}

func TestRecordCheck(t *testing.T) {
	for _, tt := range []struct {
		name string
		r    Record
		want string
	}{
		{"device", Record{Kind: MKey, GUID: 1, Current: old, Pending: fresh}, ""},
		{"fabric", Record{Kind: SAKey, Current: old}, ""},
		{"no kind", Record{GUID: 1}, "no such kind"},
		{"no GUID", Record{Kind: MKey}, "want a port GUID"},
		{"all-ones GUID", Record{Kind: MKey, GUID: ^ib.GUID(0)}, "want a port GUID"},
		{"GUID of the fabric", Record{Kind: SMKey, GUID: 1}, "want a port GUID"},
		{"retired with a key", Record{Kind: MKey, GUID: 1, Retired: true, Current: old}, "retired"},
		{"three", Record{Kind: MKey, GUID: 1, Current: old, Pending: fresh, Previous: Held{Key: other}}, "three"},
		{"twice", Record{Kind: MKey, GUID: 1, Current: old, Pending: old}, "twice"},
		{"only previous", Record{Kind: MKey, GUID: 1, Previous: old}, "no current"},
		{"origin", Record{Kind: MKey, GUID: 1, Current: Held{Key: other, Origin: "found"}}, "origin"},
	} {
		err := tt.r.Check()
		if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%s: %v, want %q", tt.name, err, tt.want)
		}
		if _, loaded := LoadRing(tt.r); (loaded == nil) != (err == nil) {
			t.Errorf("%s: loaded with %v", tt.name, loaded)
		}
	}
}

func TestBookFindsByPlace(t *testing.T) {
	b, err := NewBook([]Record{
		{Kind: MKey, GUID: 2, Place: here, Current: old},
		{Kind: MKey, GUID: 1, Place: here, Current: Held{Key: other, Origin: OriginRandom}},
		{Kind: VSKey, GUID: 3, Place: here},
		{Kind: MKey, GUID: 4},
	})
	if err != nil {
		t.Fatal(err)
	}
	at := func(p ib.Place) []ib.GUID { return b.At(MKey, p) }
	if d := cmp.Diff([]ib.GUID{1, 2}, at(here)); d != "" {
		t.Errorf("at its place (-want +got):\n%s", d)
	}
	b.Move(MKey, 2, there)
	b.Retire(MKey, 1)
	b.Open(MKey, 5, there)
	if d := cmp.Diff([][]ib.GUID{nil, {2, 5}}, [][]ib.GUID{at(here), at(there)}); d != "" {
		t.Errorf("after a move and a loss (-want +got):\n%s", d)
	}
	if r := b.Open(MKey, 2, here).Record(); r.Place != there {
		t.Errorf("opening a device that is known moved it to %v", r.Place)
	}
	if got := len(b.Records()); got != 5 {
		t.Errorf("%d records, want 5", got)
	}
}

func TestKindText(t *testing.T) {
	for _, k := range Kinds() {
		text, err := k.MarshalText()
		var back Kind
		if err != nil || back.UnmarshalText(text) != nil || back != k {
			t.Errorf("%v comes back as %v", k, back)
		}
	}
	var k Kind
	if err := k.UnmarshalText([]byte("b_key")); err == nil {
		t.Error("b_key is a kind")
	}
}
