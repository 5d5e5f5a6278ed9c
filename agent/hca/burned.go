package hca

import (
	"context"
	"encoding/binary"
	"fmt"

	"portcullis/agent/hca/register"
	"portcullis/fabricsm/ib"
	"portcullis/firmware/nvconfig"
)

// The item of base MAC and base GUID (mstflint calls it nv_base_mac_guid): 8 bytes
// each. Its factory value is what was burned in.
const (
	burnedIndex  = 2
	burnedRoom   = 64 // as mstflint asks; the answer has its own length
	burnedLength = 16
)

// burned reads the base GUID of manufacture. Not all firmware reports it. Then it stays unknown, which is not counted
// against the device.
func (f *firmware) burned(ctx context.Context) {
	guid, err := f.burnedGUID(ctx)
	if err != nil {
		f.BaseGUID.fail(err)
		return
	}
	f.BaseGUID.told(f.from, guid)
}

func (f *firmware) burnedGUID(ctx context.Context) (ib.GUID, error) {
	h := nvconfig.Header{Access: nvconfig.Default, Address: nvconfig.GlobalItem(burnedIndex)}
	in := append(h.Append(nil, burnedRoom), make([]byte, burnedRoom)...)
	out, err := f.access.Access(ctx, register.IDMNVDA, register.Read, in)
	if err != nil {
		return 0, err
	}
	got, _, err := nvconfig.ParseItem(out)
	if err != nil {
		return 0, fmt.Errorf("MNVDA: %w", err)
	}
	if got.Address != h.Address || len(got.Data) < burnedLength {
		return 0, fmt.Errorf("MNVDA: asked for %v, the answer has %d bytes of %v", h.Address, len(got.Data), got.Address)
	}
	return ib.GUID(binary.BigEndian.Uint64(got.Data[8:])), nil
}
