package owed

import (
	"testing"

	"portcullis/fabricsm/sm"
)

// TestKey: the keys of stored facts stay what they are.
func TestKey(t *testing.T) {
	for _, c := range []struct {
		fact sm.Fact
		want string
	}{
		{sm.Fact{Kind: sm.FactLID, GUID: 0x2c90300a1b2c1}, "lid/0x0002c90300a1b2c1"},
		{sm.Fact{Kind: sm.FactBehind, GUID: 0x10, Port: 254}, "behind/0x0000000000000010/254"},
		{sm.Fact{Kind: sm.FactHealth, Name: "a/b", GUID: 1, Port: 2}, "health/a/b"},
		{sm.Fact{Kind: sm.FactReleased}, "keys-released/0x0000000000000000"},
	} {
		if got := Key(&c.fact); got != c.want {
			t.Errorf("%v, want %v", got, c.want)
		}
	}
}

func BenchmarkKey(b *testing.B) {
	f := sm.Fact{Kind: sm.FactBehind, GUID: 0x2c90300a1b2c1}
	for b.Loop() {
		_ = Key(&f)
		f.Port++
	}
}
