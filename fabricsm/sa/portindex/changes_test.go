package portindex_test

import (
	"slices"
	"testing"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/sa/portindex"
	"portcullis/fabricsm/topo/topotest"
)

// TestChangedSaysWhat: a book names exactly the differences from the book that it was made after, and from any other.
func TestChangedSaysWhat(t *testing.T) {
	var k topotest.Kit
	sw := k.Switch(1, 1, 8)
	for i := range 4 {
		k.LinkPorts(sw, i+1, k.Host(1), 1)
	}
	w := newWorld(&k)
	f := w.k.Fabric()
	for _, p := range f.EndPorts() {
		w.keys(f, p, 0x7fff)
	}
	first := w.see()
	port := f.PortByGUID(topotest.HostGUID(2) + 1)
	if port < 0 {
		t.Fatal("there is no third host")
	}
	w.keys(f, port, 0x7fff, 0x8001)
	second := w.see()
	third := w.see()
	changed := func(b, old *portindex.Book) []ib.GUID {
		return slices.Compact(slices.Sorted(b.Changed(old)))
	}
	one := []ib.GUID{f.Port(port).GUID}
	for _, tt := range []struct {
		name   string
		b, old *portindex.Book
		want   []ib.GUID
	}{
		{"one after the other", second, first, one},
		{"nothing in between", third, second, nil},
		{"over two", third, first, one},
		{"itself", third, third, nil},
	} {
		if got := changed(tt.b, tt.old); !slices.Equal(got, tt.want) {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
	}
	if got := changed(third, nil); len(got) != len(third.EndPorts()) || len(got) < 4 {
		t.Errorf("after none: %v", got)
	}
}
