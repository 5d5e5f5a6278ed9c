package trust_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"portcullis/fabricsm/keys"
	"portcullis/fabricsm/sa/trust"
)

func newKeys(t testing.TB, s trust.KeyState) *trust.Keys {
	t.Helper()
	k, err := trust.NewKeys(s)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// again returns the keys after a restart.
func again(t testing.TB, k *trust.Keys) *trust.Keys {
	t.Helper()
	s := k.State()
	s, err := trust.KeyStateOf(s.Facts())
	if err != nil {
		t.Fatal(err)
	}
	return newKeys(t, s)
}

// TestRotation changes keys at random moments, with restarts between. The newest key is always right, the previous one
// until its grace ends. Older keys are known as retired.
func TestRotation(t *testing.T) {
	type made struct {
		bits uint64
		ends time.Time // zero: in force
	}
	for seed := range uint64(50) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		k := newKeys(t, trust.KeyState{})
		now := start
		var list []made
		for range 60 {
			now = now.Add(time.Duration(rnd.Int64N(int64(time.Hour))))
			switch rnd.IntN(4) {
			case 0:
				grace := time.Duration(rnd.Int64N(int64(2 * time.Hour)))
				bits := rnd.Uint64() | 1<<40
				s := k.State()
				if err := k.Rotate(now, held(s.Record.Newest()+1, bits, now), grace); err != nil {
					t.Fatalf("seed %d: %v", seed, err)
				}
				if n := len(list); n > 0 {
					list[n-1].ends = now.Add(grace)
				}
				list = append(list, made{bits: bits})
			case 1:
				k = again(t, k)
			case 2:
				k.Tick(now)
			}
			for i, m := range list {
				want := trust.ShownRetired
				if i == len(list)-1 || i == len(list)-2 && now.Before(m.ends) {
					want = trust.ShownRight
				}
				if i < len(list)-17 {
					continue // long forgotten
				}
				if got := k.Show(now, m.bits); got != want {
					t.Fatalf("seed %d: key %d of %d: %d, want %d", seed, i, len(list), got, want)
				}
			}
			if got := k.Show(now, 0); got != trust.ShownNone {
				t.Fatalf("seed %d: no key: %d", seed, got)
			}
			if got := k.Show(now, rnd.Uint64()|1); got != trust.ShownWrong {
				t.Fatalf("seed %d: a key that was drawn just now: %d", seed, got)
			}
		}
	}
}

func TestRotationIsDue(t *testing.T) {
	const period, grace = time.Hour, 10 * time.Minute
	k := newKeys(t, trust.KeyState{})
	if got := k.Next(start, period); got != 1 {
		t.Fatalf("without a key, the epoch wanted is %d, want 1", got)
	}
	if err := k.Rotate(start, held(1, first, start), grace); err != nil {
		t.Fatal(err)
	}
	if got := k.Wake(period); !got.Equal(start.Add(period)) {
		t.Errorf("wakes at %v, want the end of the period", got)
	}
	if got := k.Next(start.Add(period-1), period); got != 0 {
		t.Errorf("before the end of the period epoch %d is wanted", got)
	}
	if got := k.Next(start.Add(period), 0); got != 0 {
		t.Errorf("without a period epoch %d is wanted", got)
	}
	now := start.Add(period)
	if got := k.Next(now, period); got != 2 {
		t.Errorf("after the period epoch %d is wanted, want 2", got)
	}
	if err := k.Rotate(now, held(2, second, now), grace); err != nil {
		t.Fatal(err)
	}
	if got := k.Wake(period); !got.Equal(now.Add(grace)) {
		t.Errorf("wakes at %v, want the end of the grace", got)
	}
	if k.Tick(now.Add(grace - 1)) {
		t.Error("the grace ended early")
	}
	if !k.Tick(now.Add(grace)) || k.Tick(now.Add(grace)) {
		t.Error("the grace does not end once")
	}
	if s := k.State(); !s.Record.Previous.IsZero() || len(s.Retired) != 1 {
		t.Errorf("after the grace: %+v", s)
	}
}

