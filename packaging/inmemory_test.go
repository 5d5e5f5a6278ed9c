package packaging

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"portcullis/packaging/testenv"
)

// memory returns a folder in a tmpfs.
func memory(t *testing.T) string {
	t.Helper()
	const shm = "/dev/shm"
	var fs unix.Statfs_t
	if err := unix.Statfs(shm, &fs); err != nil || fs.Type != unix.TMPFS_MAGIC {
		testenv.Need(t, errors.New(shm+" is no tmpfs: mount one there"))
	}
	dir, err := os.MkdirTemp(shm, "inmemory-test-") //nolint:usetesting // t.TempDir may be on a disk
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// inMemory returns a call of inmemory.sh that runs a line of shell. The machine needs 1 MiB for it, unless settings say otherwise.
func inMemory(t *testing.T, line string, settings ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "./inmemory.sh", "sh", "-c", line)
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "IN_MEMORY_MIB=1"}, settings...)
	return cmd
}

// TestInMemory: a command has its temporary files in a folder of its own in the tmpfs, which is empty before and after it, and its exit
// code is kept.
func TestInMemory(t *testing.T) {
	t.Parallel()
	tmpfs := memory(t)
	dir := filepath.Join(tmpfs, "pct-"+strconv.Itoa(os.Getuid()))
	const line = `printf %s "$TMPDIR"; [ -z "$(ls -A "$TMPDIR")" ] || exit 9; mkdir -p "$TMPDIR/a/b"; touch "$TMPDIR/a/b/c"; chmod 500 "$TMPDIR/a"; exit 7`
	for range 2 {
		out, err := inMemory(t, line, "IN_MEMORY="+tmpfs).Output()
		if exit, ok := errors.AsType[*exec.ExitError](err); !ok || exit.ExitCode() != 7 {
			t.Errorf("%v, want exit code 7", err)
		}
		if string(out) != dir {
			t.Errorf("temporary files were in %q, want %q", out, dir)
		}
		info, err := os.Stat(dir)
		if err != nil || info.Mode().Perm() != 0o700 {
			t.Errorf("the folder: %v, %v, want 0700", info, err)
		}
		empty(t, dir)
		// A run that was killed left this.
		if err := os.WriteFile(filepath.Join(dir, "left"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func empty(t *testing.T, dir string) {
	t.Helper()
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("in %s there is %v, %v", dir, left, err)
	}
}

// A run that begins, and one that ends, leave the files of others. The last one to end leaves none.
func TestInMemoryBeside(t *testing.T) {
	t.Parallel()
	tmpfs := memory(t)
	var ends []func()
	for _, name := range []string{"first", "second"} {
		cmd := inMemory(t, `touch "$TMPDIR/$NAME"; echo made; read -r line; ls "$TMPDIR/$NAME"`, "IN_MEMORY="+tmpfs, "NAME="+name)
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
		if _, err := io.ReadFull(out, make([]byte, len("made\n"))); err != nil {
			t.Fatal(err)
		}
		ends = append(ends, func() {
			t.Helper()
			_, err := in.Write([]byte("\n"))
			said, errRead := io.ReadAll(out)
			if err := errors.Join(err, errRead, cmd.Wait()); err != nil {
				t.Errorf("the %s run's file was removed under it: %v: %s", name, err, said)
			}
		})
	}
	for _, end := range ends {
		end()
	}
	empty(t, filepath.Join(tmpfs, "pct-"+strconv.Itoa(os.Getuid())))
}

// TestNotInMemory: where there is no place in memory, or another place is named, the command runs as if it were called itself.
func TestNotInMemory(t *testing.T) {
	t.Parallel()
	tmpfs := memory(t)
	disk, err := os.MkdirTemp("/var/tmp", "inmemory-test-") //nolint:usetesting // t.TempDir may be in memory
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(disk); err != nil {
			t.Error(err)
		}
	})
	foreign := filepath.Join(tmpfs, "foreign")
	if err := os.MkdirAll(filepath.Join(foreign, "elsewhere"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("elsewhere", filepath.Join(foreign, "pct-"+strconv.Itoa(os.Getuid()))); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		settings []string
		want     string
	}{
		"another place is named":       {[]string{"IN_MEMORY=" + tmpfs, "TMPDIR=/named"}, "/named"},
		"no tmpfs":                     {[]string{"IN_MEMORY=" + disk}, ""},
		"no folder":                    {[]string{"IN_MEMORY=/absent"}, ""},
		"too little memory":            {[]string{"IN_MEMORY=" + tmpfs, "IN_MEMORY_MIB=1000000000"}, ""},
		"a link has the folder's name": {[]string{"IN_MEMORY=" + foreign}, ""},
	} {
		out, err := inMemory(t, `printf %s "${TMPDIR-}"`, c.settings...).CombinedOutput()
		if err != nil || string(out) != c.want {
			t.Errorf("%s: temporary files are in %q, %v, want %q", name, out, err, c.want)
		}
	}
	out, err := exec.CommandContext(t.Context(), "./inmemory.sh").CombinedOutput()
	if err == nil || !strings.HasPrefix(string(out), "usage: packaging/inmemory.sh COMMAND") {
		t.Errorf("without a command: %q, %v", out, err)
	}
}
