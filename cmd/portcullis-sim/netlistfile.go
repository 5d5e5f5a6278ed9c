package main

import (
	"fmt"
	"io"
	"os"

	"portcullis/fabricsm/sim/netlist"
)

// maxNetlist bounds what is read of a file, one byte above what a netlist may
// have.
const maxNetlist = 64<<20 + 1

// readNetlist reads a netlist file, "-" meaning standard input.
func readNetlist(name string, stdin io.Reader) (*netlist.Netlist, error) {
	if name == "-" {
		return parseNetlist("standard input", stdin)
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, fmt.Errorf("netlist: %w", err)
	}
	defer f.Close()
	return parseNetlist(name, f)
}

func parseNetlist(name string, r io.Reader) (*netlist.Netlist, error) {
	data, err := io.ReadAll(io.LimitReader(r, maxNetlist))
	if err != nil {
		return nil, fmt.Errorf("netlist: %w", err)
	}
	return netlist.Parse(name, data)
}