func TestKeysRefuse(t *testing.T) {
	for _, bits := range []uint64{0, 1, 2, 1<<32 - 1, ^uint64(0), 0x0123456789abcdef, 0x1111111111111111} {
		k := newKeys(t, trust.KeyState{})
		err := k.Rotate(start, held(1, bits, start), time.Minute)
		var weak *keys.WeakError
		if !errors.As(err, &weak) {
			t.Errorf("key %x was taken: %v", bits, err)
		}
		if !k.Current().IsZero() || bits != 0 && k.Show(start, bits) != trust.ShownWrong {
			t.Errorf("key %x is in force", bits)
		}
		if _, err := trust.NewKeys(trust.KeyState{Record: keys.Record{Kind: keys.SAKey, Current: held(1, bits, start)}}); bits != 0 && err == nil {
			t.Errorf("a saved key %x was taken", bits)
		}
	}
	k := newKeys(t, trust.KeyState{})
	for i, bits := range []uint64{first, second, third} {
		if err := k.Rotate(start, held(keys.Epoch(i+1), bits, start), time.Minute); err != nil {
			t.Fatal(err)
		}
	}
	for _, tt := range []struct {
		name  string
		epoch keys.Epoch
		bits  uint64
	}{
		{"the key in force", 4, third}, {"the one before", 4, second}, {"one that was retired", 4, first}, {"an old epoch", 3, 0x5a17c09be4d6f238},
	} {
		if err := k.Rotate(start, held(tt.epoch, tt.bits, start), time.Minute); err == nil {
			t.Errorf("%s was taken", tt.name)
		}
	}
	if _, err := trust.NewKeys(trust.KeyState{Record: keys.Record{Kind: keys.SMKey, Current: held(1, first, start)}}); err == nil {
		t.Error("an SM_Key was taken")
	}
}

// TestOnlyOneFactIsDurable: a crash between the two facts of a state leaves the current
// key, and takes no other.
func TestOnlyOneFactIsDurable(t *testing.T) {
	k := newKeys(t, trust.KeyState{})
	for i, bits := range []uint64{first, second} {
		if err := k.Rotate(start, held(keys.Epoch(i+1), bits, start), time.Hour); err != nil {
			t.Fatal(err)
		}
	}
	s := k.State()
	facts := s.Facts()
	got, err := trust.KeyStateOf(facts[:1])
	if err != nil {
		t.Fatal(err)
	}
	k = newKeys(t, got)
	if a, b := k.Show(start, second), k.Show(start, first); a != trust.ShownRight || b != trust.ShownRetired {
		t.Errorf("the current key is %d, the one before %d", a, b)
	}
	for _, body := range []string{"", "{", `{"x":1}`, `{"retired":["00"]}`, `{} {}`} {
		facts[1].Body = body
		if _, err := trust.KeyStateOf(facts); err == nil {
			t.Errorf("%q was read", body)
		}
	}
}

// TestKeysDoNotPrint looks for the keys in all textual forms of a value.
func TestKeysDoNotPrint(t *testing.T) {
	g := newGuard(t, trust.DefaultOptions())
	k := newKeys(t, trust.KeyState{})
	for i, bits := range []uint64{first, second} {
		if err := k.Rotate(start, held(keys.Epoch(i+1), bits, start), time.Minute); err != nil {
			t.Fatal(err)
		}
	}
	s := k.State()
	for _, v := range []any{k, *k, s, &s, g, *g, s.Facts()[1]} {
		for _, verb := range []string{"%v", "%+v", "%#v", "%x", "%d", "%s"} {
			text := strings.ToLower(fmt.Sprintf(verb, v))
			for _, bits := range []uint64{first, second} {
				for _, form := range []string{"%x", "%d"} {
					if strings.Contains(text, fmt.Sprintf(form, bits)) {
						t.Errorf("%T with %s shows a key", v, verb)
					}
				}
			}
		}
	}
}
