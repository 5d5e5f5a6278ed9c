package hca_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"portcullis/agent/hca"
	"portcullis/agent/hca/register"
	"portcullis/agent/hca/sysfs"
)

// TestTwoDriveOneCard checks that one process drives an adapter at a time. A second one is refused until the first ends,
// also after the first opened the adapter again, as after a reset. Reading goes on.
func TestTwoDriveOneCard(t *testing.T) {
	t.Parallel()
	tree := pciHost(t)
	w := hca.Ways{Sysfs: tree, FWCTL: serve(t, newCard(t), guid)}
	first, err := hca.Reach(t.Context(), w, guid)
	must(t, err)
	refused := func(when string) {
		t.Helper()
		if r, err := hca.Reach(t.Context(), w, guid); !errors.Is(err, sysfs.ErrClaimed) {
			t.Errorf("%s: a second one drives it: %v, %v", when, r, err)
		}
	}
	refused("while it is open")
	must(t, first.Reopen(t.Context(), w))
	refused("after it was opened anew")
	if _, err := hca.Read(t.Context(), first, register.MGIR{}); err != nil {
		t.Errorf("the first one: %v", err)
	}
	if h, err := hca.ReadHost(t.Context(), w); err != nil || len(h.Devices) == 0 {
		t.Errorf("reading: %+v, %v", h, err)
	}
	must(t, first.Close())
	second, err := hca.Reach(t.Context(), w, guid)
	must(t, err)
	refused("while the second has it")
	must(t, second.Close())
}

// TestClaimAfterReset checks the claim when a reset removes the function's directory and creates it again: the claim is
// then to the new one.
func TestClaimAfterReset(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	function := filepath.Join(root, "bus/pci/devices/0000:17:00.0")
	must(t, os.MkdirAll(function, 0o755))
	tree, err := sysfs.Open(root)
	must(t, err)
	defer tree.Close()
	const at = sysfs.Address("0000:17:00.0")
	first, err := tree.Claim(at, nil)
	must(t, err)
	if same, err := tree.Claim(at, first); err != nil || same != first {
		t.Errorf("the same directory: %v, %v", same, err)
	}
	must(t, os.Rename(function, function+".gone"))
	if _, err := tree.Claim(at, first); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("without it: %v", err)
	}
	must(t, os.Mkdir(function, 0o755))
	anew, err := tree.Claim(at, first)
	must(t, err)
	if _, err := tree.Claim(at, nil); !errors.Is(err, sysfs.ErrClaimed) {
		t.Errorf("somebody else claims the new one: %v", err)
	}
	anew.Close()
	other, err := tree.Claim(at, nil)
	must(t, err)
	other.Close()
}
