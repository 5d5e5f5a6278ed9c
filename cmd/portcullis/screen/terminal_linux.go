package screen

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// terminalSize returns columns and lines, and 80 by 24 for a terminal that does not know its size.
func terminalSize(f *os.File) (width, height int) {
	size, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ)
	if err != nil || size.Col < 20 || size.Row < 5 {
		return 80, 24
	}
	return int(size.Col), int(size.Row)
}

// keysAtOnce has keys read as they are pressed, without echo, and returns the function that restores the old mode. Ctrl-C
// stays a signal.
func keysAtOnce(f *os.File) (restore func(), err error) {
	fd := int(f.Fd())
	was, err := unix.IoctlGetTermios(fd, unix.TCGETS)
	if err != nil {
		return nil, fmt.Errorf("read the settings of the terminal: %w", err)
	}
	raw := *was
	raw.Lflag &^= unix.ECHO | unix.ICANON
	raw.Cc[unix.VMIN], raw.Cc[unix.VTIME] = 1, 0
	if err := unix.IoctlSetTermios(fd, unix.TCSETS, &raw); err != nil {
		return nil, fmt.Errorf("set up the terminal: %w", err)
	}
	return func() {
		// If the terminal is gone there is nothing to restore.
		_ = unix.IoctlSetTermios(fd, unix.TCSETS, was)
	}, nil
}
