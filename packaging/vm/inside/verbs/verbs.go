//go:build vm

// Package verbs opens an InfiniBand adapter as programs do that send data, through the
// kernel's uverbs interface and without libibverbs: protection domains, memory, completion
// queues, and queue pairs that are live. All work requests go through the kernel.
package verbs

import (
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Commands of rdma/ib_user_verbs.h.
const (
	cmdGetContext = 0
	cmdAllocPD    = 3
	cmdCreateAH   = 5
	cmdRegMR      = 9
	cmdCreateCQ   = 18
	cmdPollCQ     = 21
	cmdCreateQP   = 24
	cmdQueryQP    = 25
	cmdModifyQP   = 26
	cmdDestroyQP  = 27
	cmdPostSend   = 28
	cmdPostRecv   = 29
)

var ne = binary.NativeEndian

// Context is an open adapter.
type Context struct {
	file  int
	async int // of its events
	pd    uint32
}

// Open opens the adapter of that name, with a protection domain.
func Open(device string) (*Context, error) {
	dirs, err := filepath.Glob("/sys/class/infiniband_verbs/uverbs*")
	if err != nil {
		return nil, err
	}
	for _, dir := range dirs {
		name, err := os.ReadFile(filepath.Join(dir, "ibdev"))
		if err != nil || strings.TrimSpace(string(name)) != device {
			continue
		}
		return open(filepath.Join("/dev/infiniband", filepath.Base(dir)))
	}
	return nil, fmt.Errorf("no uverbs file is of adapter %s", device)
}

func open(path string) (*Context, error) {
	fd, err := unix.Open(path, unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	c := &Context{file: fd, async: -1}
	var r [8]byte
	if err := c.call(cmdGetContext, make([]byte, 8), r[:]); err != nil {
		c.Close()
		return nil, fmt.Errorf("%s: get context: %w", path, err)
	}
	c.async = int(ne.Uint32(r[:]))
	if err := c.call(cmdAllocPD, make([]byte, 8), r[:4]); err != nil {
		c.Close()
		return nil, fmt.Errorf("%s: allocate protection domain: %w", path, err)
	}
	c.pd = ne.Uint32(r[:])
	return c, nil
}

// Close ends all that was made with the adapter.
func (c *Context) Close() {
	_ = unix.Close(c.file)
	if c.async >= 0 {
		_ = unix.Close(c.async)
	}
}

// call runs a command. The body begins with room for the address of the answer, where there is one.
func (c *Context) call(command uint32, body, answer []byte) error {
	b := make([]byte, 8, 8+len(body))
	ne.PutUint32(b, command)
	ne.PutUint16(b[4:], uint16((8+len(body))/4))
	ne.PutUint16(b[6:], uint16(len(answer)/4))
	b = append(b, body...)
	var pin runtime.Pinner
	defer pin.Unpin()
	if len(answer) > 0 {
		pin.Pin(&answer[0])
		ne.PutUint64(b[8:], uint64(uintptr(unsafe.Pointer(&answer[0]))))
	}
	_, err := unix.Write(c.file, b)
	return err
}

// Event is what happened to a port or to the adapter: an enum ib_event_type.
type Event struct {
	Type uint32
	Port uint64 // or another object
}

// Types of events.
const (
	CQError        = 0
	QPFatal        = 1
	DeviceFatal    = 8
	PortActive     = 9
	PortError      = 10
	LIDChange      = 11
	PKeyChange     = 12
	SMChange       = 13
	ClientRegister = 17
	GIDChange      = 18
)

// Event waits for the next event, at most so many milliseconds; false means that none came.
func (c *Context) Event(milliseconds int) (e Event, ok bool, err error) {
	p := []unix.PollFd{{Fd: int32(c.async), Events: unix.POLLIN}}
	for {
		n, err := unix.Poll(p, milliseconds)
		if err == unix.EINTR {
			continue
		}
		if err != nil || n == 0 {
			return e, false, err
		}
		break
	}
	var b [16]byte
	if _, err := unix.Read(c.async, b[:]); err != nil {
		return e, false, err
	}
	return Event{Type: ne.Uint32(b[8:]), Port: ne.Uint64(b[:])}, true, nil
}

// Memory is a region that queue pairs may use.
type Memory struct {
	Bytes []byte
	key   uint32
}

// Register makes a region of so many bytes.
func (c *Context) Register(size int) (*Memory, error) {
	b, err := unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		return nil, os.NewSyscallError("mmap", err)
	}
	at := uint64(uintptr(unsafe.Pointer(&b[0])))
	body, r := make([]byte, 40), make([]byte, 12)
	ne.PutUint64(body[8:], at)
	ne.PutUint64(body[16:], uint64(size))
	ne.PutUint64(body[24:], at)
	ne.PutUint32(body[32:], c.pd)
	ne.PutUint32(body[36:], 1) // local write
	if err := c.call(cmdRegMR, body, r); err != nil {
		return nil, fmt.Errorf("register memory: %w", err)
	}
	return &Memory{Bytes: b, key: ne.Uint32(r[4:])}, nil
}

// entry makes a scatter/gather element.
func (m *Memory) entry(offset, length int) []byte {
	b := make([]byte, 16)
	ne.PutUint64(b, uint64(uintptr(unsafe.Pointer(&m.Bytes[0])))+uint64(offset))
	ne.PutUint32(b[8:], uint32(length))
	ne.PutUint32(b[12:], m.key)
	return b
}

// CQ is a completion queue.
type CQ struct {
	context *Context
	handle  uint32
}

// NewCQ makes a completion queue of so many entries.
func (c *Context) NewCQ(entries uint32) (*CQ, error) {
	body, r := make([]byte, 32), make([]byte, 8)
	ne.PutUint32(body[16:], entries)
	ne.PutUint32(body[24:], ^uint32(0)) // no channel
	if err := c.call(cmdCreateCQ, body, r); err != nil {
		return nil, fmt.Errorf("create completion queue: %w", err)
	}
	return &CQ{context: c, handle: ne.Uint32(r)}, nil
}

// Completion is how a work request ended.
type Completion struct {
	ID     uint64
	Status Status
	Recv   bool
	Length uint32
	QP     uint32
	Source uint32
}

// Status is an enum ib_wc_status.
type Status uint32

// Statuses of completions.
const (
	Success          Status = 0
	LocalLength      Status = 1
	LocalProtection  Status = 4
	Flushed          Status = 5
	RetryExceeded    Status = 12
	RNRRetryExceeded Status = 13
)

// Poll takes the completions that are there.
func (q *CQ) Poll() ([]Completion, error) {
	const most, head, size = 16, 8, 48
	body, r := make([]byte, 16), make([]byte, head+most*size)
	ne.PutUint32(body[8:], q.handle)
	ne.PutUint32(body[12:], most)
	if err := q.context.call(cmdPollCQ, body, r); err != nil {
		return nil, fmt.Errorf("poll completion queue: %w", err)
	}
	var out []Completion
	for i := range int(ne.Uint32(r)) {
		w := r[head+i*size:]
		out = append(out, Completion{
			ID: ne.Uint64(w), Status: Status(ne.Uint32(w[8:])), Recv: ne.Uint32(w[12:])&128 != 0, Length: ne.Uint32(w[20:]),
			QP: ne.Uint32(w[28:]), Source: ne.Uint32(w[32:]),
		})
	}
	return out, nil
}
