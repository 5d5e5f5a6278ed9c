package registry_test

import (
	"testing"

	"portcullis/fabricsm/sa/portindex"
	"portcullis/fabricsm/sa/registry"
)

type mood uint8

func (m mood) String() string { return registry.Word([]string{"none", "bad"}, "mood", m) }

func TestWords(t *testing.T) {
	for _, tt := range []struct {
		who  portindex.Asker
		why  mood
		want string
	}{
		{portindex.Asker{}, 0, ""},
		{portindex.Asker{}, 1, ": bad"},
		{portindex.Asker{LID: 7}, 0, ", asked by LID 7"},
		{portindex.Asker{LID: 7}, 2, ", asked by LID 7: mood(2)"},
	} {
		if got := registry.Cause(&tt.who, tt.why); got != tt.want {
			t.Errorf("%q, want %q", got, tt.want)
		}
	}
}

func TestWalk(t *testing.T) {
	var w registry.Walk
	even := func(dst []byte) bool { // of five things, every other one has a record
		dst[0] = byte(w.Steps())
		w.Done = w.Steps() == 5
		return !w.Done && w.Steps()%2 == 0
	}
	buf := make([]byte, 3)
	for i, want := range []struct {
		n    int
		done bool
	}{{0, false}, {2, false}, {0, false}, {2, false}, {0, true}, {0, true}} {
		if n, done := w.Take(buf, 2, 1, even); n != want.n || done != want.done {
			t.Errorf("step %d: %d, %v", i, n, done)
		}
	}
	if w.Steps() != 5 {
		t.Errorf("%d steps of 5", w.Steps())
	}
	w = registry.Walk{}
	if n, done := w.Take(buf[:1], 2, 9, even); n != 0 || !done || w.Steps() != 0 {
		t.Errorf("short buffer: %d, %v, %d steps", n, done, w.Steps())
	}
}
