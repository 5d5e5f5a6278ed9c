package driver_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"portcullis/fabricsm/driver"
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/sim"
	"portcullis/fabricsm/sim/netlist"
	"portcullis/fabricsm/sim/simtest"
	"portcullis/fabricsm/sm"
	"portcullis/fabricsm/transport"
	"portcullis/fabricsm/transport/ibsim"
	"portcullis/fabricsm/transport/ibsim/ibsimlab"
	"portcullis/fabricsm/transport/ibsim/ibsimtest"
)

// TestAliasesAsDiagnosticsSeeThem: alias GUIDs that the core assigns are in the tables of ports, as smpquery reads them. It
// runs on our simulator because ibsim accepts none; there the refusal is reported.
func TestAliasesAsDiagnosticsSeeThem(t *testing.T) {
	ibsimtest.Need(t, "smpquery")
	l, err := netlist.Single(netlist.Shape{Hosts: 4, Radix: 8})
	if err != nil {
		t.Fatal(err)
	}
	h1 := l.Find("h1")
	port := h1.Ports[1]
	wish := &sm.AliasesSet{Ports: []sm.AliasGUIDs{{
		GUID: h1.PortGUID(1), Place: ib.Place{Switch: l.Find(port.Peer).GUID, Port: port.PeerPort},
		Aliases: []ib.GUID{0xA1, 0, 0xA3},
	}}}
	f := sim.New(l)
	st, err := f.Attach("sm", true)
	if err != nil {
		t.Fatal(err)
	}
	given := make(chan sm.Event, 1)
	aliases(t, driver.Options{Port: st}, wish, given)
	if e, ok := (<-given).(*sm.AliasesApplied); !ok || len(e.Aliases) != 3 {
		t.Fatalf("told %v", e)
	}
	at, stop := simtest.ServeUntil(t, f)
	defer stop()
	out, err := at.Diag(t.Context(), "h2", "smpquery", "-D", "guidinfo", fmt.Sprintf("0,1,%d", port.PeerPort))
	if err != nil || !strings.Contains(string(out), "0x00000000000000a1") || !strings.Contains(string(out), "0x00000000000000a3") {
		t.Errorf("%v, smpquery guidinfo:\n%s", err, out)
	}

	var text strings.Builder
	if _, err := l.WriteTo(&text); err != nil {
		t.Fatal(err)
	}
	lab := ibsimtest.Start(t, []byte(text.String()))
	refused := make(chan sm.Event, 1)
	aliases(t, driver.Options{Port: attached(t, lab), Core: sm.Config{Enforcement: sm.Accepted}}, wish, refused)
	if e, ok := (<-refused).(*sm.AliasRefused); !ok || !strings.Contains(e.Reason, "refuses to Set GUIDInfo") {
		t.Errorf("on ibsim, told %v", e)
	}
}

func attached(t *testing.T, lab *ibsimlab.Lab) transport.Port {
	t.Helper()
	port, err := ibsim.Dial(t.Context(), ibsim.Options{Socket: lab.Socket(), Node: "sm", AsSM: true})
	if err != nil {
		t.Fatal(err)
	}
	return port
}

// aliases runs a subnet manager that is given aliases, until the test ends, and
// hands on what it first says of them.
func aliases(t *testing.T, o driver.Options, wish *sm.AliasesSet, told chan<- sm.Event) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	inputs := make(chan sm.Input, 1)
	inputs <- wish
	first := true
	o.Inputs = inputs
	o.OnEvent = func(e sm.Event) {
		switch e.(type) {
		case *sm.AliasesApplied, *sm.AliasRefused:
			if first {
				first = false
				told <- e
			}
		default:
		}
	}
	done := make(chan error, 1)
	go func() {
		done <- driver.Run(ctx, o, nil)
		if ctx.Err() != nil && first {
			told <- nil // nothing was said in time
		}
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}
