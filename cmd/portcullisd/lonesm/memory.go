package lonesm

import (
	"bufio"
	"fmt"
	"os"
	"runtime/debug"
	"strings"

	"golang.org/x/sys/unix"
)

// spareMemory has a Subnet Manager that runs alone hold little more than it needs.
func spareMemory() {
	if os.Getenv("GOGC") == "" { // who sets it decides
		// A bring-up leaves little garbage beside what it keeps, so collecting garbage earlier than programs usually do
		// costs next to nothing.
		debug.SetGCPercent(30)
	}
	forgetProgram()
}

// forgetProgram takes the pages of the program's own file out of this process. Its packages, of which the Subnet Manager
// alone needs few, have read nearly all of them when they started, and the system maps the pages around each. Pages that
// are still needed come back by themselves, a few megabytes, from the file that the system has in its memory anyway. Where
// it cannot be done nothing is lost.
func forgetProgram() {
	program, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return
	}
	maps, err := os.Open("/proc/self/maps")
	if err != nil {
		return
	}
	defer func() { _ = maps.Close() }()
	for lines := bufio.NewScanner(maps); lines.Scan(); {
		var from, to uintptr
		var rights string
		if n, _ := fmt.Sscanf(lines.Text(), "%x-%x %s", &from, &to, &rights); n != 3 {
			continue
		}
		if !strings.HasSuffix(lines.Text(), " "+program) || strings.Contains(rights, "w") {
			continue // pages that are written to are no longer the file's
		}
		_, _, _ = unix.Syscall(unix.SYS_MADVISE, from, to-from, unix.MADV_DONTNEED)
	}
}
