//go:build vm

package umad_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"portcullis/packaging/vm/inside/guest"
)

// TestService is items 5 and 6 of step 3 with the service, which attaches again by itself.
func TestService(t *testing.T) {
	f := newFabric(t, ourNode, tester)
	dir := t.TempDir()
	etc := filepath.Join(dir, "etc")
	guest.Do(t, "portcullisd", "init", "--dir", etc, "--names", "127.0.0.1", "--listen", "127.0.0.1:8443",
		"--state-dir", filepath.Join(dir, "state"), "--fabric-port", "umad:"+ours+":1")
	run := func() *daemon {
		d := program(t, "portcullisd", "--config", filepath.Join(etc, "portcullisd.yaml"))
		d.says(0, "the fabric is settled")
		return d
	}
	d := run()
	t.Run("killed", func(t *testing.T) {
		d.signal(os.Kill)
		if sm(t, ours) {
			t.Error("the kernel did not clear IsSM")
		}
		d = run()
		if said := d.output(); strings.Contains(said, "out of reach") {
			t.Errorf("it did not attach at once:\n%s", said)
		}
		guest.Eventually(t, patience, "IsSM is not set again", func() bool { return sm(t, ours) })
	})
	t.Run("adapter pulled", func(t *testing.T) {
		from, begun := d.now(), time.Now()
		f.pull(ourNode)
		said := d.says(from, "the fabric is out of reach; trying again")
		t.Logf("it said so %v after the pull", time.Since(begun))
		if !strings.Contains(said, "mlx5_0 port 1 went away") {
			t.Errorf("it does not say that the port went away:\n%s", said)
		}
		from = d.now()
		f.plug(ourNode)
		begun = time.Now()
		d.says(from, "the fabric is settled")
		t.Logf("it attached and settled %v after the adapter was back", time.Since(begun))
		guest.Eventually(t, patience, "IsSM is not set again", func() bool { return sm(t, ours) })
	})
	t.Run("module unloaded", func(t *testing.T) {
		from := d.now()
		// The module is in use while the service has its devices open.
		if e := guest.Try(t, "rmmod", "ib_umad"); e.Code == 0 {
			t.Error("the kernel unloads ib_umad under the service")
		}
		if strings.Contains(d.output()[from:], "out of reach") {
			t.Error("the attempt to unload the module disturbed the service")
		}
	})
}
