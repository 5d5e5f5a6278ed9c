// Package hosttree writes the kernel's files about the HCAs of a simulated host (sysfs and a little of procfs). So a
// program that reads the adapters of a host can run on a machine without any.
package hosttree

import (
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/sim/netlist"
)

// Defaults for values that are not in a netlist: those of a ConnectX-7.
const (
	DefaultFirmware = "28.43.1014"
	DefaultPSID     = "MT_0000000838"
	DefaultType     = "MT4129"
)

// Host describes the tree.
type Host struct {
	Name     string          // of the host; it makes the node descriptions and serial numbers
	HCAs     []*netlist.Node // mlx5_0, mlx5_1, ... in this order
	Firmware string          // empty: DefaultFirmware
	PSID     string          // empty: DefaultPSID
	BootID   string          // lower-case UUID; empty: a new random one, as after a reboot
}

// Write writes the tree below dir, which is made if it is not there: sysfs in
// dir/sys, procfs in dir/proc. An HCA directory of an earlier Write must not be
// there.
func Write(dir string, h Host) error {
	if len(h.HCAs) == 0 {
		return errors.New("write host tree: no HCA given")
	}
	if h.Firmware == "" {
		h.Firmware = DefaultFirmware
	}
	if h.PSID == "" {
		h.PSID = DefaultPSID
	}
	if h.BootID == "" {
		h.BootID = newUUID()
	}
	devices := filepath.Join(dir, "sys/class/infiniband")
	if _, err := os.Lstat(devices); err == nil {
		return fmt.Errorf("write host tree: %s exists: remove it, or choose another directory", devices)
	}
	files := h.files()
	for i, n := range h.HCAs {
		if n.Type != ib.NodeCA {
			return fmt.Errorf("write host tree: node %q is a %v, want an HCA", n.Name, n.Type)
		}
		h.device(files, fmt.Sprintf("sys/class/infiniband/mlx5_%d/", i), i, n)
	}
	return write(dir, files)
}

// write makes the files; each ends with a newline, as the kernel's do.
func write(dir string, files map[string]string) error {
	for name, value := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return fmt.Errorf("write host tree: %w", err)
		}
		if err := os.WriteFile(path, []byte(value+"\n"), 0o644); err != nil {
			return fmt.Errorf("write host tree: %w", err)
		}
	}
	return nil
}

// files are those about the machine.
func (h *Host) files() map[string]string {
	serial := fmt.Sprintf("SIM%012X", uint64(h.HCAs[0].GUID)&(1<<48-1))
	guid := uint64(h.HCAs[0].GUID)
	uuid := fmt.Sprintf("%08x-%04x-4000-8000-%012x", guid>>32, guid>>16&0xFFFF, guid&(1<<48-1))
	return map[string]string{
		"sys/class/dmi/id/board_vendor":   "Portcullis",
		"sys/class/dmi/id/board_name":     "Simulated board",
		"sys/class/dmi/id/board_serial":   serial,
		"sys/class/dmi/id/sys_vendor":     "Portcullis",
		"sys/class/dmi/id/product_name":   "Simulated host",
		"sys/class/dmi/id/product_serial": serial,
		"sys/class/dmi/id/product_uuid":   uuid,
		"proc/sys/kernel/random/boot_id":  h.BootID,
	}
}

func (h *Host) device(files map[string]string, dir string, index int, n *netlist.Node) {
	for name, value := range map[string]string{
		"node_guid":      colons(n.GUID),
		"sys_image_guid": colons(n.SystemImageGUID),
		"node_type":      "1: CA",
		"node_desc":      fmt.Sprintf("%s mlx5_%d", h.Name, index),
		"fw_ver":         h.Firmware,
		"board_id":       h.PSID,
		"hca_type":       DefaultType,
		"hw_rev":         "0",
	} {
		files[dir+name] = value
	}
	for num := 1; num < len(n.Ports); num++ {
		devicePort(files, fmt.Sprintf("%sports/%d/", dir, num), n, ib.PortNum(num))
	}
}

// pkeyEntries is the number of P_Key table entries shown.
const pkeyEntries = 64

func devicePort(files map[string]string, dir string, n *netlist.Node, num ib.PortNum) {
	p := &n.Ports[num]
	state, phys := "1: DOWN", "2: Polling"
	if p.Peer != "" {
		state, phys = "2: INIT", "5: LinkUp"
	}
	for name, value := range map[string]string{
		"gids/0":         colons(ib.GUID(ib.DefaultPrefix)) + ":" + colons(n.PortGUID(num)),
		"lid":            fmt.Sprintf("0x%x", uint16(p.LID)),
		"lid_mask_count": fmt.Sprintf("%d", p.LMC),
		"sm_lid":         "0x0",
		"sm_sl":          "0",
		"state":          state,
		"phys_state":     phys,
		"rate":           rate(p.Link),
		"link_layer":     "InfiniBand",
		"cap_mask":       "0xa759e848",
	} {
		files[dir+name] = value
	}
	for i := range pkeyEntries {
		key := ib.PKey(0)
		if i == 0 {
			key = ib.DefaultPKeyFull
		}
		files[fmt.Sprintf("%spkeys/%d", dir, i)] = key.String()
	}
}

// colons is the notation of GUIDs in sysfs.
func colons(g ib.GUID) string {
	v := uint64(g)
	return fmt.Sprintf("%04x:%04x:%04x:%04x", v>>48, v>>32&0xFFFF, v>>16&0xFFFF, v&0xFFFF)
}

// rate returns the kernel's text for a link: gigabits a second, width, speed.
func rate(l netlist.Link) string {
	lanes, name, _ := strings.Cut(l.String(), "x")
	perLane := map[string]float64{"SDR": 2.5, "DDR": 5, "QDR": 10, "FDR10": 10, "FDR": 14, "EDR": 25, "HDR": 50, "NDR": 100, "XDR": 200}
	count := map[string]float64{"1": 1, "2": 2, "4": 4, "8": 8, "12": 12}
	return fmt.Sprintf("%g Gb/sec (%sX %s)", perLane[name]*count[lanes], lanes, name)
}

// newUUID draws a random UUID of version 4.
func newUUID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	b[6], b[8] = b[6]&0x0F|0x40, b[8]&0x3F|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}
