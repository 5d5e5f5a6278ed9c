//go:build vm

package selinux_test

import (
	"errors"
	"fmt"
	"regexp"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// denial is what the kernel writes where it denies something.
type denial struct {
	permission, class, source, target string
	text                              string
}

func (d denial) String() string { return d.text }

var denied = regexp.MustCompile(`avc:\s+denied\s+\{ ([a-z_ ]+) \} for .* scontext=(\S+) tcontext=(\S+) tclass=(\S+) permissive=([01])`)

// audit reads the kernel's log from where it was opened on.
type audit struct {
	fd  int
	got []denial
}

func listen(t testing.TB) *audit {
	t.Helper()
	fd, err := unix.Open("/dev/kmsg", unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Close(fd) })
	if _, err := unix.Seek(fd, 0, unix.SEEK_END); err != nil {
		t.Fatal(err)
	}
	return &audit{fd: fd}
}

// all returns the denials until now.
func (a *audit) all(t testing.TB) []denial {
	t.Helper()
	buf := make([]byte, 8192)
	for {
		n, err := unix.Read(a.fd, buf)
		switch {
		case errors.Is(err, unix.EAGAIN):
			return a.got
		case errors.Is(err, unix.EPIPE): // records were overwritten
			t.Fatal("the kernel's log ran over")
		case err != nil:
			t.Fatal(err)
		}
		if m := denied.FindSubmatch(buf[:n]); m != nil {
			a.got = append(a.got, denial{string(m[1]), string(m[4]), string(m[2]), string(m[3]), string(m[0])})
		}
	}
}

// expect waits for a denial.
func (a *audit) expect(t testing.TB, permission, class, source, target string) {
	t.Helper()
	for end := time.Now().Add(limit); time.Now().Before(end); {
		for _, d := range a.all(t) {
			if d.permission == permission && d.class == class && d.source == source && d.target == target {
				return
			}
		}
		// The kernel writes it from a thread of its own.
		if _, err := unix.Poll([]unix.PollFd{{Fd: int32(a.fd), Events: unix.POLLIN}}, 200); err != nil && !errors.Is(err, unix.EINTR) {
			t.Fatal(err)
		}
	}
	t.Errorf("no denial { %s } of %s by %s of %s in the kernel's log, but %v", permission, class, source, target, a.got)
}

// none wants that nothing of InfiniBand was denied.
func (a *audit) none(t testing.TB) {
	t.Helper()
	// The kernel writes denials in their order: when this one is there, all before it are.
	const last = "system_u:system_r:lab_other_t:s0:c1023"
	try(t, last, "manage", madFile(t, first))
	a.expect(t, "manage_subnet", classEndPort, last, endPortLabel)
	for _, d := range a.got {
		if (d.class == classEndPort || d.class == classPKey) && d.source != last {
			t.Errorf("denied: %v", d)
		}
	}
}

// Classes of objects, and the types of the agent's module.
const (
	classEndPort = "infiniband_endport"
	classPKey    = "infiniband_pkey"
	endPortLabel = "system_u:object_r:portcullis_endport_t:s0"
)

func pkeyLabel(categories string) string {
	return fmt.Sprintf("system_u:object_r:portcullis_pkey_t:s0:%s", categories)
}
