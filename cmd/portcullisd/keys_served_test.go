package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"portcullis/api/client"
	v1 "portcullis/api/v1"
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/sim"
	"portcullis/fabricsm/sim/netlist"
	"portcullis/fabricsm/sim/simtest"
	"portcullis/fabricsm/transport/ibsim/ibsimlab"
)

// keyFabric is a simulated fabric that enforces M_Keys, on a socket of ibsim's.
type keyFabric struct {
	*sim.Fabric
	list   *netlist.Netlist
	client ibsimlab.Client
}

func servedKeyFabric(t *testing.T, device sim.Device) *keyFabric {
	t.Helper()
	l, err := netlist.FatTree2(netlist.Shape{Hosts: 4, Radix: 4})
	if err != nil {
		t.Fatal(err)
	}
	f := &keyFabric{Fabric: sim.NewWith(l, sim.Options{Device: device}), list: l}
	f.client = simtest.Serve(t, f.Fabric)
	return f
}

// machine is a host of the fabric, at its place, with a TPM.
func (f *keyFabric) machine(t *testing.T, vendor, name string) *machine {
	t.Helper()
	n := f.list.Find(name)
	place := ib.Place{Switch: f.list.Find(n.Ports[1].Peer).GUID, Port: n.Ports[1].PeerPort}
	return newMachine(t, vendor, &machine{id: name, nodeGUID: n.GUID, place: place.String()})
}

// keyed is an end port with the key that it holds.
type keyedPort struct {
	at    string
	guid  ib.GUID
	key   uint64
	level uint8
	state ib.PortState
}

// endPorts lists all end ports that have a cable.
func (f *keyFabric) endPorts() (out []keyedPort) {
	add := func(n *netlist.Node, num ib.PortNum) {
		pi := f.PortInfo(n.Name, num)
		out = append(out, keyedPort{
			at: fmt.Sprintf("%s/%d", n.Name, num), guid: n.PortGUID(num), key: pi.MKey.Reveal(), level: pi.MKeyProtectBits, state: pi.PortState,
		})
	}
	for i := range f.list.Nodes {
		n := &f.list.Nodes[i]
		if n.Type == ib.NodeSwitch {
			add(n, 0)
			continue
		}
		for num := 1; num < len(n.Ports); num++ {
			if n.Ports[num].Peer != "" {
				add(n, ib.PortNum(num))
			}
		}
	}
	return out
}

// held requires every end port to hold a key of its own, none of them one of not, and to be Active.
func (f *keyFabric) held(t *testing.T, not ...uint64) {
	t.Helper()
	seen := map[uint64]string{}
	for _, k := range not {
		seen[k] = "somebody else"
	}
	for _, p := range f.endPorts() {
		if p.key == 0 || p.level != 2 || p.state != ib.PortActive {
			t.Errorf("%s has a key: %v, level %d, is %v", p.at, p.key != 0, p.level, p.state)
		}
		if other := seen[p.key]; other != "" {
			t.Errorf("%s has the key of %s", p.at, other)
		}
		seen[p.key] = p.at
	}
}

// keysSetup is what a subnet manager with keys needs.
type keysSetup struct{ dir, config, root, state string }

// setKeys makes a root, and a configuration with more lines of fabric.keys.
func setKeys(t *testing.T, lines ...string) keysSetup {
	t.Helper()
	dir := t.TempDir()
	s := keysSetup{dir: dir, config: filepath.Join(dir, "portcullisd.yaml"), root: filepath.Join(dir, "keys.root"), state: filepath.Join(dir, "state")}
	write(t, s.root, strings.Repeat("0123456789abcdeffedcba9876543210", 2)+"\n")
	if err := os.Chmod(s.root, 0o600); err != nil {
		t.Fatal(err)
	}
	write(t, s.config, "fabric:\n  keys:\n    root: keys.root\n    "+strings.Join(lines, "\n    ")+"\n")
	return s
}

func (s keysSetup) args(f *keyFabric, more ...string) []string {
	return append([]string{"sm", "--port", "ibsim:" + f.client.Socket + "/sm", "--config", s.config, "--state-dir", s.state}, more...)
}

// once brings the fabric up, and returns the output.
func (s keysSetup) once(t *testing.T, f *keyFabric) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	out, err := exec.CommandContext(ctx, "portcullisd", s.args(f, "--once")...).CombinedOutput()
	if err != nil {
		t.Fatalf("portcullisd sm: %v\n%s", err, out)
	}
	return string(out)
}

// run starts a subnet manager that stays, and returns a client of its socket once the fabric is settled.
func (s keysSetup) run(t *testing.T, f *keyFabric, more ...string) (*process, *client.Client) {
	t.Helper()
	socket := filepath.Join(s.dir, "sm.sock")
	d := launch(t, exec.Command("portcullisd", s.args(f, append([]string{"--socket", socket}, more...)...)...))
	var c *client.Client
	eventually(t, "a settled fabric", func() (bool, string) {
		if c == nil {
			var err error
			if c, err = client.New(client.Options{Socket: socket}); err != nil {
				c = nil
				return false, err.Error()
			}
		}
		o, err := c.Fabric().Overview(t.Context())
		return err == nil && o.Settled, fmt.Sprint(err, d.lines)
	})
	t.Cleanup(c.Close)
	return d, c
}

// released waits until all keys were given back.
func released(t *testing.T, c *client.Client) {
	t.Helper()
	if _, err := c.Keys().Release(t.Context(), v1.KeyRelease{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the end of the release", func() (bool, string) {
		k, err := c.Keys().Get(t.Context())
		return err == nil && k.Released, fmt.Sprintf("%+v, %v", k, err)
	})
}
