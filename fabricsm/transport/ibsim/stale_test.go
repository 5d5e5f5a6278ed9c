package ibsim

import (
	"errors"
	"testing"

	"portcullis/fabricsm/transport/ibsim/ibsimtest"
)

const oneNode = `caguid=0x0020000000000000
Ca 1 "sm"	# "sm"
[1]	"leaf1"[1]	# lid 0 lmc 0 "leaf1" lid 0 4xEDR

switchguid=0x0010000100000001
Switch 4 "leaf1"	# "leaf1" base port 0 lid 0 lmc 0
[1]	"sm"[1]	# "sm" lid 0 4xEDR

`

// A killed subnet manager says no goodbye; its successor must get the node.
func TestDialAfterKilledSM(t *testing.T) {
	lab := ibsimtest.Start(t, []byte(oneNode))
	o := Options{Socket: lab.Socket(), Node: "sm", AsSM: true}
	first, err := Dial(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	kill(t, first)
	second, err := Dial(t.Context(), o)
	if err != nil {
		t.Fatalf("after the first was killed: %v", err)
	}
	defer second.Close()
	if first.GUID() != second.GUID() {
		t.Errorf("got port GUID %v, want that of the first, %v", second.GUID(), first.GUID())
	}
}

// A subnet manager that lives keeps its node.
func TestDialBesideLivingSM(t *testing.T) {
	lab := ibsimtest.Start(t, []byte(oneNode))
	o := Options{Socket: lab.Socket(), Node: "sm", AsSM: true}
	first, err := Dial(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	defer first.Close()
	if _, err := Dial(t.Context(), o); !errors.As(err, new(*RefusedError)) {
		t.Errorf("got %v, want a refusal", err)
	}
}

// kill closes the sockets as the kernel does for a killed process.
func kill(t *testing.T, p *Port) {
	t.Helper()
	if err := errors.Join(p.ctl.Close(), p.data.Close()); err != nil {
		t.Fatal(err)
	}
}
