package smrole

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// TestHurryEnds: an instance hurries from the begin until it ends, or for some time, and says each once.
func TestHurryEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var told []bool
		h := hurry{tell: func(on bool) { told = append(told, on) }}
		said := func(when string, want ...bool) {
			t.Helper()
			if !slices.Equal(told, want) {
				t.Errorf("%s: said %v, want %v", when, told, want)
			}
			told = nil
		}
		h.end()
		said("before the begin")
		h.begin()
		h.begin()
		said("after the begin", true)
		h.end()
		h.end()
		said("once it ended", false)
		h.begin()
		<-time.After(hurryFor + time.Second)
		synctest.Wait()
		said("after some time", true, false)
		h.end()
		said("later")
	})
}

// TestNothingDependsOnHurry: a role without Options.Hurry leads as one with it.
func TestNothingDependsOnHurry(t *testing.T) {
	t.Parallel()
	var h hurry
	h.begin()
	h.end()
}
