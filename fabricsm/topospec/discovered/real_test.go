package discovered_test

import (
	"bytes"
	"testing"

	"portcullis/fabricsm/sim/netlist"
	"portcullis/fabricsm/topospec/diff"
	"portcullis/fabricsm/topospec/discovered"
	"portcullis/fabricsm/topospec/topospectest"
	"portcullis/fabricsm/transport/ibsim/ibsimtest"
)

// TestIbnetdiscoverOfIbsim compares the output of the real ibnetdiscover on the real ibsim with the netlist that ibsim
// runs, both read as specifications.
func TestIbnetdiscoverOfIbsim(t *testing.T) {
	ibsimtest.Need(t, "ibnetdiscover")
	for name, shape := range map[string]func() (*netlist.Netlist, error){
		"two levels":   func() (*netlist.Netlist, error) { return netlist.FatTree2(netlist.Shape{Hosts: 16, Radix: 8}) },
		"three levels": func() (*netlist.Netlist, error) { return netlist.FatTree3(netlist.Shape{Hosts: 12, Radix: 4, HCAs: 1}) },
	} {
		t.Run(name, func(t *testing.T) {
			l, err := shape()
			if err != nil {
				t.Fatal(err)
			}
			var text bytes.Buffer
			if _, err := l.WriteTo(&text); err != nil {
				t.Fatal(err)
			}
			lab := ibsimtest.Start(t, text.Bytes())
			want, err := discovered.Parse("netlist", "f", text.Bytes())
			if err != nil {
				t.Fatal(err)
			}
			first := ""
			for i := range l.Nodes {
				if l.Nodes[i].NumPorts() == 1 && first == "" {
					first = l.Nodes[i].Name
				}
			}
			out := ibsimtest.Diag(t, lab, first, "ibnetdiscover")
			got, err := discovered.Parse("ibnetdiscover", "f", []byte(out))
			if err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			report := diff.Compare(topospectest.Spec(t, want), topospectest.Spec(t, got), diff.CablesOnly)
			for _, i := range report.Items {
				t.Error(i)
			}
			if report.Same == 0 {
				t.Error("no link was compared")
			}
		})
	}
}
