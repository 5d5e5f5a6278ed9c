package keys

import (
	"fmt"
	"testing"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/keys/keystest"
)

// TestNothingShowsAKey plants keys in every type of the package that can hold
// one, and in every error.
func TestNothingShowsAKey(t *testing.T) {
	scan := keystest.New(keystest.Planted(0), keystest.Planted(1), keystest.Planted(2))
	master := testMaster(t, 9)
	scan.Bytes("master", master.Reveal())
	k, p, q := New(keystest.Planted(0)), New(keystest.Planted(1)), New(keystest.Planted(2))
	held := Held{Key: k, Epoch: 1, Origin: OriginImported, Since: time.Unix(0, 0)}
	record := Record{Kind: MKey, GUID: 1, Place: ib.Place{Switch: 2, Port: 3}, Current: held, Pending: Held{Key: p, Epoch: 2, Origin: OriginRandom}}
	ring, err := LoadRing(record)
	if err != nil {
		t.Fatal(err)
	}
	book, err := NewBook([]Record{record})
	if err != nil {
		t.Fatal(err)
	}
	ring.Answered(Seen{Key: q})
	for _, v := range []any{
		k, &k, held, record, ring, *ring, book,
		Seen{Key: q},
		ring.Next(record.Place, true),
		Step{Do: Program, Header: k, New: p},
		master, &master,
		Derived{master},
		struct{ m Master }{master},
		k.M(), k.SM(),
		map[Key]Key{k: p},
		[]Held{held},
	} {
		scan.CleanValue(t, v)
	}
	three := record
	three.Previous = Held{Key: q, Origin: OriginRandom}
	twice := record
	twice.Pending = held
	for i, err := range []error{
		three.Check(), twice.Check(), ring.Plan(held), ring.Adopt(held), ring.Plan(Held{Key: p, Epoch: 9}),
		second(NewBook([]Record{record, record})), second(NewBook([]Record{three})),
	} {
		if err == nil {
			t.Errorf("error %d is none", i)
		}
		scan.CleanValue(t, err)
	}
	for _, weak := range []uint64{0x1D872B41, 0xABCDEF98ABCDEF98} {
		keystest.New(weak).CleanValue(t, Check(New(weak)))
	}
	if s := fmt.Sprint(Key{}, Master{}); s != "none none" {
		t.Errorf("no secret prints as %q", s)
	}
}
