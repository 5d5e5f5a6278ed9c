package nvconfig

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"
)

const fileIDSize = 16

// FileID is the item nv_file_id_vendor, which makes a file an OEM NVCONFIG.
type FileID struct {
	// EraseLower has the adapter erase all settings of later priorities.
	EraseLower bool
	// PerItem keeps the priority of each item; else all have that of the file.
	PerItem bool
	// KeepSame keeps those settings of the same priority that the file does not name.
	KeepSame bool
	// DisableOverride makes the whole file fail if it would touch a setting that is
	// there. It needs KeepSame, and no EraseLower.
	DisableOverride bool
	// Version of the file. The site only counts up.
	Version uint32
	// Time in UTC, to the second. The zero Time lets the adapter fill it in.
	Time time.Time
}

const (
	fileEraseLower      = 1 << 31
	filePerItem         = 1 << 30
	fileKeepSame        = 1 << 29
	fileDisableOverride = 1 << 28
	fileFlags           = fileEraseLower | filePerItem | fileKeepSame | fileDisableOverride
)

// Item returns the item. It refuses flags that contradict each other, and a year of more than four digits.
func (id FileID) Item() (Item, error) {
	var flags uint32
	for _, f := range []struct {
		set bool
		bit uint32
	}{
		{id.EraseLower, fileEraseLower}, {id.PerItem, filePerItem}, {id.KeepSame, fileKeepSame}, {id.DisableOverride, fileDisableOverride},
	} {
		if f.set {
			flags |= f.bit
		}
	}
	b := binary.BigEndian.AppendUint32(nil, flags)
	b = binary.BigEndian.AppendUint32(b, id.Version)
	var date, clock uint32
	if !id.Time.IsZero() {
		t := id.Time.UTC()
		if t.Year() < 1 || t.Year() > 9999 {
			return Item{}, fmt.Errorf("nv_file_id_vendor: year %d: want 1 to 9999", t.Year())
		}
		date = bcd(t.Year(), 4)<<16 | bcd(int(t.Month()), 2)<<8 | bcd(t.Day(), 2)
		clock = bcd(t.Hour(), 2)<<24 | bcd(t.Minute(), 2)<<16 | bcd(t.Second(), 2)<<8
	}
	b = binary.BigEndian.AppendUint32(b, date)
	b = binary.BigEndian.AppendUint32(b, clock)
	i := OEMItem(GlobalItem(idVendor), b)
	return i, checkFileID(i, OEMConfig)
}

// FileIDOf reads the item. It refuses what Item would not make.
func FileIDOf(i Item) (FileID, error) {
	if i.Address != GlobalItem(idVendor) && i.Address != GlobalItem(idMLNX) {
		return FileID{}, fmt.Errorf("%v is not the item that says what a file is", i.Address)
	}
	if len(i.Data) != fileIDSize {
		return FileID{}, fmt.Errorf("%v: %d bytes of data, want %d", i.Address, len(i.Data), fileIDSize)
	}
	flags := binary.BigEndian.Uint32(i.Data)
	id := FileID{
		EraseLower: flags&fileEraseLower != 0, PerItem: flags&filePerItem != 0,
		KeepSame: flags&fileKeepSame != 0, DisableOverride: flags&fileDisableOverride != 0,
		Version: binary.BigEndian.Uint32(i.Data[4:]),
	}
	if flags&^uint32(fileFlags) != 0 {
		return FileID{}, fmt.Errorf("%v: reserved bits are set", i.Address)
	}
	if id.DisableOverride && (id.EraseLower || !id.KeepSame) {
		return FileID{}, fmt.Errorf("%v: disable_override needs keep_same_priority and no erase_lower_priority", i.Address)
	}
	var err error
	id.Time, err = fileTime(binary.BigEndian.Uint32(i.Data[8:]), binary.BigEndian.Uint32(i.Data[12:]))
	if err != nil {
		return FileID{}, fmt.Errorf("%v: %w", i.Address, err)
	}
	return id, nil
}

// checkFileID checks the item of those components that have flags and a date.
func checkFileID(i Item, c Component) error {
	if c.IsToken() {
		return nil
	}
	_, err := FileIDOf(i)
	return err
}

var errDate = errors.New("its date is not valid: want packed decimal, year month day, hour minute second 0")

// fileTime reads date and time. Year 0 is no time, whatever follows it must be 0 too.
func fileTime(date, clock uint32) (time.Time, error) {
	if date == 0 && clock == 0 {
		return time.Time{}, nil
	}
	fields := [6]int{}
	for n, v := range [6]uint32{date >> 16, date >> 8 & 0xFF, date & 0xFF, clock >> 24, clock >> 16 & 0xFF, clock >> 8 & 0xFF} {
		d, ok := fromBCD(v)
		if !ok {
			return time.Time{}, errDate
		}
		fields[n] = d
	}
	t := time.Date(fields[0], time.Month(fields[1]), fields[2], fields[3], fields[4], fields[5], 0, time.UTC)
	if clock&0xFF != 0 || fields[0] == 0 || t.Day() != fields[2] || int(t.Month()) != fields[1] || t.Hour() != fields[3] || t.Minute() != fields[4] || t.Second() != fields[5] {
		return time.Time{}, errDate
	}
	return t, nil
}

// bcd packs a decimal number, a digit in each 4 bits.
func bcd(n, digits int) (v uint32) {
	for shift := range digits {
		v |= uint32(n%10) << (4 * shift)
		n /= 10
	}
	return v
}

func fromBCD(v uint32) (n int, ok bool) {
	for shift := 28; shift >= 0; shift -= 4 {
		digit := v >> shift & 0xF
		if digit > 9 {
			return 0, false
		}
		n = 10*n + int(digit)
	}
	return n, true
}
