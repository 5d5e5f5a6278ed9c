package main

import (
	"fmt"
	"strings"

	"portcullis/fabricsm/ib"
)

// The fabric of the demonstration: two spines, two leaves, eight hosts with two
// HCAs each, and the host of the subnet manager. The first HCA of every host is
// cabled to the first leaf, the second to the second, as rails are.
const (
	hostCount   = 8
	hcasPerHost = 2
	spineCount  = 2
	leafCount   = hcasPerHost
	switchPorts = 36
	firstUplink = 33 // leaf ports 33 and 34 go up; the SM is on leaf 1 port 36
	smPort      = 36

	switchGUIDs ib.GUID = 0x0010_0000_0000_0000
	hcaGUIDs    ib.GUID = 0x0020_0000_0000_0000
	smNodeName          = "sm"
	smNodeGUID  ib.GUID = 0x0030_0000_0000_0000
)

// hca is one adapter with one port, and where the plan cables it.
type hca struct {
	node     string // node description on the fabric
	nodeGUID ib.GUID
	portGUID ib.GUID
	leaf     int // 0 or 1
	place    ib.Place
}

// host is one machine of the plan.
type host struct {
	id   string
	hcas []hca
}

func leafName(i int) string  { return fmt.Sprintf("leaf-%d", i+1) }
func spineName(i int) string { return fmt.Sprintf("spine-%d", i+1) }

func leafGUID(i int) ib.GUID  { return switchGUIDs + 1<<32 + ib.GUID(i) }
func spineGUID(i int) ib.GUID { return switchGUIDs + 2<<32 + ib.GUID(i) }

// plannedHosts is the rack design: every GUID and every cable.
func plannedHosts() []host {
	hosts := make([]host, hostCount)
	for i := range hosts {
		h := host{id: fmt.Sprintf("host-%d", i+1)}
		for j := range hcasPerHost {
			guid := hcaGUIDs + ib.GUID(i+1)<<16 + ib.GUID(j+1)<<8
			h.hcas = append(h.hcas, hca{
				node:     fmt.Sprintf("%s-hca-%d", h.id, j+1),
				nodeGUID: guid,
				portGUID: guid + 1,
				leaf:     j,
				place:    ib.Place{Switch: leafGUID(j), Port: ib.PortNum(i + 1)},
			})
		}
		hosts[i] = h
	}
	return hosts
}

// netlistText writes the plan in ibsim's grammar.
func netlistText(hosts []host) string {
	var b strings.Builder
	fmt.Fprintf(&b, "caguid=%#x\nCa 1 %q\n%s\n\n", uint64(smNodeGUID), smNodeName, cable(1, leafName(0), smPort))
	for _, h := range hosts {
		for _, a := range h.hcas {
			fmt.Fprintf(&b, "caguid=%#x\nCa 1 %q\n%s\n\n", uint64(a.nodeGUID), a.node, cable(1, leafName(a.leaf), int(a.place.Port)))
		}
	}
	for l := range leafCount {
		fmt.Fprintf(&b, "switchguid=%#x\nSwitch %d %q\n", uint64(leafGUID(l)), switchPorts, leafName(l))
		for _, h := range hosts {
			a := h.hcas[l]
			fmt.Fprintln(&b, cable(int(a.place.Port), a.node, 1))
		}
		for s := range spineCount {
			fmt.Fprintln(&b, cable(firstUplink+s, spineName(s), l+1))
		}
		if l == 0 {
			fmt.Fprintln(&b, cable(smPort, smNodeName, 1))
		}
		b.WriteByte('\n')
	}
	for s := range spineCount {
		fmt.Fprintf(&b, "switchguid=%#x\nSwitch %d %q\n", uint64(spineGUID(s)), switchPorts, spineName(s))
		for l := range leafCount {
			fmt.Fprintln(&b, cable(l+1, leafName(l), firstUplink+s))
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// cable is one line of a node: our port, the far node and its port. The part
// after # is read by ibsim as ibnetdiscover's: far LID, width and speed.
func cable(port int, far string, farPort int) string {
	return fmt.Sprintf("[%d]\t%q[%d]\t# lid 0 lmc 0 %q lid 0 4xHDR", port, far, farPort, far)
}

// inventoryFile is what rack integration recorded: which TPM and which HCAs
// belong to which host, and which switches there are. EK digests are hexadecimal, keyed by host.
func inventoryFile(hosts []host, ekDigest map[string]string) string {
	var b strings.Builder
	b.WriteString("hosts:\n")
	for _, h := range hosts {
		fmt.Fprintf(&b, "  - id: %s\n    ek_sha256: %s\n    hcas:\n", h.id, ekDigest[h.id])
		for _, a := range h.hcas {
			fmt.Fprintf(&b, "      - node_guid: %v\n        system_image_guid: %v\n        ports: [{port: 1, guid: %v}]\n", a.nodeGUID, a.nodeGUID, a.portGUID)
		}
	}
	b.WriteString("switches:\n")
	for l := range leafCount {
		fmt.Fprintf(&b, "  - {id: %s, guid: %v, role: leaf, ports: %d}\n", leafName(l), leafGUID(l), switchPorts)
	}
	for s := range spineCount {
		fmt.Fprintf(&b, "  - {id: %s, guid: %v, role: spine, ports: %d}\n", spineName(s), spineGUID(s), switchPorts)
	}
	return b.String()
}

// cablingFile is the cabling plan: which port GUID ends at which switch port.
func cablingFile(hosts []host) string {
	var b strings.Builder
	b.WriteString("cables:\n")
	for _, h := range hosts {
		for _, a := range h.hcas {
			fmt.Fprintf(&b, "  - {guid: %v, switch: %v, port: %d}\n", a.portGUID, a.place.Switch, a.place.Port)
		}
	}
	return b.String()
}

// routes from the SM's host, for directed-route queries that need no SM.

// toHCA is the directed route to an HCA: out of the SM's port, over the leaf,
// and for the second leaf through the first spine.
func toHCA(a hca) string { return fmt.Sprintf("%s,%d", toLeaf(a.leaf), a.place.Port) }

// toLeaf is the directed route to a leaf switch.
func toLeaf(leaf int) string {
	if leaf == 0 {
		return "0,1"
	}
	return fmt.Sprintf("0,1,%d,%d", firstUplink, leaf+1)
}
