// Package enginelist creates routing engines from a list of names, such as "torus-2QoS,updn", and of the files that they read.
//
// [route.First] tries the engines in that order until one returns tables that the checker accepts, and reports why it
// rejected the others. Nothing is added to the list: if all fail, the previous tables stay.
package enginelist

import (
	"fmt"
	"slices"
	"strings"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/route"
	"portcullis/fabricsm/route/dfp"
	"portcullis/fabricsm/route/dfsssp"
	"portcullis/fabricsm/route/dnup"
	"portcullis/fabricsm/route/dor"
	"portcullis/fabricsm/route/ftree"
	"portcullis/fabricsm/route/lftfile"
	"portcullis/fabricsm/route/minhop"
	"portcullis/fabricsm/route/nexthop"
	"portcullis/fabricsm/route/torus"
	"portcullis/fabricsm/route/updn"
)

// Default is the list for callers that name no engine.
const Default = "minhop,updn"

// noFallback ends lists that are made for OpenSM, which adds minhop to others.
const noFallback = "no_fallback"

// Settings is the input of the engines. Each engine uses the fields that it needs.
type Settings struct {
	// Lanes is to how many virtual lanes engines may assign routes, 1 to [route.MaxLayers]; 0 is 1.
	Lanes int
	// Roots are node GUIDs of the switches on top of updn and ftree.
	Roots []ib.GUID
	IDs   map[ib.GUID]int // of switches that are equally high, for updn
	// ComputeNodes and IONodes are port GUIDs, for ftree.
	ComputeNodes, IONodes []ib.GUID
	// MaxReverseHops is how many links routes of ftree from and to I/O nodes may
	// go down before they go up again; below 0: as many as they must.
	MaxReverseHops int
	// PortOrder has ports in the order of dimensions, for dor, by node GUID of
	// switches.
	PortOrder map[ib.GUID][]ib.PortNum
	Torus     *torus.Config   // nil: recognised by its cables
	Groups    map[ib.GUID]int // of a dragonfly+, by node GUID of switches; empty: recognised
	LFTs      *lftfile.Tables // content of the engine file
	// Share is how destinations share links, for minhop, updn, dnup, ftree and dfsssp.
	Share   nexthop.Share
	Weights []minhop.Weight // of ports, for minhop
}

// makers returns the engines by name.
func (s *Settings) makers() map[string]route.Engine {
	return map[string]route.Engine{
		"minhop":     minhop.Engine{Share: s.Share, Weights: s.Weights},
		"updn":       updn.Engine{Roots: s.Roots, IDs: s.IDs, Share: s.Share},
		"ftree":      s.ftree(),
		"dor":        dor.Engine{Lanes: s.Lanes, Ports: s.PortOrder},
		"dnup":       dnup.Engine{Share: s.Share},
		"dfp":        dfp.Engine{Groups: s.Groups, Lanes: s.Lanes},
		"dfsssp":     dfsssp.Engine{Lanes: s.Lanes, Share: s.Share},
		"file":       lftfile.Engine{Tables: s.LFTs},
		"torus-2QoS": torus.Engine{Config: s.Torus, Lanes: s.Lanes},
	}
}

func (s *Settings) ftree() ftree.Engine {
	return ftree.Engine{
		Roots: s.Roots, ComputeNodes: s.ComputeNodes, IONodes: s.IONodes,
		LimitReverse: s.MaxReverseHops >= 0, MaxReverseHops: s.MaxReverseHops, Share: s.Share,
	}
}

// Names returns the names of all engines, in order.
func Names() []string {
	s := &Settings{}
	var names []string
	for name := range s.makers() {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// Check reports an error in a list of names: commas between them, in any case; "no_fallback" may stand at the end and
// changes nothing. Nil: no error.
func Check(list string) error {
	_, err := names(list)
	return err
}

// names returns the names of a list as [Names] writes them.
func names(list string) ([]string, error) {
	known := Names()
	words := strings.Split(list, ",")
	var chosen []string
	for i, word := range words {
		word = strings.TrimSpace(word)
		if strings.EqualFold(word, noFallback) {
			if i == 0 || i < len(words)-1 {
				return nil, fmt.Errorf("%q stands at the end of a list, after the engines", noFallback)
			}
			break
		}
		at := slices.IndexFunc(known, func(name string) bool { return strings.EqualFold(name, word) })
		switch {
		case at < 0:
			return nil, fmt.Errorf("there is no routing engine %q: want some of %s", word, strings.Join(known, ", "))
		case slices.Contains(chosen, known[at]):
			return nil, fmt.Errorf("routing engine %s is listed twice", known[at])
		}
		chosen = append(chosen, known[at])
	}
	return chosen, nil
}

// Engines returns the engines of a list. Errors are those of [Check].
func (s *Settings) Engines(list string) ([]route.Engine, error) {
	chosen, err := names(list)
	if err != nil {
		return nil, err
	}
	makers := s.makers()
	engines := make([]route.Engine, len(chosen))
	for i, name := range chosen {
		engines[i] = makers[name]
	}
	return engines, nil
}
