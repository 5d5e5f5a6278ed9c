//go:build vm

package machine

import (
	"encoding/base64"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// Markers are lines that the init program writes around what the test program writes.
const (
	MarkBegin = "vm: begin"
	MarkEnd   = "vm: end"
)

// markFile begins a line with the name and the content of a file.
const markFile = "vm: file "

// FileLine returns the line of the protocol that hands a file out of the machine. The name has no space in it.
func FileLine(name string, content []byte) string {
	return markFile + name + " " + base64.StdEncoding.EncodeToString(content)
}

// Outcome is how a test in the machine ended.
type Outcome struct {
	Name    string // as Go's testing prints it
	Result  string // PASS, FAIL or SKIP
	Seconds string
	Output  string
}

// Protocol is what the test program in the machine wrote on the second serial port.
type Protocol struct {
	Outcomes []Outcome
	Begun    bool              // the test program was started
	Exit     int               // its exit status; -1 if it did not end
	Taint    uint64            // /proc/sys/kernel/tainted when it had ended
	Files    map[string][]byte // what tests handed out, by name
}

// result matches the line by which a test without a parent ends.
var result = regexp.MustCompile(`^--- (PASS|FAIL|SKIP): (\S+) \(([0-9.]+)s\)$`)

// ParseProtocol reads what came through the serial port. Lines that are no result belong to the test that ended next or, where
// they are indented, to the one before.
func ParseProtocol(text string) Protocol {
	p := Protocol{Exit: -1}
	var pending strings.Builder
	for line := range strings.Lines(Clean([]byte(text))) {
		bare := strings.TrimRight(line, "\n")
		if m := result.FindStringSubmatch(bare); m != nil {
			p.Outcomes = append(p.Outcomes, Outcome{Name: m[2], Result: m[1], Seconds: m[3], Output: pending.String()})
			pending.Reset()
			continue
		}
		switch {
		case bare == MarkBegin:
			p.Begun = true
			pending.Reset()
		case strings.HasPrefix(bare, MarkEnd+" "):
			p.Exit, p.Taint = parseEnd(bare)
		case strings.HasPrefix(bare, markFile) && p.file(bare):
		case strings.HasPrefix(bare, "    ") && pending.Len() == 0 && len(p.Outcomes) > 0:
			last := &p.Outcomes[len(p.Outcomes)-1]
			last.Output += line
		default:
			pending.WriteString(line)
		}
	}
	if pending.Len() > 0 && len(p.Outcomes) > 0 {
		p.Outcomes[len(p.Outcomes)-1].Output += pending.String()
	}
	return p
}

// file keeps what a line hands out, and reports whether the line is whole.
func (p *Protocol) file(line string) bool {
	name, text, found := strings.Cut(strings.TrimPrefix(line, markFile), " ")
	content, err := base64.StdEncoding.DecodeString(text)
	if !found || err != nil {
		return false
	}
	if p.Files == nil {
		p.Files = map[string][]byte{}
	}
	p.Files[name] = content
	return true
}

// End returns the last line of a protocol.
func End(exit int, taint uint64) string {
	return fmt.Sprintf("%s exit=%d taint=%d", MarkEnd, exit, taint)
}

func parseEnd(line string) (exit int, taint uint64) {
	exit = -1
	for field := range strings.FieldsSeq(line) {
		if v, ok := strings.CutPrefix(field, "exit="); ok {
			if n, err := strconv.Atoi(v); err == nil {
				exit = n
			}
		}
		if v, ok := strings.CutPrefix(field, "taint="); ok {
			if n, err := strconv.ParseUint(v, 10, 64); err == nil {
				taint = n
			}
		}
	}
	return exit, taint
}

// Bits of /proc/sys/kernel/tainted that mean a defect was found: bad page, oops, warning, soft lock-up. See the kernel's
// admin-guide/tainted-kernels.rst.
const taintOfDefect = 1<<5 | 1<<7 | 1<<9 | 1<<14

// Defects returns the bits of the taint that report a defect. Modules without signature or from outside the kernel's source
// set other bits.
func (p Protocol) Defects() uint64 { return p.Taint & taintOfDefect }
