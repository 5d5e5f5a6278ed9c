package image

import (
	"testing"

	"portcullis/firmware/imagetest"
)

// TestChecksums compares both checksums with the value that is known of one and
// with the slow form of both.
func TestChecksums(t *testing.T) {
	if got := hardSum([]byte{0, 0, 1, 0, 0, 0}); got != 0x75F8 {
		t.Errorf("the checksum of pointer 0x100 is 0x%04x, want 0x75f8", got)
	}
	b := make([]byte, 0, 512)
	for i := range 512 {
		b = append(b, byte(i*i>>3))
	}
	for n := 0; n <= len(b); n += 4 {
		if got, want := softSum(b[:n]), imagetest.Soft(b[:n]); got != want {
			t.Fatalf("over %d bytes it is 0x%04x, want 0x%04x", n, got, want)
		}
	}
	for n := range len(b) - 6 {
		if got, want := hardSum(b[n:n+6]), imagetest.Hard(b[n:n+6]); got != want {
			t.Fatalf("of a pointer at %d it is 0x%04x, want 0x%04x", n, got, want)
		}
	}
}
