package wallclock

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"portcullis/packaging/testenv"
)

// TestSet: a process that runs sees the time of day jump ahead, back, and be as it was. Its
// monotonic clock, and the time of this process, go on.
func TestSet(t *testing.T) {
	if os.Getenv("WALLCLOCK_SHOW") != "" {
		show()
		return
	}
	if runtime.GOARCH != "amd64" {
		testenv.Need(t, errors.New("a processor of the amd64 architecture"))
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, "-test.run=^TestSet$")
	cmd.Env = append(os.Environ(), "WALLCLOCK_SHOW=1")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()
	lines := bufio.NewScanner(out)
	for _, want := range []time.Duration{0, 3 * time.Hour, 40 * 24 * time.Hour, -2 * time.Hour, 0} {
		err := Set(cmd.Process.Pid, want)
		if errors.Is(err, fs.ErrPermission) {
			testenv.Need(t, err)
		}
		if err != nil {
			t.Fatal(err)
		}
		if _, err := fmt.Fprintln(in); err != nil {
			t.Fatal(err)
		}
		if !lines.Scan() {
			t.Fatalf("after %v the process ended: %v", want, lines.Err())
		}
		var wall, steady, boot int64
		if _, err := fmt.Sscan(lines.Text(), &wall, &steady, &boot); err != nil {
			t.Fatalf("%q: %v", lines.Text(), err)
		}
		if off := time.Until(time.Unix(0, wall)) - want; off.Abs() > 5*time.Second {
			t.Errorf("set to %v, the process sees the time %v off", want, off)
		}
		if time.Duration(steady).Abs() > time.Minute || time.Duration(boot).Abs() > time.Minute {
			t.Errorf("set to %v, clocks that are never set moved by %v and %v", want, time.Duration(steady), time.Duration(boot))
		}
	}
}

// show writes, for each line, the time of day, and what has passed by the clocks that are
// never set, in nanoseconds.
func show() {
	began, boot := time.Now(), boottime()
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		now := time.Now()
		fmt.Println(now.UnixNano(), int64(now.Sub(began)), boottime()-boot)
	}
}

func boottime() int64 {
	var t unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_BOOTTIME, &t)
	return t.Nano()
}

func TestParse(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		maps       string
		start, end uint64
		want       string
	}{
		{"7f00-8f00 rw-p 00000000 00:00 0 [heap]\n7fa32e42e000-7fa32e430000 r-xp 00000000 00:00 0                          [vdso]\n", 0x7fa32e42e000, 0x7fa32e430000, ""},
		{"7f00-8f00 rw-p 00000000 00:00 0 [heap]\n", 0, 0, "no shared object"},
		{"x-y r-xp [vdso]", 0, 0, "map of memory"},
		{"2000-1000 r-xp 0 [vdso]", 0, 0, "map of memory"},
	} {
		start, end, err := parseMaps(c.maps)
		if start != c.start && c.want == "" || end != c.end && c.want == "" || (err != nil) != (c.want != "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %x-%x, %v", c.maps, start, end, err)
		}
	}
	for _, c := range []struct {
		stat, call string
		want       thread
		bad        bool
	}{
		{"7 (a (b) c) T 1 2", "-1 0x7ffd 0x7fa32e42e5d4\n", thread{stopped: true, pc: 0x7fa32e42e5d4}, false},
		{"7 (a) S 1 2", "202 0x1 0x0 0x0 0x0 0x0 0x0 0x7ffd 0x45\n", thread{pc: 0x45}, false},
		{"7 (a) T 1 2", "running\n", thread{}, false},
		{"7 (a) Z 1 2", "0 0x0\n", thread{stopped: true}, false},
		{"", "running\n", thread{}, true},
		{"7 (a) T 1", "1 x\n", thread{}, true},
	} {
		got, err := parseThread(c.stat, c.call)
		if got != c.want || (err != nil) != c.bad {
			t.Errorf("%q, %q: %+v, %v; want %+v", c.stat, c.call, got, err, c.want)
		}
	}
	if _, err := entry([]byte("no object")); err == nil {
		t.Error("what is no object has an entry")
	}
}
