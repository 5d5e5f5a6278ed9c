package guidfile

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"portcullis/fabricsm/ib"
)

// maxNumber is the largest number that a GUID may have.
const maxNumber = 1<<31 - 1

// ParseNumbers reads a list of GUIDs with a number each, the format of OpenSM's
// ids_guid_file: a GUID and a number from 0 a line, "#" begins a comment. name
// is what errors call the file. All lines that are wrong are reported; a list
// without GUIDs is an error.
func ParseNumbers(name string, data []byte) (map[ib.GUID]int, error) {
	numbers := make(map[ib.GUID]int)
	err := eachLine(name, data, func(guid ib.GUID, words []string) error {
		if len(words) != 1 {
			return errors.New("want a GUID and a number")
		}
		n, err := strconv.Atoi(words[0])
		if err != nil || n < 0 || n > maxNumber {
			return fmt.Errorf("%q: want a number from 0 to %d", words[0], maxNumber)
		}
		numbers[guid] = n
		return nil
	})
	if err != nil {
		return nil, err
	}
	return numbers, nil
}

// ParsePorts reads an order of ports for some switches, the format of OpenSM's
// port_search_ordering_file: a node GUID and port numbers, the first to be taken
// first. Errors are as those of [ParseNumbers]; a port that is named twice is
// one.
func ParsePorts(name string, data []byte) (map[ib.GUID][]ib.PortNum, error) {
	ports := make(map[ib.GUID][]ib.PortNum)
	err := eachLine(name, data, func(guid ib.GUID, words []string) error {
		var order []ib.PortNum
		var seen [256]bool
		for _, word := range words {
			n, err := strconv.Atoi(word)
			if err != nil || n < 1 || n > 254 {
				return fmt.Errorf("%q: want a port number from 1 to 254", word)
			}
			if seen[n] {
				return fmt.Errorf("port %d is named twice", n)
			}
			seen[n] = true
			order = append(order, ib.PortNum(n))
		}
		if len(order) == 0 {
			return errors.New("want a GUID and port numbers")
		}
		ports[guid] = order
		return nil
	})
	if err != nil {
		return nil, err
	}
	return ports, nil
}

// eachLine visits the lines of a list that begin with a GUID, each of which may
// be there once.
func eachLine(name string, data []byte, visit func(guid ib.GUID, words []string) error) error {
	var errs []error
	seen, number, listed := make(map[ib.GUID]int), 0, 0
	for line := range strings.Lines(string(data)) {
		number++
		text, _, _ := strings.Cut(line, "#")
		words := strings.Fields(text)
		if len(words) == 0 {
			continue
		}
		listed++
		g, err := parse(words[0], seen)
		if err == nil {
			seen[g] = number
			err = visit(g, words[1:])
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("%s:%d: %w", name, number, err))
		}
	}
	if listed == 0 {
		return fmt.Errorf("%s: lists no GUID; write one a line", name)
	}
	if more := len(errs) - maxErrors; more > 0 {
		errs = append(errs[:maxErrors], fmt.Errorf("%s: and %d more lines are wrong", name, more))
	}
	return errors.Join(errs...)
}
