package main

import (
	"errors"
	"testing"

	"portcullis/fabricsm/transport"
	"portcullis/fabricsm/transport/ibsim"
	"portcullis/fabricsm/transport/ibsim/ibsimtest"
)

// A subnet manager that lives keeps its place; the one it keeps out learns why.
func TestLivingSubnetManagerKeepsItsPlace(t *testing.T) {
	lab := ibsimtest.Start(t, []byte(oneSwitch))
	o := ibsim.Options{Socket: lab.Socket(), Node: "sm", AsSM: true}
	first, err := dialSM(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := dialSM(t.Context(), o); err == nil {
		t.Fatal("a second subnet manager attached")
	} else if _, ok := errors.AsType[*ibsim.RefusedError](err); !ok {
		t.Errorf("second subnet manager: %v, want the simulator's refusal", err)
	}
	in := make([]transport.Packet, 1)
	if n, err := first.Receive(in); err != nil || n != 1 {
		t.Errorf("the first one received %d packets, %v; want the SMInfo query", n, err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	again, err := dialSM(t.Context(), o)
	if err != nil {
		t.Fatalf("after the first one left: %v", err)
	}
	if err := again.Close(); err != nil {
		t.Error(err)
	}
}
