package reader_test

import (
	"maps"
	"slices"
	"testing"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/proof"
	"portcullis/fabricsm/proof/reader"
	"portcullis/fabricsm/proof/reader/readertest"
)

// moved reads what was touched, where hosts are of other tenants than before.
func (b *bed) moved(was *reader.Found, hosts []string, touched ...reader.Value) *reader.Found {
	b.t.Helper()
	defer func() { b.options.Earlier = nil }()
	var places []ib.Place
	for _, host := range hosts {
		places = append(places, b.place(host))
	}
	b.options.Earlier = &reader.Earlier{
		Found: was, Only: append([]reader.Value{}, touched...), Moved: places, Touched: func(v reader.Value) bool { return slices.Contains(touched, v) },
	}
	return b.read()
}

// own has the bed declare other owners of hosts.
func (b *bed) own(owners map[string]proof.Owner) {
	b.options.Owner = func(at ib.Place, is reader.Identity) proof.Owner {
		if o, ok := owners[b.node(is.Node)]; ok && b.place(b.node(is.Node)) == at {
			return o
		}
		return b.owner(at, is)
	}
}

// TestMovedOwners has hosts be of another tenant, and reads nothing but what was touched.
func TestMovedOwners(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.issue()
	was := b.read()
	before := readertest.Facts(was)
	owners := map[string]proof.Owner{"h1": blue, "h2": red}
	b.own(owners)
	if got := b.moved(was, nil); got.Sent != 0 || readertest.Facts(got) != before {
		t.Errorf("%d requests were sent where no place is said to have another owner", got.Sent)
	}
	got := b.moved(was, []string{"h1", "h2", "h3"})
	b.same(got, b.read())
	if got.Sent != 0 || b.device(got, "h1").Ports[1].Owner != blue || readertest.Facts(was) != before {
		t.Errorf("%d requests were sent, and h1 is of %v", got.Sent, b.device(got, "h1").Ports[1].Owner)
	}
	again := b.moved(got, []string{"h1"}, b.port("h1", 1)[2])
	b.same(again, b.read())
	if again.Sent == 0 {
		t.Error("what was touched was not read")
	}
	maps.Copy(owners, map[string]proof.Owner{"h1": red, "h2": blue})
	b.same(b.moved(again, []string{"h1", "h2"}), b.read())
}

// TestMovedOwnersOfAliases walks the fabric where a GUID is of another owner now that a port has as an alias.
func TestMovedOwnersOfAliases(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.issue()
	b.alias("h1", 1, 0xB1)
	b.alias("h3", 1, 0xA1) // issued to none: it is of the holder
	was := b.read()
	b.own(map[string]proof.Owner{"h2": red})
	if got := b.moved(was, []string{"h2"}); got.Sent != 0 {
		t.Errorf("%d requests were sent where the owners of aliases are the same", got.Sent)
	}
	b.own(map[string]proof.Owner{"h3": blue})
	got := b.moved(was, []string{"h3"})
	b.same(got, b.read())
	if got.Sent < own {
		t.Errorf("the holder of an alias has another owner, and %d requests were sent", got.Sent)
	}
	b.own(map[string]proof.Owner{"h2": red})
	b.options.Alias = func(ib.GUID, proof.Owner) proof.Owner { return red }
	got = b.moved(was, []string{"h2"})
	b.same(got, b.read())
	if got.Sent < own {
		t.Errorf("an alias is of another owner, and %d requests were sent", got.Sent)
	}
	b.options.Alias = nil
	if got = b.moved(was, []string{"h2"}); got.Sent < own {
		t.Errorf("aliases are not read any more, and %d requests were sent", got.Sent)
	}
}
