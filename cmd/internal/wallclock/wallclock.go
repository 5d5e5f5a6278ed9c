// Package wallclock sets the time of day that one running process sees, while all other
// processes of the machine keep theirs. The program is unchanged: what it calls in the
// kernel's shared object (vDSO) is replaced in the memory of that process alone. The clocks
// that are never set, CLOCK_MONOTONIC and CLOCK_BOOTTIME, stay as they are. It needs the
// right to trace the process. No shipped program links it.
package wallclock

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const (
	// function is what programs call for the time.
	function = "__vdso_clock_gettime"
	// room is what ours needs, at the end of the object's memory, which the kernel leaves
	// empty. The offset is in its last eight bytes.
	room     = 32
	offsetAt = 24
	// jump is the size of the jump to it.
	jump = 5
	// stops is how often a process is stopped again because one of its threads was just in
	// the bytes to be replaced.
	stops = 20
	// stopTime bounds how long the threads of a process may take to stop.
	stopTime = 10 * time.Second
)

// ours is clock_gettime(2) by the system call, plus the offset for CLOCK_REALTIME.
var ours = []byte{
	0xb8, 0xe4, 0x00, 0x00, 0x00, // mov eax, SYS_clock_gettime
	0x0f, 0x05, // syscall
	0x85, 0xff, // test edi, edi
	0x75, 0x0a, // jne to ret: another clock
	0x48, 0x8b, 0x15, 0x06, 0x00, 0x00, 0x00, // mov rdx, [offset]
	0x48, 0x01, 0x16, // add [rsi], rdx
	0xc3,       // ret
	0x90, 0x90, // nothing, up to the offset
}

// Set has the process see the time of day that much later than it is, in whole seconds;
// earlier, if it is negative; 0: as it is.
func Set(pid int, offset time.Duration) error {
	if runtime.GOARCH != "amd64" {
		return fmt.Errorf("set the time of day of process %d: not on %s", pid, runtime.GOARCH)
	}
	if err := set(pid, int64(offset/time.Second)); err != nil {
		return fmt.Errorf("set the time of day of process %d: %w", pid, err)
	}
	return nil
}

func set(pid int, seconds int64) error {
	m, err := open(pid)
	if err != nil {
		return err
	}
	defer m.file.Close()
	text := binary.LittleEndian.AppendUint64(nil, uint64(seconds))
	if m.patched() {
		return m.write(m.cave()+offsetAt, text)
	}
	if !m.empty() {
		return errors.New("the kernel's shared object has no empty room at its end")
	}
	if err := m.write(m.cave(), append(bytes.Clone(ours), text...)); err != nil {
		return err
	}
	return m.divert(pid)
}

// memory is the kernel's shared object in a process.
type memory struct {
	file  *os.File // the memory of the process
	start uint64
	image []byte
	entry uint64 // of the function, from start
}

func open(pid int) (*memory, error) {
	start, end, err := mapped(pid)
	if err != nil {
		return nil, err
	}
	f, err := os.OpenFile(fmt.Sprintf("/proc/%d/mem", pid), os.O_RDWR, 0)
	if err != nil {
		return nil, fmt.Errorf("%w: it needs root", err)
	}
	m := &memory{file: f, start: start, image: make([]byte, end-start)}
	if _, err := f.ReadAt(m.image, int64(start)); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	if m.entry, err = entry(m.image); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return m, nil
}

// mapped returns where the kernel's shared object is.
func mapped(pid int) (start, end uint64, err error) {
	maps, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", pid))
	if err != nil {
		return 0, 0, err
	}
	return parseMaps(string(maps))
}

func parseMaps(maps string) (start, end uint64, err error) {
	for line := range strings.Lines(maps) {
		if !strings.HasSuffix(strings.TrimSpace(line), "[vdso]") {
			continue
		}
		if _, err := fmt.Sscanf(line, "%x-%x ", &start, &end); err != nil || end <= start || end-start > 1<<20 {
			return 0, 0, fmt.Errorf("its map of memory has the line %q", line)
		}
		return start, end, nil
	}
	return 0, 0, errors.New("the kernel has no shared object there (vDSO)")
}

