package ibsimlab_test

import (
	"testing"

	"portcullis/fabricsm/transport/ibsim/ibsimlab"
)

func TestCameUp(t *testing.T) {
	const up, exit = "14:00:21 [DB] 0x02 -> SUBNET UP\n", "14:00:21 [DE] 0x80 -> Exiting SM\n"
	const failed = "14:00:21 [DE] 0x01 -> clear_madw: ERR 5401: evicting entry\n"
	for log, want := range map[string]bool{
		"": false, up: true, up + exit: true, up + exit + failed: true,
		up + failed + exit: false, failed + up: false, exit + up: false,
	} {
		if got := ibsimlab.CameUp([]byte(log)); got != want {
			t.Errorf("%q: %v, want %v", log, got, want)
		}
	}
}
