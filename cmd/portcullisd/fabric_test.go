package main

import (
	"fmt"
	"strings"
	"testing"

	"portcullis/fabricsm/transport/ibsim/ibsimlab"
	"portcullis/fabricsm/transport/ibsim/ibsimtest"
)

// oneSwitch is a switch with the service's own HCA and two hosts.
const oneSwitch = `switchguid=0x100000
Switch 8 "leaf1"
[1] "h1"[1]
[2] "h2"[1]
[8] "sm"[1]

caguid=0x400000
Ca 1 "sm"
[1] "leaf1"[8]

caguid=0x200000
Ca 1 "h1"
[1] "leaf1"[1]

caguid=0x300000
Ca 1 "h2"
[1] "leaf1"[2]
`

// The service brings up a real simulated fabric, says so, and comes back by
// itself when the simulator was away.
func TestFabric(t *testing.T) {
	t.Parallel()
	lab := ibsimtest.Start(t, []byte(oneSwitch))
	dir, address := install(t, "--fabric-port", "ibsim:"+lab.Socket()+"/sm")
	d := start(t, dir)
	c, ctx := operator(t, dir, address), t.Context()
	settled := func() {
		t.Helper()
		eventually(t, "a settled fabric", func() (bool, string) {
			s, err := c.SM().Get(ctx)
			return err == nil && s.Settled && strings.EqualFold(s.State, "master"), fmt.Sprint(s, err)
		})
	}
	settled()
	eventually(t, "three CAs on a switch", func() (bool, string) {
		f, err := c.Fabric().Get(ctx)
		return err == nil && f.Summary.Switches == 1 && f.Summary.CAs == 3 && f.Summary.Links == 3, fmt.Sprint(f, err)
	})
	// Third-party tools see a limited member of the default partition.
	out := ibsimtest.Diag(t, lab, "sm", "smpquery", "-D", "pkeys", "0,1,1", "1")
	if !strings.Contains(out, "0x7fff") || strings.Contains(out, "0xffff") {
		t.Errorf("smpquery pkeys of a host that nobody admitted:\n%s", out)
	}

	socket, client := lab.Socket(), lab.Client()
	if err := lab.Kill(); err != nil {
		t.Fatal(err)
	}
	d.awaitStatus("STATUS=serving, but ")
	eventually(t, "word of the lost fabric", func() (bool, string) {
		s, err := c.SM().Get(ctx)
		return err == nil && s.State == "unreachable" && len(s.Problems) > 0, fmt.Sprint(s, err)
	})
	again, err := ibsimlab.Start(ctx, ibsimlab.Options{Netlist: []byte(oneSwitch), Dir: client.Dir, Socket: socket})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := again.Stop(); err != nil {
			t.Error(err)
		}
	})
	settled()
}

// The service goes on, and says what to do, where the HCA that fabric.port names
// is not there.
func TestFabricWithoutTheHCA(t *testing.T) {
	t.Parallel()
	dir, address := install(t, "--fabric-port", "umad:nosuch_0:1")
	d := start(t, dir)
	c, ctx := operator(t, dir, address), t.Context()
	eventually(t, "word of the missing HCA", func() (bool, string) {
		s, err := c.SM().Get(ctx)
		return err == nil && s.State == "unreachable" && len(s.Problems) > 0 && strings.Contains(s.Problems[0], "InfiniBand"), fmt.Sprint(s, err)
	})
	if said := d.lines.String(); !strings.Contains(said, "umad:nosuch_0:1") {
		t.Errorf("the log does not name the port:\n%s", said)
	}
}