// entry returns where the function is in an image.
func entry(image []byte) (uint64, error) {
	f, err := elf.NewFile(bytes.NewReader(image))
	if err != nil {
		return 0, fmt.Errorf("read the kernel's shared object: %w", err)
	}
	symbols, err := f.DynamicSymbols()
	if err != nil {
		return 0, fmt.Errorf("read the kernel's shared object: %w", err)
	}
	for _, s := range symbols {
		if s.Name == function && s.Value > 0 && s.Value+jump < uint64(len(image)-room) {
			return s.Value, nil
		}
	}
	return 0, fmt.Errorf("the kernel's shared object has no function %s", function)
}

// cave is where ours is, from start.
func (m *memory) cave() uint64 { return uint64(len(m.image) - room) }

func (m *memory) empty() bool {
	return bytes.Equal(m.image[m.cave():], make([]byte, room))
}

// patched reports whether the process calls ours already.
func (m *memory) patched() bool {
	return bytes.Equal(m.image[m.entry:m.entry+jump], m.diversion()) && bytes.HasPrefix(m.image[m.cave():], ours)
}

// diversion is the jump from the entry to ours.
func (m *memory) diversion() []byte {
	return binary.LittleEndian.AppendUint32([]byte{0xe9}, uint32(m.cave()-m.entry-jump))
}

// write writes into the object.
func (m *memory) write(at uint64, data []byte) error {
	_, err := m.file.WriteAt(data, int64(m.start+at))
	if err != nil {
		return fmt.Errorf("%w: the kernel must let root write to memory of a process that is read-only (proc_mem.force_override)", err)
	}
	return nil
}

// divert writes the jump while no thread of the process runs or stands in its bytes.
func (m *memory) divert(pid int) error {
	for range stops {
		if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
			return err
		}
		stands, err := m.inside(pid)
		if err == nil && !stands {
			err = m.write(m.entry, m.diversion())
		}
		err = errors.Join(err, syscall.Kill(pid, syscall.SIGCONT))
		if err != nil || !stands {
			return err
		}
	}
	return errors.New("one of its threads was about to ask for the time each time that it was stopped")
}

// inside waits until all threads have stopped, and reports whether one stands within the
// bytes to be replaced.
func (m *memory) inside(pid int) (bool, error) {
	for late := time.Now().Add(stopTime); ; time.Sleep(time.Millisecond) {
		all, err := threads(pid)
		if err != nil {
			return false, err
		}
		stopped, stands := true, false
		for _, t := range all {
			stopped = stopped && t.stopped
			from := m.start + m.entry
			stands = stands || t.pc > from && t.pc < from+jump
		}
		if stopped {
			return stands, nil
		}
		if time.Now().After(late) {
			return false, fmt.Errorf("its threads did not stop within %v", stopTime)
		}
	}
}

// thread is what the kernel says of a thread.
type thread struct {
	stopped bool
	pc      uint64 // program counter in user mode, where it does not run
}

func threads(pid int) (out []thread, err error) {
	dirs, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/[0-9]*", pid))
	if err != nil || len(dirs) == 0 {
		return nil, errors.Join(err, fs.ErrNotExist)
	}
	for _, dir := range dirs {
		stat, err := os.ReadFile(filepath.Join(dir, "stat"))
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ESRCH) {
			continue // it has ended
		}
		if err != nil {
			return nil, err
		}
		call, err := os.ReadFile(filepath.Join(dir, "syscall"))
		if err != nil {
			return nil, err
		}
		t, err := parseThread(string(stat), string(call))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", dir, err)
		}
		out = append(out, t)
	}
	return out, nil
}

// parseThread reads a thread's stat and syscall.
func parseThread(stat, call string) (thread, error) {
	_, rest, ok := strings.Cut(stat[max(0, strings.LastIndex(stat, ")")):], " ")
	if !ok || rest == "" {
		return thread{}, fmt.Errorf("its state is %q", stat)
	}
	t := thread{stopped: rest[0] == 'T' || rest[0] == 't' || rest[0] == 'Z' || rest[0] == 'X'}
	fields := strings.Fields(call)
	if len(fields) == 0 || fields[0] == "running" {
		return thread{stopped: t.stopped && rest[0] != 'T'}, nil
	}
	var err error
	if t.pc, err = strconv.ParseUint(fields[len(fields)-1], 0, 64); err != nil {
		return thread{}, fmt.Errorf("its system call is %q", call)
	}
	return t, nil
}
