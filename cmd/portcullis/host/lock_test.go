package host

import (
	"testing"

	v1 "portcullis/api/v1"
)

// TestBoundTo checks that the binding of a file is shown completely, with the reason why the file is not bound to more.
func TestBoundTo(t *testing.T) {
	for _, tt := range []struct {
		b    v1.LockBinding
		want string
	}{
		{v1.LockBinding{To: v1.BoundChallenge, PSID: "MT_1", Device: "b83fd2123400", Challenge: "11"}, "the challenge 11 of device b83fd2123400, board MT_1"},
		{v1.LockBinding{To: v1.BoundDevice, Device: "b83fd2123400", Less: "no MTCQ\x1b"}, `the device b83fd2123400, not more, because: no MTCQ�`},
		{v1.LockBinding{To: v1.BoundBoard, PSID: "MT_1"}, "the board MT_1"},
	} {
		if got := boundTo(&tt.b); got != tt.want {
			t.Errorf("%+v: %q, want %q", tt.b, got, tt.want)
		}
	}
}
