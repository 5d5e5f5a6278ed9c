package nvconfig

import (
	"encoding/binary"
	"fmt"
	"slices"
)

// DeviceIDSize is the size of a device id in bytes.
const DeviceIDSize = 32

// DeviceID is the id of the device with a base MAC of manufacture (48 bits) in file_device_id: the MAC at its end. The
// value with which adapters compare that item is not published; hardware-test-plan H7 finds out.
func DeviceID(mac uint64) (id [DeviceIDSize]byte) {
	binary.BigEndian.PutUint64(id[DeviceIDSize-8:], mac)
	return id
}

// ForPSID says that a file is for the boards of one PSID, and of one branch of
// it unless that is empty. Both are printable ASCII of at most 16 characters.
func ForPSID(psid, branch string) (Item, error) {
	if psid == "" {
		return Item{}, fmt.Errorf("file_applicable_to: no PSID: a file for any board is not made")
	}
	i := OEMItem(FileItemAddress(idApplicable), make([]byte, 32))
	l, _ := LayoutOf(i.Address)
	for n, text := range []string{psid, branch} {
		if err := l.Fields[n].Set(i.Data, text); err != nil {
			return Item{}, fmt.Errorf("file_applicable_to: %w", err)
		}
	}
	return i, nil
}

// ForDevice says that a file is for one device.
func ForDevice(id [DeviceIDSize]byte) (Item, error) {
	if id == ([DeviceIDSize]byte{}) {
		return Item{}, fmt.Errorf("file_device_id: the id is all zeros: a file for any device is not made")
	}
	return OEMItem(FileItemAddress(idDeviceID), id[:]), nil
}

// Challenge names a device and its challenge, so that a file is valid for it only until it draws another one.
type Challenge struct {
	Device [8]byte // the device's unique id: its base MAC, as the register MTCQ has it
	Nonce  [32]byte
}

// NewChallenge names a device by its base MAC.
func NewChallenge(mac uint64, nonce [32]byte) Challenge {
	c := Challenge{Nonce: nonce}
	binary.BigEndian.PutUint64(c.Device[:], mac)
	return c
}

// MAC is the base MAC of the device.
func (c Challenge) MAC() uint64 { return binary.BigEndian.Uint64(c.Device[:]) }

// maxChallenges is how many devices one item can name.
const maxChallenges = 12

// ForChallenges binds a file to devices and their challenges (file_device_unique, format 0). Tokens of the vendor carry it.
// It is not published which firmware respects it in an OEM NVCONFIG.
func ForChallenges(of ...Challenge) (Item, error) {
	if len(of) == 0 || len(of) > maxChallenges {
		return Item{}, fmt.Errorf("file_device_unique: %d devices, want 1 to %d", len(of), maxChallenges)
	}
	for n, c := range of {
		switch {
		case c.Device == [8]byte{} || c.Nonce == [32]byte{}:
			return Item{}, fmt.Errorf("file_device_unique: entry %d names no device, or has no challenge: a file for any is not made", n)
		case slices.Contains(of[:n], c):
			return Item{}, fmt.Errorf("file_device_unique: entry %d occurs twice", n)
		}
	}
	i := OEMItem(FileItemAddress(idDeviceUnique), make([]byte, 488))
	l, _ := LayoutOf(i.Address)
	if err := l.Fields[1].SetUint(i.Data, uint64(len(of))); err != nil {
		return Item{}, err
	}
	for n, c := range of {
		copy(i.Data[8+40*n:], c.Device[:])
		copy(i.Data[16+40*n:], c.Nonce[:])
	}
	return i, nil
}

// ChallengesOf reads the item that ForChallenges makes, and refuses what it would
// not make.
func ChallengesOf(i Item) ([]Challenge, error) {
	if i.Address != FileItemAddress(idDeviceUnique) || len(i.Data) != 488 {
		return nil, fmt.Errorf("%v, %d bytes, is not file_device_unique", i.Address, len(i.Data))
	}
	l, _ := LayoutOf(i.Address)
	version, _ := l.Fields[0].Uint(i.Data)
	n, _ := l.Fields[1].Uint(i.Data)
	if version != 0 || n == 0 || n > maxChallenges {
		return nil, fmt.Errorf("file_device_unique: format %d with %d devices: want format 0 with 1 to %d", version, n, maxChallenges)
	}
	out := make([]Challenge, n)
	for k := range out {
		out[k] = Challenge{[8]byte(i.Data[8+40*k:]), [32]byte(i.Data[16+40*k:])}
	}
	made, err := ForChallenges(out...)
	if err != nil {
		return nil, err
	}
	if !slices.Equal(made.Data, i.Data) {
		return nil, fmt.Errorf("file_device_unique: reserved bits are set, or there are bytes after its %d devices", n)
	}
	return out, nil
}

// unique finds the item that names challenges.
func (f *File) unique() (Item, bool) {
	n := slices.IndexFunc(f.Items, func(i Item) bool { return i.Address == FileItemAddress(idDeviceUnique) })
	if n < 0 {
		return Item{}, false
	}
	return f.Items[n], true
}

// Bound reports whether a file is valid for challenges alone, even if they cannot be read. Any other file applies as often
// as its holder likes.
func (f *File) Bound() bool { _, ok := f.unique(); return ok }

// Challenges returns the challenges that the file answers, or none if it is not Bound.
func (f *File) Challenges() ([]Challenge, error) {
	i, ok := f.unique()
	if !ok {
		return nil, nil
	}
	return ChallengesOf(i)
}
