// Package readertest compares what two readings of a fabric found, for tests.
package readertest

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"portcullis/fabricsm/proof/reader"
)

// Facts returns everything that was read, and the owners, without the order in which devices were found.
func Facts(f *reader.Found) string {
	var lines []string
	for i := range f.Fabric.Devices {
		d := &f.Fabric.Devices[i]
		lines = append(lines, fmt.Sprintf("%v %v %v lft %v defaults %v mft %v", d.GUID, d.Type, d.Owner, d.LFT, d.MulticastDefaults, d.MFT.How))
		for _, lid := range slices.Sorted(maps.Keys(d.MFT.Value)) {
			lines = append(lines, fmt.Sprintf("%v group %v %v", d.GUID, lid, d.MFT.Value[lid]))
		}
		for num := range d.Ports {
			p := &d.Ports[num]
			lines = append(lines, fmt.Sprintf("%v port %d %v behind %v port %d: %v %v %v %v", d.GUID, num, p.Owner,
				f.Fabric.Devices[p.Cable.Device].GUID, p.Cable.Port, p.State, p.PKeys, p.Check, p.Aliases))
		}
	}
	for _, u := range f.Unknown {
		lines = append(lines, u.String())
	}
	for _, e := range f.Ends {
		lines = append(lines, fmt.Sprintf("end %v %v %v", e.At, e.GUID, f.Fabric.Devices[e.Port.Device].GUID))
	}
	for _, g := range f.Guards {
		lines = append(lines, fmt.Sprintf("guard %v port %d %v", f.Fabric.Devices[g.Port.Device].GUID, g.Port.Port, g.Guard))
	}
	for _, l := range f.Lanes {
		lines = append(lines, fmt.Sprintf("lanes %v port %d in by %d %v", f.Fabric.Devices[l.Port.Device].GUID, l.Port.Port, l.In, l.Table))
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// Differences returns a line for each fact that only one of two readings found.
func Differences(got, want *reader.Found) (lines []string) {
	a, b := strings.Split(Facts(got), "\n"), strings.Split(Facts(want), "\n")
	for _, line := range a {
		if !slices.Contains(b, line) {
			lines = append(lines, "found, and not there: "+line)
		}
	}
	for _, line := range b {
		if !slices.Contains(a, line) {
			lines = append(lines, "there, and not found: "+line)
		}
	}
	return lines
}
