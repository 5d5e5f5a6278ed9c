package image

import "fmt"

const (
	toolsSize   = 0x40
	bootFS3     = 0x38
	maxBoot2    = 1 << 20 // dwords, as mstflint has it
	boot2Extra  = 4       // dwords before and after the code
	hashesHead  = 12
	htocHead    = 16
	hashesTail  = 8
	htocEntry   = 8
	htocEntries = 28
	htocMore    = 64 // entries where the table's version is 1
)

func roundUp(n int64) int64 { return (n + tocSector - 1) / tocSector * tocSector }

// boot2Size reads how many bytes BOOT2 has.
func (m *Image) boot2Size() (int64, error) {
	b, err := m.src.block("BOOT2", m.boot2, 8)
	if err != nil {
		return 0, err
	}
	n := int64(u32(b, 4))
	if n < 4 || n > maxBoot2 {
		return 0, malformed("BOOT2", "it claims %d dwords", n)
	}
	size := (n + boot2Extra) * 4
	if !m.src.holds(m.boot2, size) {
		return 0, malformed("BOOT2", "%d bytes at 0x%x run over the end at 0x%x", size, m.boot2, m.src.size)
	}
	return size, nil
}

// Check compares every checksum that the image has. No finding means that it was neither cut nor damaged; it does not show
// who made it. In an opaque image only the unencrypted parts are compared.
func (m *Image) Check() ([]Finding, error) {
	var found []Finding
	if m.Format != FS3 {
		found = m.pointers.check()
	}
	for _, t := range m.tables {
		found = append(found, t.check()...)
	}
	if len(m.tables) == 0 {
		return found, nil
	}
	for _, check := range []func() ([]Finding, error){m.checkTools, m.checkBoot2, m.checkHashes, m.checkSections} {
		more, err := check()
		if err != nil {
			return nil, err
		}
		found = append(found, more...)
	}
	return found, nil
}

func (m *Image) checkTools() ([]Finding, error) {
	if m.tools == 0 {
		return nil, nil
	}
	b, err := m.src.block("tools area", m.tools, toolsSize)
	if err != nil {
		return nil, err
	}
	return compare("tools area", softSum(b[:toolsSize-4]), u16(b, toolsSize-2)), nil
}

func (m *Image) checkBoot2() ([]Finding, error) {
	n, err := m.boot2Size()
	if err != nil {
		return nil, err
	}
	return m.tailed(m.src, "BOOT2", m.boot2, n)
}

// checkHashes compares the two checksums of the table of hashes.
func (m *Image) checkHashes() ([]Finding, error) {
	if !m.hashed() {
		return nil, nil
	}
	at := m.pointers.at(PointerHashes)
	b, err := m.src.block("table of hashes", at, hashesHead+htocHead)
	if err != nil {
		return nil, err
	}
	found := compare("header of the table of hashes", softSum(b[:hashesHead-4]), u16(b, hashesHead-2))
	version, hash := u32(b, hashesHead), int64(u16(b, hashesHead+4))
	entries := int64(htocEntries)
	if version == 1 {
		entries = htocMore
	}
	size := hashesHead + htocHead + entries*(htocEntry+hash) + hashesTail
	if size%4 != 0 {
		return append(found, Finding{"table of hashes", fmt.Sprintf("a hash has %d bytes, which is not a digest", hash)}), nil
	}
	more, err := m.tailed(m.src, "table of hashes", at, size)
	return append(found, more...), err
}

func (m *Image) checkSections() (found []Finding, err error) {
	for _, e := range m.Sections {
		if e.outside || e.Size == 0 || m.unusedSlot(e) {
			continue
		}
		object := fmt.Sprintf("%v at 0x%x", e.Type, e.Offset)
		var more []Finding
		switch e.mode {
		case crcInEntry:
			more, err = m.entered(object, e)
		case crcInSection:
			more, err = m.tailed(m.file, object, e.Offset, e.Size)
		case crcNone:
		}
		if err != nil {
			return nil, err
		}
		found = append(found, more...)
	}
	return found, nil
}

// unusedSlot reports the one of the two slots of DEV_INFO that is not in use.
func (m *Image) unusedSlot(e Section) bool {
	if e.Type != SectionDevice {
		return false
	}
	used, err := hasTable(m.file, e.Offset, magicDevInfo)
	return err == nil && !used
}

// entered compares the checksum of a section that stands in its entry.
func (m *Image) entered(object string, e Section) ([]Finding, error) {
	sum := newSoftCRC()
	if err := m.file.copyTo(&sum, object, e.Offset, e.Size); err != nil {
		return nil, err
	}
	return compare(object, sum.sum(), e.crc), nil
}

// tailed compares the checksum of a part that stands in its last dword.
func (m *Image) tailed(s source, object string, at, size int64) ([]Finding, error) {
	sum := newSoftCRC()
	if err := s.copyTo(&sum, object, at, size-4); err != nil {
		return nil, err
	}
	b, err := s.block(object, at+size-4, 4)
	if err != nil {
		return nil, err
	}
	return compare(object, sum.sum(), u16(b, 2)), nil
}

func compare(object string, got, want uint16) []Finding {
	if got == want {
		return nil
	}
	return []Finding{{object, fmt.Sprintf("its checksum is 0x%04x, but it says 0x%04x", got, want)}}
}
