package sm

import (
	"os"
	"os/signal"
	"strings"
	"syscall"
)

// Sequences that every terminal of the last decades knows (ECMA-48, xterm).
const (
	toScreen   = "\x1b[?1049h\x1b[?25l" // the other screen, no cursor
	fromScreen = "\x1b[?25h\x1b[?1049l"
	toTop      = "\x1b[H"
	eraseLine  = "\x1b[K"
	eraseBelow = "\x1b[J"
	noStyle    = "\x1b[0m"
)

var styles = map[style]string{bold: "\x1b[1m", good: "\x1b[32m", busy: "\x1b[33m", bad: "\x1b[31m"}

// screen is a terminal that is drawn on as a whole.
type screen struct {
	out     *os.File
	restore func()
	resized chan os.Signal
}

// enterScreen takes a terminal. It must be left again.
func enterScreen(in, out *os.File) (*screen, error) {
	restore, err := keysAtOnce(in)
	if err != nil {
		return nil, err
	}
	s := &screen{out: out, restore: restore, resized: make(chan os.Signal, 1)}
	signal.Notify(s.resized, syscall.SIGWINCH)
	if _, err := out.WriteString(toScreen); err != nil {
		s.leave()
		return nil, err
	}
	return s, nil
}

// leave restores the terminal.
func (s *screen) leave() {
	signal.Stop(s.resized)
	// If the terminal is gone, the error cannot be shown.
	_, _ = s.out.WriteString(fromScreen)
	s.restore()
}

// draw shows a sample in the present size.
func (s *screen) draw(sample *sample) error {
	width, height := terminalSize(s.out)
	_, err := s.out.WriteString(paint(frame(sample, width, height)))
	return err
}

// paint returns the text that draws lines over the old ones, without flicker.
func paint(lines []line) string {
	var b strings.Builder
	b.WriteString(toTop)
	for i, l := range lines {
		if i > 0 {
			b.WriteString("\r\n")
		}
		if start := styles[l.style]; start != "" {
			b.WriteString(start + l.text + noStyle)
		} else {
			b.WriteString(l.text)
		}
		b.WriteString(eraseLine)
	}
	b.WriteString(eraseBelow)
	return b.String()
}
