package main

import (
	"crypto/x509"
	"encoding/pem"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"portcullis/agent/hca/fwctl"
	"portcullis/agent/hca/register"
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/sim/netlist"
	"portcullis/fabricsm/transport/ibsim/ibsimlab"
	"portcullis/fabricsm/transport/ibsim/ibsimtest"
	"portcullis/firmware/nvconfig"
	"portcullis/firmware/nvconfig/nvconfigtest"
)

// host is a host with its adapter's card, as the agent reaches it.
type host struct {
	*testing.T
	card *fwctl.Device
}

// set writes a register.
func (h host) set(v register.Layout, data []byte, encode error) error {
	h.Helper()
	if encode != nil {
		h.Fatal(encode)
	}
	_, err := h.card.Access(h.Context(), v.ID(), register.Write, data)
	return err
}

func (h host) mlock(m register.MLOCK) error {
	h.Helper()
	data, err := register.Encode(m)
	return h.set(m, data, err)
}

// reset has the driver take the PCIe link down and up.
func (h host) reset() {
	h.Helper()
	m := register.MFRL{Trigger: register.PCIeLink, Sync: 1}
	data, err := register.Encode(m)
	if err := h.set(m, data, err); err != nil {
		h.Fatal(err)
	}
}

// firewall writes SM_DISABLE for the next boot.
func (h host) firewall(value byte) error {
	h.Helper()
	item := nvconfig.Item{Header: nvconfig.Header{Address: nvconfig.GlobalItem(290)}, Data: []byte{value, 0, 0, 0}}
	_, err := h.card.Access(h.Context(), register.IDMNVDA, register.Write, item.Append(nil))
	return err
}

func (h host) hasSMI(want bool) {
	h.Helper()
	v, err := h.card.VportContext(h.Context(), 1)
	if err != nil || v.HasSMI != want {
		h.Errorf("the firmware says has_smi %v, %v; want %v", v.HasSMI, err, want)
	}
}

// nodes reads back the netlist that a simulator was given.
func nodes(t *testing.T, file string) *netlist.Netlist {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	l, err := netlist.Parse(file, text)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// publicKey writes the public half of a test key as openssl does.
func publicKey(t *testing.T, bits int) string {
	t.Helper()
	der, err := x509.MarshalPKIXPublicKey(nvconfigtest.Pinned(t, bits).Public)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "key.pem")
	if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestCardsFirewall checks that the fabric obeys the registers of a card: SM_DISABLE keeps smpquery of that host, and of no
// other, from the fabric. A host without the key of the lock does not get it back.
func TestCardsFirewall(t *testing.T) {
	ibsimtest.Need(t, "smpquery")
	file, socket, dir := netlistFile(t, "single", "--hosts", "3"), socketName(t), t.TempDir()
	start(t, file, socket, "--cards", dir, "--card-key", nvconfigtest.KeyUUID.String()+"="+publicKey(t, 4096))
	d, err := fwctl.Dial(t.Context(), filepath.Join(dir, nodes(t, file).Find("h1").GUID.String()))
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	h := host{t, d}
	diags := ibsimlab.Client{Socket: socket, Dir: t.TempDir()}
	reaches := func(step string, want bool) {
		t.Helper()
		for node, want := range map[string]bool{"h1": want, "h2": true} {
			for _, route := range []string{"0", "0,1"} {
				if _, err := diags.Diag(t.Context(), node, "smpquery", "-D", "nodeinfo", route); (err == nil) != want {
					t.Errorf("%s: smpquery of %s along %s: %v, want it answered: %v", step, node, route, err, want)
				}
			}
		}
	}
	reaches("at first", true)
	h.hasSMI(true)
	if err := h.firewall(0x80); err != nil {
		t.Fatal(err)
	}
	reaches("before the reset", true)
	h.reset()
	reaches("after the reset", false)
	h.hasSMI(false)
	key := ib.NewLockKey(0x1122334455667788)
	if err := h.mlock(register.MLOCK{State: register.Locked, Key: key}); err != nil {
		t.Fatal(err)
	}
	if err := h.firewall(0); !errors.Is(err, register.ErrNotSupported) {
		t.Errorf("a host takes its firewall down: %v", err)
	}
	if err := h.mlock(register.MLOCK{Key: ib.NewLockKey(1)}); !errors.Is(err, register.ErrBadParameter) {
		t.Errorf("a host opens the lock with another key: %v", err)
	}
	h.reset()
	reaches("locked", false)
	if err := h.mlock(register.MLOCK{Key: key}); err != nil {
		t.Fatal(err)
	}
	if err := h.firewall(0); err != nil {
		t.Fatal(err)
	}
	reaches("unlocked", false)
	h.reset()
	reaches("taken down", true)
	h.hasSMI(true)
}

// TestCardsIdentity checks that cards have the identity in the kernel's files, and that sockets that a killed simulator
// left are taken over.
func TestCardsIdentity(t *testing.T) {
	file, dir := netlistFile(t, "single", "--hosts", "2"), t.TempDir()
	kill := start(t, file, socketName(t), "--cards", dir)
	kill()
	start(t, file, socketName(t), "--cards", dir, "--psid", "TST0000000001", "--firmware", "28.44.1036")
	all := nodes(t, file).Nodes
	for i := range all {
		node := &all[i]
		if node.Type != ib.NodeCA {
			continue
		}
		name := node.Name
		d, err := fwctl.Dial(t.Context(), filepath.Join(dir, node.GUID.String()))
		if err != nil {
			t.Fatal(err)
		}
		defer d.Close()
		b, err := d.Access(t.Context(), register.IDMGIR, register.Read, make([]byte, register.MGIR{}.Size()))
		if err != nil {
			t.Fatal(err)
		}
		m, err := register.Decode[register.MGIR](b)
		if err != nil || register.Text(m.Firmware.PSID[:]) != "TST0000000001" || m.Firmware.Minor != 44 || m.Firmware.SubMinor != 1036 {
			t.Errorf("%s: %+v, %v", name, m.Firmware, err)
		}
		v, err := d.VportContext(t.Context(), 1)
		if err != nil || v.NodeGUID != node.GUID || v.PortGUID != node.PortGUID(1) || v.PortState != uint8(ib.PortInit) {
			t.Errorf("%s: %+v, %v", name, v, err)
		}
		keys, err := d.PKeys(t.Context(), 1)
		if err != nil || keys[0] != ib.DefaultPKeyFull {
			t.Errorf("%s: P_Keys %v, %v", name, keys, err)
		}
	}
}
