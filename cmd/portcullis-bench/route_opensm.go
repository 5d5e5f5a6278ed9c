package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/route"
	"portcullis/fabricsm/sim/netlist"
	"portcullis/fabricsm/topo"
	"portcullis/fabricsm/transport/ibsim/ibsimlab"
)

// opensmRoutes has OpenSM bring a fabric up with a routing engine, takes the time of
// the routing computation from its log, and has our checker judge its tables.
func opensmRoutes(ctx context.Context, list *netlist.Netlist, engine string) (r *routed, err error) {
	var file bytes.Buffer
	if _, err := list.WriteTo(&file); err != nil {
		return nil, fmt.Errorf("write netlist: %w", err)
	}
	lab, err := ibsimlab.Start(ctx, ibsimlab.Options{Netlist: file.Bytes()})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, lab.Stop()) }()
	ctx, cancel := context.WithTimeout(ctx, routingLimit)
	defer cancel()
	log := filepath.Join(lab.Dir(), "osm.log")
	cmd, err := lab.Client().Command(ctx, "sm", "opensm", "-f", log, "-e", "-s", "0", "-d2", "-n", "32", "-R", engine, "-D", "0x47")
	if err != nil {
		return nil, err
	}
	cmd.Env = append(cmd.Env, "OSM_TMP_DIR="+lab.Dir())
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start opensm: %w", err)
	}
	_, err = subnetUp(ctx, log)
	if err = errors.Join(err, stopOpenSM(cmd)); err != nil {
		return nil, err
	}
	r = &routed{who: "OpenSM " + engine}
	took, err := routingTime(log)
	if err != nil {
		return nil, err
	}
	r.seconds = []float64{took}
	return r, r.judge(list, filepath.Join(lab.Dir(), "opensm-lfts.dump"))
}

// routingLimit is how long OpenSM may take for one fabric.
const routingLimit = time.Minute

func routingTime(log string) (float64, error) {
	data, err := os.ReadFile(log)
	if err != nil {
		return 0, fmt.Errorf("read log of opensm: %w", err)
	}
	var from, to time.Time
	for line := range strings.Lines(string(data)) {
		switch {
		case from.IsZero() && strings.Contains(line, "building routing with"):
			from, err = stamp(line)
		case !from.IsZero() && strings.Contains(line, "tables configured on all switches"):
			to, err = stamp(line)
		}
		if err != nil {
			return 0, err
		}
		if !to.IsZero() {
			return to.Sub(from).Seconds(), nil
		}
	}
	return 0, errors.New("log of opensm does not say when routing began and ended")
}

// judge has the checker judge a dump of forwarding tables.
func (r *routed) judge(list *netlist.Netlist, dump string) error {
	file, err := os.Open(dump)
	if errors.Is(err, fs.ErrNotExist) {
		return errNoTables
	}
	if err != nil {
		return fmt.Errorf("read tables of opensm: %w", err)
	}
	defer file.Close()
	rows, lids, err := readLFTs(bufio.NewScanner(file))
	if err != nil {
		return err
	}
	b := build(list)
	dealLIDs(b, lids)
	f := b.Freeze()
	t, err := route.Found(f, func(id topo.NodeID) []ib.PortNum { return rows[f.Node(id).GUID] })
	if err != nil {
		return fmt.Errorf("tables of opensm: %w", err)
	}
	r.report = route.Check(f, t)
	switch n := r.report.Counts[route.NoRoute]; {
	case r.report.CreditLoop != nil:
		r.note = "with a credit loop"
	case n > 0:
		r.note = fmt.Sprintf("%d entries without a route", n)
	case r.report.Err() != nil:
		r.note = "refused by our checker"
	}
	return nil
}

// readLFTs reads opensm-lfts.dump: rows by the GUID of the switch, and the LIDs of
// ports.
func readLFTs(in *bufio.Scanner) (map[ib.GUID][]ib.PortNum, map[ib.GUID]ib.LID, error) {
	rows, lids := make(map[ib.GUID][]ib.PortNum), make(map[ib.GUID]ib.LID)
	var row *[]ib.PortNum
	var at ib.GUID
	for in.Scan() {
		line := in.Text()
		if _, rest, ok := strings.Cut(line, " guid "); ok && strings.HasPrefix(line, "Unicast lids") {
			guid, _, _ := strings.Cut(rest, " ")
			g, err := strconv.ParseUint(strings.TrimPrefix(guid, "0x"), 16, 64)
			if err != nil {
				return nil, nil, fmt.Errorf("dump of tables: %q: %w", line, err)
			}
			if row != nil {
				rows[at] = *row
			}
			at, row = ib.GUID(g), new([]ib.PortNum)
			continue
		}
		if row == nil || !strings.HasPrefix(line, "0x") {
			continue
		}
		if err := readEntry(line, row, lids); err != nil {
			return nil, nil, fmt.Errorf("dump of tables: %q: %w", line, err)
		}
	}
	if row != nil {
		rows[at] = *row
	}
	if err := in.Err(); err != nil {
		return nil, nil, fmt.Errorf("dump of tables: %w", err)
	}
	return rows, lids, nil
}

// readEntry reads "0x0001 007 : (Channel Adapter portguid 0x...: 'name')".
func readEntry(line string, row *[]ib.PortNum, lids map[ib.GUID]ib.LID) error {
	if len(line) < 10 {
		return errors.New("too short")
	}
	lid, err := strconv.ParseUint(line[2:6], 16, 16)
	if err != nil {
		return err
	}
	port, err := strconv.ParseUint(line[7:10], 10, 8)
	if err != nil {
		return err
	}
	for len(*row) <= int(lid) {
		*row = append(*row, ib.NoPort)
	}
	(*row)[lid] = ib.PortNum(port)
	if len(lids) > 0 && len(*row) <= len(lids) {
		return nil
	}
	if _, rest, ok := strings.Cut(line, "portguid "); ok && len(rest) >= 18 {
		g, err := strconv.ParseUint(rest[2:18], 16, 64)
		if err != nil {
			return err
		}
		lids[ib.GUID(g)] = ib.LID(lid)
	}
	return nil
}
