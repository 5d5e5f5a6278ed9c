package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"portcullis/api"
	"portcullis/api/apitest"
	"portcullis/api/fabric/query"
	"portcullis/api/fabric/query/seentest"
	"portcullis/cmd/portcullis/cli"
	"portcullis/packaging/testenv"
)

// Sequences of top and sm top.
const (
	toScreen   = "\x1b[?1049h\x1b[?25l"
	fromScreen = "\x1b[?25h\x1b[?1049l"
	eraseLine  = "\x1b[K"
)

// pty is a pseudo terminal, see pts(4).
func pty(t *testing.T) (master, slave *os.File) {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		testenv.Need(t, fmt.Errorf("a pseudo terminal, which devpts gives: %w", err))
	}
	t.Cleanup(func() { master.Close() })
	fd := int(master.Fd())
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	if slave, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { slave.Close() })
	return master, slave
}

// typescript is what was written to a terminal.
type typescript struct {
	grown chan struct{} // holds one token while there is something new

	mu   sync.Mutex
	text bytes.Buffer
}

func (s *typescript) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case s.grown <- struct{}{}:
	default:
	}
	return s.text.Write(p)
}

func (s *typescript) String() string { s.mu.Lock(); defer s.mu.Unlock(); return s.text.String() }

// await waits until a text was written.
func (s *typescript) await(t *testing.T, text string) {
	t.Helper()
	late := time.After(30 * time.Second)
	for !strings.Contains(s.String(), text) {
		select {
		case <-s.grown:
		case <-late:
			t.Fatalf("the screen never showed %q:\n%q", text, s.String())
		}
	}
}

// TestTopOnATerminal runs top and sm top on a terminal: it draws, follows the size,
// ends with q and with Ctrl-C, and leaves the terminal as it was.
func TestTopOnATerminal(t *testing.T) {
	show := seentest.Run(t, seentest.Tree, seentest.Grants(), nil)
	o := query.New(query.Options{})
	o.OnView(show.Settled())
	s := apitest.Start(t, apitest.NewSite(t), func(opts *api.Options) { opts.Fabric = o })
	for name, c := range map[string]struct {
		args   []string
		shows  string
		narrow uint16 // columns in which a line is too long
		quit   string
	}{
		"sm top, q":      {[]string{"sm", "top", "--interval", "100ms"}, "Settled   yes, revision 7", 30, "q"},
		"sm top, Ctrl-C": {[]string{"sm", "top", "--interval", "100ms"}, "Settled   yes, revision 7", 30, "\x03"},
		"top, q":         {[]string{"top", "--interval", "1s"}, "Hosts      ", 20, "q"},
		"top, Ctrl-C":    {[]string{"top", "--interval", "1s"}, "Hosts      ", 20, "\x03"},
	} {
		t.Run(name, func(t *testing.T) {
			master, slave := pty(t)
			resize(t, master, 24, 80)
			was := settings(t, slave)
			cmd := exec.Command("portcullis", c.args...)
			cmd.Env = append(os.Environ(), "HOME="+t.TempDir(), cli.EnvService+"="+s.URL, cli.EnvCA+"="+s.CAFile, cli.EnvTokenFile+"="+s.ViewerFile)
			cmd.Stdin, cmd.Stdout, cmd.Stderr = slave, slave, slave
			cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			script := &typescript{grown: make(chan struct{}, 1)}
			go func() { _, _ = io.Copy(script, master) }() // ends when the terminal is closed
			script.await(t, toScreen)
			script.await(t, c.shows)
			resize(t, master, 10, c.narrow)
			script.await(t, "…"+eraseLine)
			if _, err := master.WriteString(c.quit); err != nil {
				t.Fatal(err)
			}
			if err := cmd.Wait(); err != nil {
				t.Errorf("ended with %v:\n%q", err, script.String())
			}
			script.await(t, fromScreen)
			if now := settings(t, slave); now != was {
				t.Errorf("the terminal is left with %+v, it was %+v", now, was)
			}
		})
	}
}

func resize(t *testing.T, f *os.File, rows, columns uint16) {
	t.Helper()
	if err := unix.IoctlSetWinsize(int(f.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: rows, Col: columns}); err != nil {
		t.Fatal(err)
	}
}

func settings(t *testing.T, f *os.File) unix.Termios {
	t.Helper()
	s, err := unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS)
	if err != nil {
		t.Fatal(err)
	}
	return *s
}
