//go:build hardware

package umad

import (
	"errors"
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// portEnv names the port to test on, as in "umad:mlx5_0:1".
const portEnv = "PORTCULLIS_UMAD_PORT"

// TestHardware runs on a machine with an HCA, where no subnet manager runs:
// docs/reference/hardware-test-plan.md. It changes nothing in the fabric but the IsSM bit
// of our own port, for a moment.
func TestHardware(t *testing.T) {
	o, err := ParseSpec(os.Getenv(portEnv))
	if err != nil {
		t.Fatalf("%s: %v", portEnv, err)
	}
	// A slow machine has time for its answers: a request that came back undelivered is one that was lost.
	o.AsSM, o.Timeout = true, 5*time.Second
	p, err := Dial(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	device, num := p.Device()
	t.Logf("Linux %s, %s port %d, GUID %v, header of %d bytes", linux{}.kernel(), device, num, p.GUID(), p.recv.form)

	t.Run("own node", func(t *testing.T) { checkOwnNode(t, p) })
	t.Run("burst", func(t *testing.T) {
		beside := o
		beside.AsSM = false
		p, err := Dial(t.Context(), beside)
		if err != nil {
			t.Fatal(err)
		}
		defer p.Close()
		checkBurst(t, p)
	})
	t.Run("silence", func(t *testing.T) {
		hasty := o
		hasty.AsSM, hasty.Timeout = false, 0
		p, err := Dial(t.Context(), hasty)
		if err != nil {
			t.Fatal(err)
		}
		defer p.Close()
		// The kernel counts in ticks of up to 10 ms, and the first one is a part of one. A slow machine may be late, but not as late as the
		// other ports' time.
		if took := checkSilence(t, p); took < DefaultTimeout-10*time.Millisecond || took >= o.Timeout {
			t.Errorf("came back after %v, want about %v", took, DefaultTimeout)
		}
	})
	t.Run("IsSM", func(t *testing.T) { checkIsSM(t, p) })
	t.Run("a second subnet manager", func(t *testing.T) {
		again, err := Dial(t.Context(), o)
		if err == nil {
			again.Close()
		}
		if e, ok := errors.AsType[*RegisterError](err); !ok || !errors.Is(e, unix.EINVAL) {
			t.Errorf("error %v", err)
		}
	})
	t.Run("a diagnostic beside it", func(t *testing.T) {
		o := o
		o.AsSM = false
		beside, err := Dial(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		defer beside.Close()
		checkOwnNode(t, beside)
		if _, ok := errors.AsType[*TakenError](beside.SetIsSM(true)); !ok {
			t.Error("the IsSM bit was set twice")
		}
	})
	t.Run("subnet administration", func(t *testing.T) { checkLane(t, p) })
	t.Run("IsSM ends with the port", func(t *testing.T) {
		if err := p.Close(); err != nil {
			t.Fatal(err)
		}
		again, err := Dial(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		defer again.Close()
		if isSM(t, again) {
			t.Error("the bit is still set")
		}
	})
}
