package predict

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"portcullis/attest/eventlog"
	"portcullis/attest/peimage"
)

// Image is what of a unified kernel image is measured.
type Image struct {
	Stub   string // version of systemd's stub
	Kernel string // release of Linux
	Digest eventlog.Digest
	// KernelDigest is the kernel's inside the image.
	KernelDigest eventlog.Digest
	Cmdline      string

	initrd   eventlog.Digest
	sections []named
	image    *peimage.Image
}

// named is content that is measured with its name.
type named struct {
	name string
	data []byte
}

// measuredSections are those that the stub measures into PCR 11, in its order.
var measuredSections = []string{".linux", ".osrel", ".cmdline", ".initrd", ".splash", ".dtb", ".pcrpkey"}

// stubVersion finds the version in the section by which boot loaders know the stub.
var stubVersion = regexp.MustCompile(`#### LoaderInfo: systemd-stub (\d+)([^ ]*) ####`)

// stubs are the versions whose measurements are known.
var stubs = []string{"252"}

// Bounds of the values in the kernel's set-up header.
const (
	setupMagicAt   = 0x202
	setupVersionAt = 0x20e
	maxRelease     = 64
)

// First release of Linux that measures command line and initrd.
const (
	firstMajor = 6
	firstMinor = 1
)

// Read reads an image, signed or not.
func Read(b []byte) (*Image, error) {
	m, err := peimage.Parse(b)
	if err != nil {
		return nil, err
	}
	i := &Image{image: m, Digest: m.Digest()}
	for _, read := range []func() error{i.readStub, i.readKernel, i.readCmdline, i.readSections} {
		if err := read(); err != nil {
			return nil, fmt.Errorf("unified kernel image: %w", err)
		}
	}
	return i, nil
}

func (i *Image) readStub() error {
	magic, _ := i.image.Section(".sdmagic")
	found := stubVersion.FindSubmatch(magic)
	if found == nil {
		return errors.New("has no systemd stub")
	}
	i.Stub = string(found[1]) + string(found[2])
	if !slices.Contains(stubs, string(found[1])) {
		return fmt.Errorf("has systemd's stub %s, whose measurements are not known: want %s, or learn from a boot", i.Stub, strings.Join(stubs, ", "))
	}
	return nil
}

func (i *Image) readKernel() error {
	linux, ok := i.image.Section(".linux")
	if !ok {
		return errors.New("has no kernel (section .linux)")
	}
	kernel, err := peimage.Parse(linux)
	if err != nil {
		return fmt.Errorf("kernel: %w", err)
	}
	i.KernelDigest = kernel.Digest()
	if i.Kernel, err = release(linux); err != nil {
		return fmt.Errorf("kernel: %w", err)
	}
	return nil
}

// release reads the release of a bzImage (Documentation/arch/x86/boot.rst), and
// refuses one that measures otherwise.
func release(linux []byte) (string, error) {
	if len(linux) < setupVersionAt+2 || string(linux[setupMagicAt:setupMagicAt+4]) != "HdrS" {
		return "", errors.New("is not a bzImage")
	}
	at := int(binary.LittleEndian.Uint16(linux[setupVersionAt:])) + 0x200
	if at > len(linux) {
		return "", errors.New("names its release outside of itself")
	}
	text := linux[at:min(len(linux), at+maxRelease)]
	word, _, found := bytes.Cut(text, []byte(" "))
	parts := strings.SplitN(string(word), ".", 3)
	if !found || len(parts) < 2 {
		return "", errors.New("does not name its release")
	}
	major, errMajor := strconv.Atoi(parts[0])
	minor, errMinor := strconv.Atoi(parts[1])
	if errMajor != nil || errMinor != nil {
		return "", fmt.Errorf("release %.32q: want numbers", word)
	}
	if major < firstMajor || major == firstMajor && minor < firstMinor {
		return "", fmt.Errorf("release %.32s: the measurements of Linux are known from %d.%d on", word, firstMajor, firstMinor)
	}
	return string(word), nil
}

func (i *Image) readCmdline() error {
	cmdline, ok := i.image.Section(".cmdline")
	if !ok || len(cmdline) == 0 {
		return errors.New("has no command line (section .cmdline): a boot option could set one")
	}
	for _, c := range cmdline {
		if c < ' ' || c > '~' {
			return errors.New("command line: want printable ASCII, without line feed")
		}
	}
	i.Cmdline = string(cmdline)
	return nil
}

func (i *Image) readSections() error {
	initrd, ok := i.image.Section(".initrd")
	if !ok || len(initrd) == 0 {
		return errors.New("has no initrd (section .initrd)")
	}
	i.initrd = sha256.Sum256(initrd)
	for _, name := range measuredSections {
		if data, ok := i.image.Section(name); ok {
			i.sections = append(i.sections, named{name, data})
		}
	}
	return nil
}
