// Package screen draws frames on a terminal again and again, as top does.
package screen

import (
	"strings"
	"time"

	"portcullis/cmd/portcullis/cli"
)

// Style is how a line is shown on a terminal.
type Style uint8

// Styles.
const (
	Normal Style = iota
	Bold
	Good
	Busy
	Bad
)

// Line is one line of a frame.
type Line struct {
	Style Style
	Text  string
}

// Styled returns a line.
func Styled(s Style, text string) Line { return Line{s, text} }

// Section puts an empty line and a title before lines, and keeps to a number of lines. Without room for one line there is nothing.
func Section(title string, lines []Line, room int) []Line {
	var out []Line
	if room < 3 || len(lines) == 0 {
		return nil
	}
	out = append(out, Line{})
	if title != "" {
		out = append(out, Line{Bold, title})
	}
	return append(out, lines[:min(len(lines), room-len(out))]...)
}

// Fit cuts lines to a width and a height, and takes what no terminal may get from them. Height 0 keeps all lines.
func Fit(lines []Line, width, height int) []Line {
	if height > 0 {
		lines = lines[:min(len(lines), height)]
	}
	for i := range lines {
		lines[i].Text = strings.TrimRight(cut(cli.Plain(lines[i].Text), width), " ")
	}
	return lines
}

// cut keeps the first runes of a text.
func cut(s string, width int) string {
	if r := []rune(s); len(r) > width {
		return string(r[:max(0, width-1)]) + "…"
	}
	return s
}

// Spread puts two texts at the ends of a line.
func Spread(left, right string, width int) string {
	gap := width - len(left) - len(right)
	return left + strings.Repeat(" ", max(2, gap)) + right
}

// Clock is a time of day in UTC.
func Clock(t time.Time) string { return t.UTC().Format("15:04:05") }
