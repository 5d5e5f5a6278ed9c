package screen

import (
	"bufio"
	"context"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"
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

var styles = map[Style]string{Bold: "\x1b[1m", Good: "\x1b[32m", Busy: "\x1b[33m", Bad: "\x1b[31m"}

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

// draw shows a frame in the present size.
func (s *screen) draw(f Frame) error {
	_, err := s.out.WriteString(paint(f(terminalSize(s.out))))
	return err
}

// Frame draws a screen of a width and height, in characters and lines.
type Frame func(width, height int) []Line

// Watch draws frames until q is pressed or ctx ends. Every interval, next gets what the next frame shows. The terminal is then as it was.
func Watch(ctx context.Context, in, out *os.File, interval time.Duration, f Frame, next func(context.Context)) error {
	t, err := enterScreen(in, out)
	if err != nil {
		return err
	}
	defer t.leave()
	ctx, quit := context.WithCancel(ctx)
	defer quit()
	go func() {
		defer quit()
		untilQuit(in)
	}()
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		if err := t.draw(f); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-t.resized:
		case <-tick.C:
			next(ctx)
		}
	}
}

// untilQuit reads keys until q, Ctrl-C or Ctrl-D.
func untilQuit(in io.Reader) {
	for r := bufio.NewReader(in); ; {
		key, err := r.ReadByte()
		if err != nil || key == 'q' || key == 'Q' || key == 3 || key == 4 {
			return
		}
	}
}

// paint returns the text that draws lines over the old ones, without flicker.
func paint(lines []Line) string {
	var b strings.Builder
	b.WriteString(toTop)
	for i, l := range lines {
		if i > 0 {
			b.WriteString("\r\n")
		}
		if start := styles[l.Style]; start != "" {
			b.WriteString(start + l.Text + noStyle)
		} else {
			b.WriteString(l.Text)
		}
		b.WriteString(eraseLine)
	}
	b.WriteString(eraseBelow)
	return b.String()
}
