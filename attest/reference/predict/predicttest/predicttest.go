// Package predicttest makes parts of images that no machine could boot, for tests.
package predicttest

// Kernel is a PE file of one section with the set-up header of a bzImage, which names the release.
func Kernel(release string) []byte {
	b := make([]byte, 0x2000)
	copy(b, "MZ")
	b[0x3c] = 0x40
	copy(b[0x40:], "PE\x00\x00\x64\x86\x01")
	b[0x40+20] = 0xa0 // size of the optional header
	o := b[0x58:]
	copy(o, "\x0b\x02")
	o[61] = 0x10  // headers of 0x1000
	o[108] = 0x06 // directories
	h := o[0xa0:]
	copy(h, ".text")
	h[9], h[13], h[17], h[21] = 0x10, 0x10, 0x10, 0x10
	copy(b[0x202:], "HdrS")
	b[0x20f] = 0x10 // where the release is, less 0x200
	copy(b[0x1200:], release+" (builder) #1\x00")
	return b
}
