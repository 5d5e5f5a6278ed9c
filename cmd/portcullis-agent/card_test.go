package main

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"portcullis/agent/hca/hcasim"
	"portcullis/agent/hca/hcasim/cardsocket"
	"portcullis/attest/tpm/tpmtest"
	"portcullis/fabricsm/ib"
	"portcullis/firmware/image"
	"portcullis/firmware/imagetest"
	"portcullis/firmware/pin"
)

// cardGUID is the node GUID in the trees of the scripts.
const cardGUID = ib.GUID(0xb83fd2030000a100)

// startCard serves an adapter that runs the firmware of the synthetic images.
func startCard(t *testing.T, ts *testscript.TestScript) {
	o := hcasim.ConnectX7(cardGUID, cardGUID)
	o.Identity.PSID = "TST0000000001"
	o.Firmware = hcasim.Firmware{Major: 22, Minor: 47, SubMinor: 1088}
	dir := tpmtest.ShortDir(t) // a socket's path is short
	ctx, cancel := context.WithCancel(t.Context())
	l, err := cardsocket.Listen(ctx, filepath.Join(dir, cardGUID.String()))
	ts.Check(err)
	done := make(chan error, 1)
	go func() { done <- cardsocket.Serve(ctx, l, hcasim.New(o)) }()
	ts.Defer(func() { cancel(); <-done })
	ts.Setenv("CARDS", dir)
}

// makeLibrary pins the key of the synthetic images and takes one of them up.
func makeLibrary(ts *testscript.TestScript, dir string) {
	k := imagetest.Key2048()
	set, err := pin.New(pin.Key{
		UUID: imagetest.KeyUUID, Algorithm: image.RSA2048SHA256, Exponent: uint32(k.E), Modulus: k.N.Bytes(), Signs: image.SignsFirmware, Name: "test",
	})
	ts.Check(err)
	pins, err := set.Encode()
	ts.Check(err)
	b, err := os.ReadFile("../../firmware/testdata/synthetic/fs4-rsa2048.bin")
	ts.Check(err)
	ts.Check(os.MkdirAll(filepath.Join(dir, "images"), 0o755))
	ts.Check(os.WriteFile(filepath.Join(dir, "pins.yaml"), pins, 0o644))
	ts.Check(os.WriteFile(filepath.Join(dir, "policy.yaml"), []byte("boards: [{psid: TST0000000001, floor: 22.47.1000, hardware: [0x218]}]\n"), 0o644))
	ts.Check(os.WriteFile(filepath.Join(dir, "images", "fs4.bin"), b, 0o644))
}
