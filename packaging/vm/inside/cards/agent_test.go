//go:build vm

package cards_test

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"portcullis/agent/hca/fwctl"
	"portcullis/agent/hca/register"
	"portcullis/agent/lock"
	"portcullis/attest"
	"portcullis/fabricsm/ib"
	"portcullis/firmware/nvconfig/nvconfigtest"
	"portcullis/firmware/nvconfig/profile"
	"portcullis/packaging/vm/inside/guest"
	"portcullis/packaging/vm/inside/softpci"
)

// noFWCTL leaves the agent the vendor's tools alone.
var noFWCTL = []string{"--fwctl", "/nonexistent"}

// Every fact that both ways show is the same.
func TestAgentBothWays(t *testing.T) {
	b := plug(t, true)
	_, kernel := b.facts()
	_, tools := b.facts(noFWCTL...)
	both := 0
	for name, one := range kernel {
		other := tools[name]
		if one.Reason != "" || other.Reason != "" {
			continue
		}
		both++
		if one.Value != other.Value {
			t.Errorf("%s: %q by %v, %q by %v", name, one.Value, one.From, other.Value, other.From)
		}
	}
	for _, name := range []string{"life_cycle", "secure_boot", "mlock", "base_guid"} {
		if !slices.Contains(kernel[name].From, "fwctl") {
			t.Errorf("%s by fwctl: %+v", name, kernel[name])
		}
		if tools[name].Reason != "" || slices.Contains(tools[name].From, "fwctl") {
			t.Errorf("%s by the tools: %+v", name, tools[name])
		}
	}
	t.Logf("%d facts are the same", both)
}

// TestCage checks that in the sandbox of the agent's units fwctl works, and that the vendor's tools work only with the
// drop-in.
func TestCage(t *testing.T) {
	b := plug(t, true)
	if out := caged(b, ""); !strings.Contains(out, b.address()+" by "+nodeOf(b)) || !strings.Contains(out, "they lack") {
		t.Errorf("the doctor, with a node of fwctl:\n%s", out)
	}
	tools, err := os.ReadFile("/usr/share/portcullis/vendor-tools.conf")
	if err != nil {
		t.Fatal(err)
	}
	query := "[Service]\nExecStart=\nExecStart=/usr/bin/mstflint -d " + b.address() + " q\n"
	if out := caged(b, query); strings.Contains(out, psid) {
		t.Errorf("mstflint without the drop-in reads the card:\n%s", out)
	}
	if out := caged(b, string(tools)+"\n"+query); !strings.Contains(out, psid) {
		t.Errorf("mstflint with the drop-in does not read the card:\n%s", out)
	}
}

// caged runs the doctor's unit, which has the agent's sandbox, with a drop-in, and returns its output in the journal.
func caged(b bench, dropIn string) string {
	b.Helper()
	const unit, dir = "portcullis-agent-doctor.service", "/etc/systemd/system/portcullis-agent-doctor.service.d"
	if err := os.MkdirAll(dir, 0o755); err != nil {
		b.Fatal(err)
	}
	if err := os.WriteFile(dir+"/test.conf", []byte(dropIn), 0o644); err != nil {
		b.Fatal(err)
	}
	guest.Do(b.T, "systemctl", "daemon-reload")
	_, before, found := strings.Cut(guest.Do(b.T, "journalctl", "-q", "-n", "1", "--show-cursor"), "-- cursor: ")
	if !found {
		b.Fatal("the journal has no end")
	}
	guest.Try(b.T, "systemctl", "restart", unit)
	guest.Do(b.T, "journalctl", "--sync")
	// Not by its invocation: the journal does not learn that of a program that ended before its output was read.
	return guest.Do(b.T, "journalctl", "-q", "-o", "cat", "-u", unit, "--after-cursor="+strings.TrimSpace(before))
}

// The agent's own lock, by ioctls of a device node: settings of a signed file, a reset, MLOCK; and open again.
func TestLock(t *testing.T) {
	b := plug(t, true)
	device, err := fwctl.Open("/dev/fwctl/" + nodeOf(b))
	if err != nil {
		t.Fatal(err)
	}
	defer device.Close()
	a := &lock.Adapter{
		Name: b.address(), Base: node, PSID: psid, Ports: []ib.PortNum{1}, Access: device,
		Reset: func(context.Context) error { b.card.Reset(); return nil },
		Probe: func(context.Context, ib.PortNum) (attest.Firewall, error) {
			if b.card.SMPFirewall() {
				return attest.FirewallBlocks, nil
			}
			return attest.FirewallOpen, nil
		},
		Wait: func(ctx context.Context, d time.Duration) error {
			select {
			case <-time.After(d):
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		},
	}
	key := lock.Key{Epoch: 1, Key: ib.NewLockKey(0x1001)}
	order := &lock.Order{Base: node, Profile: profile.Default(), Lock: key}
	pinned := nvconfigtest.Pinned(t, 2048)
	order.File, _, err = order.Profile.File(profile.Order{
		Card: a.Settings(t.Context(), order.Profile), Version: 7, Time: time.Date(2026, 11, 22, 0, 0, 0, 0, time.UTC),
		Key: pinned.UUID, Signer: nvconfigtest.Key(t, 2048),
	})
	if err != nil {
		t.Fatal(err)
	}
	r, err := a.Lock(t.Context(), order)
	if err != nil || r.Lock.MLOCK != attest.MLOCKLocked || !b.card.SMPFirewall() || b.card.LockState() != register.Locked {
		t.Fatalf("%+v, %v", r.Lock, err)
	}
	b.says(b.newest("mstflint", "q"), 1, "HW access is disabled on the device")
	if epoch, err := a.Unlock(t.Context(), []lock.Key{key}); err != nil || epoch != 1 {
		t.Errorf("epoch %d, %v", epoch, err)
	}
	b.says(b.newest("mstconfig", "-y", "set", "SM_DISABLE=0"), 3, "bad parameter")
}

// TestRemove checks that removing a function removes its node, also for a process that has it open, and that a rescan
// brings both back.
func TestRemove(t *testing.T) {
	b := plug(t, true)
	device, err := fwctl.Open("/dev/fwctl/" + nodeOf(b))
	if err != nil {
		t.Fatal(err)
	}
	defer device.Close()
	await(b, softpci.Bound)
	write(t, "/sys/bus/pci/devices/"+b.address()+"/remove")
	await(b, softpci.Unbound)
	if _, err := device.PKeys(t.Context(), 1); !errors.Is(err, unix.ENODEV) {
		t.Errorf("a node whose function was removed: %v", err)
	}
	write(t, "/sys/bus/pci/rescan")
	await(b, softpci.Bound)
	again, err := fwctl.Open("/dev/fwctl/" + nodeOf(b))
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	if _, err := again.VportContext(t.Context(), 1); err != nil {
		t.Error(err)
	}
}

func await(b bench, want softpci.Event) {
	b.Helper()
	select {
	case got := <-b.function.Events:
		if got != want {
			b.Fatalf("event %d, want %d", got, want)
		}
	case <-time.After(10 * time.Second):
		b.Fatalf("no event %d after 10 s", want)
	}
}

func write(t *testing.T, name string) {
	t.Helper()
	if err := os.WriteFile(name, []byte("1"), 0); err != nil {
		t.Fatal(err)
	}
}
