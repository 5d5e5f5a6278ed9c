package query

import (
	"io"
	"slices"
	"strings"

	"portcullis/api/refusal"
	"portcullis/fabricsm/mcast"
	"portcullis/fabricsm/route/dump"
	"portcullis/fabricsm/topo"
)

// Formats of dumps, in the order of help texts.
const (
	FormatDiscover = "ibnetdiscover"     // what ibnetdiscover prints; also what portcullis fabric diff reads
	FormatSubnet   = "opensm-subnet-lst" // opensm-subnet.lst
	FormatLFTs     = "opensm-lfts"       // opensm-lfts.dump
	FormatFDBs     = "opensm-fdbs"       // opensm.fdbs
	FormatMFDBs    = "opensm-mcfdbs"     // opensm.mcfdbs
	FormatGUIDs    = "guid2lid"          // guid2lid
	FormatSLs      = "ibdmchk-path-sl"   // ibdmchk -c
	FormatSL2VL    = "ibdmchk-sl2vl"     // ibdmchk -d
)

// Formats lists every format.
func Formats() []string {
	return []string{FormatDiscover, FormatSubnet, FormatLFTs, FormatFDBs, FormatMFDBs, FormatGUIDs, FormatSLs, FormatSL2VL}
}

// maxDumps is how many dumps are written at a time: each may be hundreds of
// megabytes, at the pace of its reader.
const maxDumps = 4

// Dump returns a function that writes the fabric in a format; node limits FormatLFTs to one switch. All of a dump is of one
// moment. The function must be called, once.
func (o *Observer) Dump(format, node string) (func(io.Writer) error, error) {
	x, err := o.seen()
	if err != nil {
		return nil, err
	}
	write, err := x.dump(format, node)
	if err != nil {
		return nil, err
	}
	if o.dumps.Add(1) > maxDumps {
		o.dumps.Add(-1)
		return nil, &refusal.Error{
			Code: "dumps_busy", Status: refusal.Limited, Detail: "other dumps are being written", Hint: "try again when they are done",
		}
	}
	return func(w io.Writer) error {
		defer o.dumps.Add(-1)
		return write(w)
	}, nil
}

// trees returns the multicast trees, none before there are any.
func (x *index) trees() []mcast.Tree {
	if x.Multicast == nil {
		return nil
	}
	return x.Multicast.Trees
}

func (x *index) dump(format, node string) (func(io.Writer) error, error) {
	f, t := x.Fabric, x.Tables
	switch {
	case !slices.Contains(Formats(), format):
		return nil, &refusal.Error{
			Code: "format_unknown", Status: refusal.Invalid, Detail: "there is no dump format " + format,
			Hint: "the formats are " + strings.Join(Formats(), ", "),
		}
	case node != "" && format != FormatLFTs:
		return nil, &refusal.Error{
			Code: "format_whole", Status: refusal.Invalid, Detail: "a dump in format " + format + " is of the whole fabric",
			Hint: "leave the switch out, or use " + FormatLFTs,
		}
	case t == nil && format != FormatDiscover && format != FormatSubnet && format != FormatGUIDs:
		return nil, noTables()
	}
	switches := f.Switches()
	if node != "" {
		id, err := x.ready().onlySwitch(node)
		if err != nil {
			return nil, err
		}
		switches = []topo.NodeID{id}
	}
	return func(w io.Writer) error {
		switch format {
		case FormatDiscover:
			return dump.Discovered(w, f, dump.Origin{Time: x.Time.UTC(), Port: x.GUID})
		case FormatSubnet:
			return dump.SubnetSeenFrom(w, f, x.GUID)
		case FormatFDBs:
			return dump.FDBs(w, f, t)
		case FormatMFDBs:
			return mcast.WriteFDBs(w, f, x.trees())
		case FormatGUIDs:
			return dump.GUIDs(w, f)
		case FormatSLs:
			return dump.PathSLs(w, f, t)
		case FormatSL2VL:
			return dump.SL2VL(w, f, t)
		default:
			return dump.LFTsOf(w, f, t, switches)
		}
	}, nil
}
