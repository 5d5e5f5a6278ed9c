package imagetest

import "bytes"

// Build makes the image. It is not signed.
func (s *Spec) Build() []byte {
	// Bytes that are not filled in are 0xFF, as in images of the vendor. mstflint assumes that without looking when it
	// signs.
	b := bytes.Repeat([]byte{0xFF}, s.Size-s.Start)
	clear(b[:bootFS3])
	magic := magicFS4
	if s.Format == 3 {
		magic = magicFS3
	}
	if s.Component {
		magic = bytes.Repeat([]byte{0xFF}, 16)
	}
	copy(b, magic)
	var end int
	if s.Format == 3 {
		end = s.fs3(b)
	} else {
		end = s.fs4(b)
	}
	if s.Component {
		return b[:end]
	}
	flash := append(bytes.Repeat([]byte{0xFF}, s.Start), b...)
	if s.Format == 4 {
		table(flash, "DTOC", s.slot()-0x1000, 0, s.device(), true)
	}
	return flash
}

// fs4 fills in an image of FS4 or FS5 and returns where its last section ends.
func (s *Spec) fs4(b []byte) int {
	clear(b[PointersAt : PointersAt+16*8])
	copy(b[0x10:], []byte{s.Format - 3, 0, 1, 0, 0xFF, 0xFF, 0xFF, 0xFF})
	all := map[int]uint32{0: 0x100, 1: Boot2At, 2: TOCAt, 3: ToolsAt, 13: s.SecurityVersion}
	for i, p := range s.Pointers {
		all[i] = p
	}
	for i := range 16 {
		p := b[PointersAt+8*i:]
		be.PutUint32(p, all[i])
		be.PutUint16(p[6:], Hard(p[:6]))
	}
	log := byte(0)
	for 1<<log < s.Size {
		log++
	}
	clear(b[0x100:ToolsAt]) // the boot record
	clear(b[ToolsAt : ToolsAt+0x40])
	b[ToolsAt+5] = log
	be.PutUint16(b[ToolsAt+0x3E:], Soft(b[ToolsAt:ToolsAt+0x3C]))
	boot2(b[Boot2At:])
	if s.HashesAt != 0 {
		hashes(b[s.HashesAt:])
	}
	at := TOCAt
	if s.TOCShift {
		at += 0x1000
	}
	return table(b, "ITOC", at, FirstAt, s.sections(), s.TOCCount)
}

// bootFS3 is where BOOT2 is in an image of FS3.
const bootFS3 = 0x38

// fs3 fills in an image of FS3, which has no pointers.
func (s *Spec) fs3(b []byte) int {
	b[0x24] = 3
	boot2(b[bootFS3:])
	sections := s.sections()
	if !s.Component {
		sections = append(sections, s.device()...)
	}
	return table(b, "ITOC3", 0x1000, FirstAt, sections, s.TOCCount)
}

// boot2 writes a BOOT2 of 16 dwords.
func boot2(b []byte) {
	clear(b[:(16+4)*4])
	be.PutUint32(b, 0x10000040)
	be.PutUint32(b[4:], 16)
	be.PutUint16(b[(16+4)*4-2:], Soft(b[:(16+3)*4]))
}

// hashes writes a table of SHA-512 values: a header of 12 bytes, one of 16, 28
// entries of 8, as many values, and 8 bytes with the checksum of all.
func hashes(b []byte) {
	const size = 12 + 16 + 28*(8+64) + 8
	clear(b[:size])
	be.PutUint16(b[10:], Soft(b[:8]))
	be.PutUint16(b[12+4:], 64)
	be.PutUint16(b[size-2:], Soft(b[:size-4]))
}

// table writes sections and their table, and returns where the last one ends.
func table(b []byte, kind string, at, next int, sections []Section, count bool) (end int) {
	h := b[at:]
	clear(h[:32])
	copy(h, kind[:4])
	copy(h[4:], tocRest)
	h[0x10] = 1
	if count {
		be.PutUint32(h[0x14:], uint32(len(sections)))
	}
	be.PutUint16(h[0x1E:], Soft(h[:0x1C]))
	for i, x := range sections {
		if x.At != 0 {
			next = int(x.At)
		}
		data := b[next : next+len(x.Data)]
		copy(data, x.Data)
		if x.Mode == 2 {
			be.PutUint16(data[len(data)-2:], Soft(data[:len(data)-4]))
		}
		entry(h[32+32*i:][:32], kind, next, x, data)
		next += len(x.Data)
		if !x.Device || kind != "ITOC3" {
			end = max(end, next)
		}
	}
	h[32+32*len(sections)] = 0xFF
	return end
}

func entry(e []byte, kind string, at int, x Section, data []byte) {
	clear(e)
	be.PutUint32(e, uint32(x.Type)<<24|uint32(len(data)))
	be.PutUint32(e[0x14:], uint32(at))
	mode := uint32(x.Mode) << 16
	if kind == "ITOC3" {
		if mode = 0; x.Mode != 0 {
			mode = 1 << 16
		}
		if x.Device {
			mode |= 1 << 17
		} else {
			e[0x14] |= 0x80 // it counts from the image
		}
	}
	if x.Encrypted {
		mode |= 1 << 31
	}
	if x.Lines {
		e[4] |= 0x40
	}
	be.PutUint32(e[0x18:], mode)
	if x.Mode == 0 {
		be.PutUint16(e[0x1A:], Soft(data))
	}
	be.PutUint16(e[0x1E:], Soft(e[:0x1C]))
}

// Find returns where a section is in an image of Build: its entry in the table and its
// data.
func Find(b []byte, kind byte) (entry, data []byte) {
	for at := 0; at < len(b); at += 0x1000 {
		h := b[at:]
		if len(h) < 64 || string(h[1:4]) != "TOC" || !bytes.Equal(h[4:16], tocRest) {
			continue
		}
		for e := h[32:]; e[0] != 0xFF; e = e[32:] {
			if e[0] == kind {
				from := int(be.Uint32(e[0x14:])&0x7FFFFFFC) + start(b)*btoi(h[0] == 'I')
				return e[:32], b[from : from+int(be.Uint32(e)&0xFFFFFC)]
			}
		}
	}
	return nil, nil
}

// start is where the image begins in a flash of Build.
func start(b []byte) int {
	for at := 0x10000; at < len(b); at *= 2 {
		if bytes.HasPrefix(b[at:], magicFS4) {
			return at
		}
	}
	return 0
}

func btoi(x bool) int {
	if x {
		return 1
	}
	return 0
}

// Mend makes the checksums of a section right again after it was changed.
func Mend(b []byte, kind byte) {
	e, data := Find(b, kind)
	mode := e[0x19] & 7
	if isFS3(b) {
		mode &= 1 // the next bit marks data of the device
	}
	switch mode {
	case 0:
		be.PutUint16(e[0x1A:], Soft(data))
	case 2:
		be.PutUint16(data[len(data)-2:], Soft(data[:len(data)-4]))
	}
	MendEntry(e)
}

// isFS3 reports an image of FS3.
func isFS3(b []byte) bool {
	c := b[start(b):]
	return !bytes.Equal(c[:16], magicFS4) && c[0x24] == 3
}

// MendEntry makes the checksum of an entry right again.
func MendEntry(e []byte) { be.PutUint16(e[0x1E:], Soft(e[:0x1C])) }
