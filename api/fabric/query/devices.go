package query

import (
	"bufio"
	"fmt"
	"io"
	"strings"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/topo"
)

// Devices returns a function that writes, in the text format of Prometheus, what is seen of every device and port. Names
// and labels are those that exporters of InfiniBand fabrics use (infiniband_switch_..., infiniband_hca_...), so that
// dashboards find them. The series are as many as the fabric has ports: they are scraped apart from the metrics that are
// few, and less often. The function must be called, once.
func (o *Observer) Devices() (func(io.Writer) error, error) {
	x, err := o.seen()
	if err != nil {
		return nil, err
	}
	return func(w io.Writer) error {
		d := devices{index: x.ready(), b: bufio.NewWriterSize(w, 1<<16)}
		d.write()
		if o.counters != nil {
			d.counters(o.counters.Append(nil))
		}
		return d.b.Flush()
	}, nil
}

type devices struct {
	*index
	b *bufio.Writer
}

// family begins a metric.
func (d *devices) family(name, help string) {
	fmt.Fprintf(d.b, "# HELP infiniband_%s %s\n# TYPE infiniband_%s gauge\n", name, help, name)
}

// series writes one value; labels are names and values in turn.
func (d *devices) series(name string, value float64, labels ...string) {
	fmt.Fprintf(d.b, "infiniband_%s{", name)
	for i := 0; i < len(labels); i += 2 {
		if i > 0 {
			d.b.WriteByte(',')
		}
		fmt.Fprintf(d.b, "%s=\"%s\"", labels[i], escaped.Replace(labels[i+1]))
	}
	fmt.Fprintf(d.b, "} %v\n", value)
}

// escaped makes a label value of what a device calls itself.
var escaped = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`)

func (d *devices) write() {
	for _, kind := range []struct {
		prefix, label, what string
		switches            bool
	}{{"switch_", "switch", "switch", true}, {"hca_", "hca", "HCA or router", false}} {
		each := func(do func(id topo.NodeID, guid, name string)) {
			for _, id := range d.Fabric.ByGUID() {
				if n := d.Fabric.Node(id); (n.Type == ib.NodeSwitch) == kind.switches && d.first(id) {
					do(id, n.GUID.String(), d.name(id))
				}
			}
		}
		d.family(kind.prefix+"info", "Which "+kind.what+" it is.")
		each(func(id topo.NodeID, guid, name string) {
			d.series(kind.prefix+"info", 1, "guid", guid, kind.label, name, "lid", d.lidOf(id))
		})
		d.family(kind.prefix+"up", "Whether the "+kind.what+" answers the subnet manager.")
		each(func(id topo.NodeID, guid, name string) {
			d.series(kind.prefix+"up", truth(!d.silent[d.Fabric.Node(id).GUID]), "guid", guid, kind.label, name)
		})
		d.family(kind.prefix+"rate_bytes_per_second", "Data rate of the fastest link of the "+kind.what+".")
		each(func(id topo.NodeID, guid, _ string) {
			d.series(kind.prefix+"rate_bytes_per_second", d.fastest(id), "guid", guid)
		})
		d.family(kind.prefix+"uplink_info", "What a port of the "+kind.what+" is cabled to.")
		each(func(id topo.NodeID, guid, name string) {
			d.uplinks(kind.prefix+"uplink_info", kind.label, id, guid, name)
		})
	}
	d.family("switch_port_state", "1 while the link of a port is up.")
	for _, id := range d.Fabric.Switches() {
		if !d.first(id) {
			continue
		}
		n := d.Fabric.Node(id)
		for i := 1; i <= int(n.NumPorts); i++ {
			up := d.Fabric.Port(n.FirstPort+topo.PortID(i)).State >= ib.PortInit
			d.series("switch_port_state", truth(up), "guid", n.GUID.String(), "port", fmt.Sprint(i), "switch", d.name(id))
		}
	}
}

// first reports the first of several nodes with one GUID, as a series may be
// written once only.
func (d *devices) first(id topo.NodeID) bool {
	return d.Fabric.NodeByGUID(d.Fabric.Node(id).GUID) == id
}

// lidOf returns the LID of a switch, or of the first port of an HCA that has one.
func (d *devices) lidOf(id topo.NodeID) string {
	n := d.Fabric.Node(id)
	for i := range int(n.NumPorts) + 1 {
		if lid := d.Fabric.Port(n.FirstPort + topo.PortID(i)).LID; lid != 0 {
			return lid.String()
		}
	}
	return ""
}

// fastest returns the rate of a node's fastest link in bytes a second.
func (d *devices) fastest(id topo.NodeID) float64 {
	n, best := d.Fabric.Node(id), 0
	for i := 1; i <= int(n.NumPorts); i++ {
		p := n.FirstPort + topo.PortID(i)
		if d.Fabric.LinkUp(p) != topo.None {
			port := d.Fabric.Port(p)
			best = max(best, port.Rate())
		}
	}
	return float64(best) * 1e6 / 8
}

func (d *devices) uplinks(metric, label string, id topo.NodeID, guid, name string) {
	f, n := d.Fabric, d.Fabric.Node(id)
	for i := 1; i <= int(n.NumPorts); i++ {
		far := f.LinkUp(n.FirstPort + topo.PortID(i))
		if far == topo.None {
			continue
		}
		peer, kind := f.NodeOf(far), "CA"
		switch peer.Type {
		case ib.NodeSwitch:
			kind = "SW"
		case ib.NodeRouter:
			kind = "RT"
		case ib.NodeCA:
		}
		d.series(metric, 1, "guid", guid, "port", fmt.Sprint(i), label, name, "uplink", d.name(f.Port(far).Node),
			"uplink_guid", peer.GUID.String(), "uplink_type", kind, "uplink_port", fmt.Sprint(f.Port(far).Num),
			"uplink_lid", d.lidOf(f.Port(far).Node))
	}
}
