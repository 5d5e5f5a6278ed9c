package devicekeys

import (
	"testing"
	"time"

	"portcullis/fabricsm/keys"
)

// TestSAKeyIsDrawn: where keys are sealed an SA_Key is drawn, and nowhere else.
func TestSAKeyIsDrawn(t *testing.T) {
	t.Parallel()
	var none *Ring
	if none.SAKeys() != nil {
		t.Error("without a root SA_Keys are drawn")
	}
	source := (&Ring{}).SAKeys()
	a, errA := source.Make(keys.SAKey, 0, 1, time.Unix(0, 0))
	b, errB := source.Make(keys.SAKey, 0, 2, time.Unix(0, 0))
	if errA != nil || errB != nil || a.Key.Equal(b.Key) || keys.Check(a.Key) != nil {
		t.Errorf("drawn: %v, %v", errA, errB)
	}
}
