//go:build vm

package cards_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"portcullis/fabricsm/sim/softhcaserver"
	"portcullis/packaging/vm/inside/adapter"
	"portcullis/packaging/vm/inside/guest"
	"portcullis/packaging/vm/inside/softpci"
)

// An InfiniBand device is on the function of its card: sysfs, the tools and the agent go from one to the other, and the
// device goes away with the driver of the function.
func TestParent(t *testing.T) {
	b := plug(t, true)
	f := adapter.NewFabric(t)
	onCard := softhcaserver.Options{Node: "h1", Name: "mlx5_0", PCI: b.address()}
	adapter.Registered(t, f.Begin(t, onCard))

	// udev names the device by the place of the function.
	name := ""
	guest.Eventually(t, 10*time.Second, "the function has no device that udev named", func() bool {
		names, err := os.ReadDir("/sys/bus/pci/devices/" + b.address() + "/infiniband")
		if err != nil || len(names) != 1 {
			return false
		}
		name = names[0].Name()
		return strings.HasPrefix(name, "ibP")
	})
	parent, err := filepath.EvalSymlinks(filepath.Join(adapter.Sysfs(name), "device"))
	if err != nil || filepath.Base(parent) != b.address() {
		t.Errorf("the device's parent is %s, %v; want function %s", parent, err, b.address())
	}
	b.says(b.older("mstflint", "q"), 0, psid)
	if h, _ := b.facts(); h.Adapters[0].Name != name {
		t.Errorf("the agent calls the adapter %q, want %s", h.Adapters[0].Name, name)
	}

	await(b, softpci.Bound)
	write(t, "/sys/bus/pci/devices/"+b.address()+"/remove")
	await(b, softpci.Unbound)
	if guest.Exists(adapter.Sysfs(name)) {
		t.Error("the device is still there without its function")
	}
	// No function is at that address now.
	nowhere := f.Begin(t, onCard)
	select {
	case <-nowhere.Done():
		t.Errorf("%v", nowhere.Wait())
	case <-time.After(200 * time.Millisecond):
	}
	if err := nowhere.Registered(t.Context()); err == nil {
		t.Error("a device was registered on a function that is not there")
	}
	write(t, "/sys/bus/pci/rescan")
	await(b, softpci.Bound)
}
