// Package slowsync has the disk of chosen processes flush slowly, as a disk that is at its
// limit does: each fsync and fdatasync waits before the kernel starts it. Network, memory and
// everything else stay as fast as they are. The programs are unchanged: the kernel holds
// their system calls up (seccomp, user notification). It needs Linux 5.5 and CAP_SYS_ADMIN. No
// shipped program links it.
package slowsync

import (
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Gate is what the flushes of processes pass.
type Gate struct {
	fd    int
	delay atomic.Int64 // of each flush
	held  atomic.Int64 // flushes that were held up
	ended chan struct{}
}

// notification and answer are struct seccomp_notif and struct seccomp_notif_resp of
// linux/seccomp.h.
type notification struct {
	id    uint64
	pid   uint32
	flags uint32
	nr    int32
	arch  uint32
	ip    uint64
	args  [6]uint64
}

type answer struct {
	id    uint64
	val   int64
	err   int32
	flags uint32
}

// arch returns the number of this machine's system calls, AUDIT_ARCH of linux/audit.h.
func arch() (uint32, error) {
	switch runtime.GOARCH {
	case "amd64":
		return unix.AUDIT_ARCH_X86_64, nil
	case "arm64":
		return unix.AUDIT_ARCH_AARCH64, nil
	default:
		return 0, fmt.Errorf("disk flushes are not held up on %s", runtime.GOARCH)
	}
}

// Install has the flushes of the calling thread, and of the processes that it starts from
// then on, pass a Gate. The thread must be locked and is never free of it. The Gate lasts
// until the last of them has ended. Until then the caller must live: without it the flushes
// fail.
func Install() (*Gate, error) {
	machine, err := arch()
	if err != nil {
		return nil, err
	}
	filter := []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: 4}, // seccomp_data.arch
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: machine, Jf: 4},
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: 0}, // seccomp_data.nr
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: unix.SYS_FSYNC, Jt: 1},
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: unix.SYS_FDATASYNC, Jf: 1},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_USER_NOTIF},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW},
	}
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	// A signal that does not end the process waits for the flush, as it does with a slow disk.
	// Kernels before 5.19 do not know that flag.
	fd, errno := uintptr(0), unix.EINVAL
	for _, flags := range []uintptr{unix.SECCOMP_FILTER_FLAG_NEW_LISTENER | unix.SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV, unix.SECCOMP_FILTER_FLAG_NEW_LISTENER} {
		if fd, _, errno = unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, flags, uintptr(unsafe.Pointer(&program))); errno != unix.EINVAL {
			break
		}
	}
	if errno != 0 {
		return nil, fmt.Errorf("hold up disk flushes: seccomp with a listener: %w: it needs root and Linux 5.5, and a container whose runtime allows seccomp", errno)
	}
	g := &Gate{fd: int(fd), ended: make(chan struct{})}
	go g.serve()
	return g, nil
}

// Slow has each flush that begins from now on wait; 0: none does.
func (g *Gate) Slow(delay time.Duration) { g.delay.Store(int64(delay)) }

// Held returns how many flushes have been held up.
func (g *Gate) Held() int64 { return g.held.Load() }

// Ended returns a channel that is closed when the last process has ended.
func (g *Gate) Ended() <-chan struct{} { return g.ended }

// serve lets flushes pass until the last process has ended.
func (g *Gate) serve() {
	defer close(g.ended)
	defer unix.Close(g.fd)
	for {
		at := []unix.PollFd{{Fd: int32(g.fd), Events: unix.POLLIN}}
		if _, err := unix.Poll(at, -1); err != nil && !errors.Is(err, unix.EINTR) {
			return
		}
		if at[0].Revents&unix.POLLIN == 0 {
			if at[0].Revents&(unix.POLLHUP|unix.POLLERR|unix.POLLNVAL) != 0 {
				return
			}
			continue
		}
		var n notification
		if errno := ioctl(g.fd, unix.SECCOMP_IOCTL_NOTIF_RECV, unsafe.Pointer(&n)); errno != 0 {
			continue // the process was killed meanwhile, or a signal came
		}
		delay := time.Duration(g.delay.Load())
		if delay <= 0 {
			g.pass(n.id)
			continue
		}
		g.held.Add(1)
		time.AfterFunc(delay, func() { g.pass(n.id) })
	}
}

// pass has the kernel do what was asked of it. A process that was killed meanwhile needs no
// answer.
func (g *Gate) pass(id uint64) {
	a := answer{id: id, flags: unix.SECCOMP_USER_NOTIF_FLAG_CONTINUE}
	for ioctl(g.fd, unix.SECCOMP_IOCTL_NOTIF_SEND, unsafe.Pointer(&a)) == unix.EINTR {
	}
}

func ioctl(fd int, request uintptr, arg unsafe.Pointer) unix.Errno {
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), request, uintptr(arg))
	return errno
}
