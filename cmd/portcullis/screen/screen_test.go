package screen

import (
	"slices"
	"testing"
)

// TestPaintLeavesNothingBehind: every line is erased to its end, and the rest
// of the screen, too.
func TestPaintLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	got := paint([]Line{{Good, "a"}, {Normal, "b"}})
	if want := "\x1b[H\x1b[32ma\x1b[0m\x1b[K\r\nb\x1b[K\x1b[J"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestFit(t *testing.T) {
	t.Parallel()
	lines := func() []Line { return []Line{{Bold, "a long line   "}, {Bad, "evil\x1b[2J"}, {Normal, "last"}} }
	if got, want := Fit(lines(), 8, 2), []Line{{Bold, "a long …"}, {Bad, "evil\uFFFD[2J"}}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := Fit(lines(), 80, 0); len(got) != 3 || got[0].Text != "a long line" {
		t.Errorf("got %q", got)
	}
}

func TestSection(t *testing.T) {
	t.Parallel()
	lines := []Line{{Text: "1"}, {Text: "2"}, {Text: "3"}}
	for room, want := range map[int]int{2: 0, 3: 3, 4: 4, 5: 5, 9: 5} {
		if got := Section("TITLE", lines, room); len(got) != want || want > 0 && got[1] != (Line{Bold, "TITLE"}) {
			t.Errorf("with room for %d: %q", room, got)
		}
	}
	if got := Section("TITLE", nil, 9); got != nil {
		t.Errorf("of nothing: %q", got)
	}
}
