package guidfile

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"portcullis/fabricsm/ib"
)

// PortLine is a line about one port of a node.
type PortLine struct {
	Node   ib.GUID
	Port   ib.PortNum
	Number int
}

// ParsePortList reads ports of nodes, the format of OpenSM's
// port_prof_ignore_file: a node GUID and a port number from 0 a line. name is what
// errors call the file. All lines that are wrong are reported, those that name a
// port twice too; a list without ports is an error.
func ParsePortList(name string, data []byte) ([]PortLine, error) {
	return portLines(name, data, 0)
}

// ParseWeights reads ports of switches with a number each, the format of OpenSM's
// hop_weights_file: a node GUID, a port number and a number from 1 to most a line.
// Errors are as those of [ParsePortList].
func ParseWeights(name string, data []byte, most int) ([]PortLine, error) {
	return portLines(name, data, most)
}

// portLines reads lines with a number up to most behind the port, none if that is 0.
func portLines(name string, data []byte, most int) (lines []PortLine, err error) {
	type port struct {
		node ib.GUID
		num  ib.PortNum
	}
	var errs []error
	seen, number, listed := make(map[port]int), 0, 0
	for line := range strings.Lines(string(data)) {
		number++
		text, _, _ := strings.Cut(line, "#")
		words := strings.Fields(text)
		if len(words) == 0 {
			continue
		}
		listed++
		l, err := portLine(words, most)
		if err == nil {
			if first := seen[port{l.Node, l.Port}]; first != 0 {
				err = fmt.Errorf("%v port %d is on line %d already", l.Node, l.Port, first)
			}
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("%s:%d: %w", name, number, err))
			continue
		}
		seen[port{l.Node, l.Port}] = number
		lines = append(lines, l)
	}
	if listed == 0 {
		return nil, fmt.Errorf("%s: lists no port; write a GUID and a port number a line", name)
	}
	if more := len(errs) - maxErrors; more > 0 {
		errs = append(errs[:maxErrors], fmt.Errorf("%s: and %d more lines are wrong", name, more))
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	return lines, nil
}

func portLine(words []string, most int) (l PortLine, err error) {
	want, form := 2, "a GUID and a port number"
	if most > 0 {
		want, form = 3, fmt.Sprintf("a GUID, a port number and a number from 1 to %d", most)
	}
	if len(words) != want {
		return l, fmt.Errorf("%d words: want %s", len(words), form)
	}
	if l.Node, err = parse(words[0], nil); err != nil {
		return l, err
	}
	n, err := strconv.Atoi(words[1])
	if err != nil || n < 0 || n > 254 {
		return l, fmt.Errorf("%q: want a port number from 0 to 254", words[1])
	}
	l.Port = ib.PortNum(n)
	if most == 0 {
		return l, nil
	}
	if l.Number, err = strconv.Atoi(words[2]); err != nil || l.Number < 1 || l.Number > most {
		return l, fmt.Errorf("%q: want a number from 1 to %d", words[2], most)
	}
	return l, nil
}
