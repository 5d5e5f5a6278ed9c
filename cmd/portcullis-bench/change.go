package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/sim/netlist"
)

// change is one thing that happens to a running fabric.
type change struct {
	name  string
	make  func(g *stage) error
	judge func(ctx context.Context, g *stage) error // did the manager do what had to be done?
}

// console makes a change of the simulated cabling, after which down cabled
// ports of switches are not active.
func console(name string, down int, commands ...string) change {
	return change{
		name: name,
		make: func(g *stage) error {
			for _, c := range commands {
				if _, err := g.lab.Console(c); err != nil {
					return err
				}
			}
			return nil
		},
		judge: func(ctx context.Context, g *stage) error { return g.fabric.judge(ctx, g.lab, down) },
	}
}

// changesOf returns the changes that are measured, in an order that leaves the fabric as it was.
func changesOf(f *fabric) []change {
	host := f.list.Nodes[f.hostAt(f.hosts*3/4)].Name
	top := f.top()
	spine := f.list.Nodes[top].Name
	var back []string // the simulator relinks all cables of hosts only
	for p, port := range f.list.Nodes[top].Ports {
		if port.Peer != "" {
			back = append(back, fmt.Sprintf("relink %q[%d]", spine, p))
		}
	}
	quoted := func(verb, node string) string { return fmt.Sprintf("%s %q", verb, node) }
	cable := fmt.Sprintf("%q[%d]", spine, 1)
	return []change{
		{name: "tenant move", make: (*stage).move, judge: moved},
		console("host cable pulled", 1, quoted("unlink", host)),
		console("host cable back", 0, quoted("relink", host)),
		console("host rebooted", 0, quoted("unlink", host), quoted("relink", host)),
		console("switch cable pulled", 2, "unlink "+cable),
		console("switch cable back", 0, "relink "+cable),
		console("spine lost", 2*len(back), quoted("unlink", spine)),
		console("spine back", 0, back...),
	}
}

// tenants is how many partitions the hosts are dealt over.
const tenants = 32

// deal assigns hosts to tenants, as a file of partitions.
type deal struct {
	file  string
	ports []ib.GUID // of hosts, the first of which runs the subnet manager
	owner []int     // tenant by host
	moved int       // host moved last
}

func newDeal(f *fabric, dir string) *deal {
	d := &deal{file: filepath.Join(dir, "partitions.conf")}
	for h := range f.hosts {
		d.ports = append(d.ports, f.list.Nodes[f.hostAt(h)].GUID+1)
		d.owner = append(d.owner, h*tenants/f.hosts)
	}
	return d
}

// write writes the file. A line per member: OpenSM reads 4 KiB at a time.
func (d *deal) write() error {
	var b strings.Builder
	b.WriteString("Default=0x7fff, ipoib: ALL=limited, SELF=full;\n")
	members := make([][]string, tenants)
	for h, t := range d.owner[1:] {
		members[t] = append(members[t], fmt.Sprintf("0x%016x=full", uint64(d.ports[h+1])))
	}
	for t := range members {
		if len(members[t]) > 0 {
			fmt.Fprintf(&b, "tenant%d=0x%04x: %s;\n", t, uint16(pkeyOf(t)), strings.Join(members[t], ",\n "))
		}
	}
	if err := os.WriteFile(d.file, []byte(b.String()), 0o600); err != nil {
		return fmt.Errorf("write partitions: %w", err)
	}
	return nil
}

func pkeyOf(tenant int) ib.PKey { return ib.PKey(0x1000 + tenant) }

// move assigns a host that shares its leaf with the subnet manager to another tenant.
func (g *stage) move() error {
	d := g.deal
	d.moved = 1 + d.moved%(min(g.fabric.hosts, 4)-1)
	d.owner[d.moved] = (d.owner[d.moved] + 1) % tenants
	if err := d.write(); err != nil {
		return err
	}
	return g.subject.reread()
}

// moved has smpquery read the tables of that host and of its switch port.
func moved(ctx context.Context, g *stage) error {
	d := g.deal
	node := &g.fabric.list.Nodes[g.fabric.hostAt(d.moved)]
	port := node.Ports[1].PeerPort
	want := fmt.Sprintf("0x%04x", uint16(pkeyOf(d.owner[d.moved]))|0x8000)
	for _, args := range [][]string{
		{"-D", "pkeys", fmt.Sprintf("0,1,%d", port)},
		{"-D", "pkeys", "0,1", fmt.Sprint(port)},
	} {
		out, err := g.lab.Diag(ctx, "sm", "smpquery", args...)
		if err != nil {
			return err
		}
		if !strings.Contains(string(out), want) {
			return fmt.Errorf("smpquery %s does not show %s:\n%s", strings.Join(args, " "), want, out)
		}
	}
	return nil
}

// hostAt returns the index in the netlist of a host.
func (f *fabric) hostAt(host int) int { return f.hostNodes[host] }

// top returns a switch without hosts that is farthest from them.
func (f *fabric) top() int {
	best := -1
	for i := range f.list.Nodes {
		if n := &f.list.Nodes[i]; n.Type == ib.NodeSwitch && !f.hasHost(n) {
			if best < 0 || strings.HasPrefix(n.Name, "core") {
				best = i
			}
		}
	}
	return best
}

func (f *fabric) hasHost(n *netlist.Node) bool {
	for _, p := range n.Ports[1:] {
		if f.hostNames[p.Peer] {
			return true
		}
	}
	return false
}
