//go:build vm

package disk

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// SeedSerial is the serial number of the drive that the init program unpacks over the root directory.
const SeedSerial = "seed"

// Places in a seed that the init program knows.
const (
	// SuiteFile is the test program that is run.
	SuiteFile = "suite/test"
	// ArgumentsFile has its arguments, one a line.
	ArgumentsFile = "suite/arguments"
	// InitFile is the init program itself, for the unit that runs the tests where systemd is process 1.
	InitFile = "suite/init"
)

// Arguments of the init program that have it run the test program where it is not process 1.
const (
	// RunSuite powers the machine off afterwards.
	RunSuite = "suite"
	// RunSuiteAndStay leaves the end to the system.
	RunSuiteAndStay = "suite-and-stay"
)

// Seed is what a machine finds in its root directory: files that differ from lab to lab. It is written as a tar archive on a
// disk of its own, so that neither initramfs nor root file system change with it.
type Seed struct {
	files map[string]file
}

type file struct {
	from  string // file on this machine; "" has data
	data  []byte
	link  string
	mode  os.FileMode // with the bit of a directory
	label string      // SELinux context; "" none
}

// kind returns the kind of file as SELinux's tools call it.
func (f file) kind() string {
	switch {
	case f.link != "":
		return "link"
	case f.mode.IsDir():
		return "dir"
	}
	return "file"
}

// LabelRecord is the record of a tar header that holds a file's SELinux context.
const LabelRecord = "SCHILY.xattr.security.selinux"

func (s *Seed) put(to string, f file) {
	if s.files == nil {
		s.files = map[string]file{}
	}
	s.files[strings.TrimPrefix(path.Clean(to), "/")] = f
}

// Data adds a file with content.
func (s *Seed) Data(to, data string, mode os.FileMode) {
	s.put(to, file{data: []byte(data), mode: mode})
}

// File adds a copy of a file.
func (s *Seed) File(to, from string) error {
	info, err := os.Stat(from)
	if err != nil {
		return err
	}
	s.put(to, file{from: from, mode: info.Mode().Perm()})
	return nil
}

// Dir adds a directory. Directories above a file need not be added, but get no label otherwise.
func (s *Seed) Dir(name string, mode os.FileMode) { s.put(name, file{mode: mode | os.ModeDir}) }

// Label sets the SELinux context of a file, directory or link.
func (s *Seed) Label(name, context string) {
	name = strings.TrimPrefix(path.Clean(name), "/")
	f := s.files[name]
	f.label = context
	s.put(name, f)
}

// Link adds a symbolic link.
func (s *Seed) Link(at, to string) { s.put(at, file{link: to, mode: 0o777}) }

// Program adds a program of this machine and the shared libraries that it is linked with, for a machine without root file system.
func (s *Seed) Program(name string) error {
	from, err := exec.LookPath(name)
	if err != nil {
		from = filepath.Join("/usr/sbin", name)
	}
	return s.ProgramAs(from, from)
}

// ProgramAs adds the program from, as to, and the shared libraries that it is linked with.
func (s *Seed) ProgramAs(to, from string) error {
	if err := s.File(to, from); err != nil {
		return err
	}
	out, err := exec.Command("ldd", from).Output()
	if err != nil {
		return nil // not a dynamic executable
	}
	for word := range strings.FieldsSeq(string(out)) {
		if strings.HasPrefix(word, "/") {
			if err := s.File(word, word); err != nil {
				return err
			}
		}
	}
	return nil
}

// Busybox adds Debian's static busybox and a link in /bin for each of its programs that is not there otherwise.
func (s *Seed) Busybox() error {
	const at = "/bin/busybox"
	if err := s.File(at, at); err != nil {
		return fmt.Errorf("%w: run \"packaging/setup.sh vm\"", err)
	}
	out, err := exec.Command(at, "--list").Output()
	if err != nil {
		return err
	}
	for name := range strings.FieldsSeq(string(out)) {
		if name != "busybox" {
			s.Link("/bin/"+name, "busybox")
		}
	}
	return nil
}

// Arguments sets the arguments of the test program.
func (s *Seed) Arguments(args ...string) { s.Data(ArgumentsFile, strings.Join(args, "\n")+"\n", 0o644) }

// Write writes the seed as a disk image.
func (s *Seed) Write(to string) error {
	out, err := os.Create(to)
	if err != nil {
		return err
	}
	err = s.write(out)
	if err == nil {
		var end int64
		if end, err = out.Seek(0, io.SeekEnd); err == nil {
			err = out.Truncate((end + 0xfffff) &^ 0xfffff)
		}
	}
	return errors.Join(err, out.Close())
}

func (s *Seed) write(out io.Writer) error {
	w := tar.NewWriter(out)
	names := make([]string, 0, len(s.files))
	for name := range s.files {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		f := s.files[name]
		if err := f.write(w, name); err != nil {
			return fmt.Errorf("seed: %s: %w", name, err)
		}
	}
	return w.Close()
}

func (f file) write(w *tar.Writer, name string) error {
	h := &tar.Header{Name: name, Mode: int64(f.mode.Perm()), Format: tar.FormatPAX}
	if f.label != "" {
		h.PAXRecords = map[string]string{LabelRecord: f.label}
	}
	var body io.Reader = bytes.NewReader(f.data)
	switch {
	case f.mode.IsDir():
		h.Typeflag = tar.TypeDir
	case f.link != "":
		h.Typeflag, h.Linkname = tar.TypeSymlink, f.link
	case f.from != "":
		in, err := os.Open(f.from)
		if err != nil {
			return err
		}
		defer in.Close()
		info, err := in.Stat()
		if err != nil {
			return err
		}
		h.Size, body = info.Size(), in
	default:
		h.Size = int64(len(f.data))
	}
	if err := w.WriteHeader(h); err != nil {
		return err
	}
	_, err := io.Copy(w, body)
	return err
}
