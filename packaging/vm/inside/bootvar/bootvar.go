//go:build vm

// Package bootvar changes the boot options of UEFI firmware, as root of a machine can.
package bootvar

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"unicode/utf16"

	"golang.org/x/sys/unix"

	"portcullis/packaging/vm/inside/guest"
)

const (
	dir    = "/sys/firmware/efi/efivars"
	vendor = "8be4df61-93ca-11d2-aa0d-00e098032b8c" // EFI_GLOBAL_VARIABLE
	order  = "BootOrder"

	attributes = 7          // non-volatile, for boot services and the running system
	immutable  = 0x00000010 // FS_IMMUTABLE_FL, which efivarfs sets on variables it does not know
)

var le = binary.LittleEndian

func file(name string) string { return filepath.Join(dir, name+"-"+vendor) }

func option(number uint16) string { return fmt.Sprintf("Boot%04X", number) }

// Order returns the numbers of boot options in their order.
func Order(t testing.TB) []uint16 {
	t.Helper()
	b, err := os.ReadFile(file(order))
	if err != nil {
		t.Fatal(err)
	}
	var numbers []uint16
	for at := 4; at+1 < len(b); at += 2 { // behind attributes
		numbers = append(numbers, le.Uint16(b[at:]))
	}
	return numbers
}

// SetOrder sets the order.
func SetOrder(t testing.TB, numbers []uint16) {
	t.Helper()
	var b []byte
	for _, n := range numbers {
		b = le.AppendUint16(b, n)
	}
	write(t, order, b)
}

// Add adds the option of a program on the system partition of a disk, whose device is such as vdb, and makes it the first.
func Add(t testing.TB, number uint16, description, disk, program string) {
	t.Helper()
	path := append(partition(t, disk), node(4, 4, text(program))...)
	path = append(path, node(0x7f, 0xff, nil)...)
	b := le.AppendUint32(nil, 1) // active
	b = le.AppendUint16(b, uint16(len(path)))
	b = append(b, text(description)...)
	write(t, option(number), append(b, path...))
	SetOrder(t, append([]uint16{number}, Order(t)...))
}

// Remove removes an option, and takes it out of the order.
func Remove(t testing.TB, number uint16) {
	t.Helper()
	var rest []uint16
	for _, n := range Order(t) {
		if n != number {
			rest = append(rest, n)
		}
	}
	SetOrder(t, rest)
	mutable(t, file(option(number)))
	if err := os.Remove(file(option(number))); err != nil {
		t.Fatal(err)
	}
}

// partition is the device path node of the first partition of a disk with a GPT (UEFI 2.10, 10.3.5.1).
func partition(t testing.TB, disk string) []byte {
	t.Helper()
	const sector, entries = 512, 2
	f, err := os.Open("/dev/" + disk)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	entry := make([]byte, 128)
	if _, err := f.ReadAt(entry, entries*sector); err != nil {
		t.Fatal(err)
	}
	first, last := le.Uint64(entry[32:]), le.Uint64(entry[40:])
	b := le.AppendUint32(nil, 1)
	b = le.AppendUint64(b, first)
	b = le.AppendUint64(b, last-first+1)
	b = append(b, entry[16:32]...) // its GUID
	return node(4, 1, append(b, 2, 2))
}

func node(kind, sub byte, data []byte) []byte {
	return append(le.AppendUint16([]byte{kind, sub}, uint16(4+len(data))), data...)
}

func text(s string) []byte {
	var b []byte
	for _, u := range utf16.Encode([]rune(s + "\x00")) {
		b = le.AppendUint16(b, u)
	}
	return b
}

func write(t testing.TB, name string, data []byte) {
	t.Helper()
	if guest.Exists(file(name)) {
		mutable(t, file(name))
	}
	// A variable is one write.
	if err := os.WriteFile(file(name), append(le.AppendUint32(nil, attributes), data...), 0o644); err != nil {
		t.Fatal(err)
	}
}

// mutable takes the flag off by which efivarfs guards variables.
func mutable(t testing.TB, name string) {
	t.Helper()
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	flags, err := unix.IoctlGetInt(int(f.Fd()), unix.FS_IOC_GETFLAGS)
	if err == nil && flags&immutable != 0 {
		err = unix.IoctlSetPointerInt(int(f.Fd()), unix.FS_IOC_SETFLAGS, flags&^immutable)
	}
	if err := errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
}
