package removals

import (
	"strings"
	"testing"
)

// TestStands: an answer says that an order is carried out only where this instance may write
// to the fabric, and that it is kept only where the journal took it.
func TestStands(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		durable, acts bool
		want, not     string
	}{
		{true, true, "is carried out in the fabric; it is in the journal", "waits"},
		{true, false, "waits, since this instance may not write", "is carried out in the fabric"},
		{false, true, "order it again if the process ends", "in the journal of"},
		{false, false, "waits, since this instance may not write", "is carried out in the fabric"},
	} {
		got := stands(tt.durable, tt.acts)
		if !strings.Contains(got, tt.want) || strings.Contains(got, tt.not) {
			t.Errorf("in the journal %v, may write %v: %q", tt.durable, tt.acts, got)
		}
	}
}
