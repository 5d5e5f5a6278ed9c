package main

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"portcullis/fabricsm/ib"
)

// keyWord is one entry of the table that `smpquery pkeys` prints.
var keyWord = regexp.MustCompile(`0x[0-9a-f]{4}\b`)

// parsePKeys reads the non-empty entries of a table printed by
// `smpquery pkeys`. Output that has no table is an error.
func parsePKeys(out string) ([]ib.PKey, error) {
	if !strings.Contains(out, "pkeys capacity for this port") {
		return nil, fmt.Errorf("no P_Key table in what smpquery printed: %q", out)
	}
	var keys []ib.PKey
	for _, line := range strings.Split(out, "\n") {
		_, row, ok := strings.Cut(line, ":")
		if !ok {
			continue
		}
		for _, w := range keyWord.FindAllString(row, -1) {
			k, err := ib.ParsePKey(w)
			if err != nil {
				return nil, err
			}
			if k.Valid() {
				keys = append(keys, k)
			}
		}
	}
	return keys, nil
}

// wantedKeys is the table a port must hold: limited member of the default
// partition, and full member of its tenant's partition if it has one.
func wantedKeys(tenant ib.PKey) []ib.PKey {
	if !tenant.Valid() {
		return []ib.PKey{ib.DefaultPKeyLimited}
	}
	return []ib.PKey{ib.DefaultPKeyLimited, tenant.Full()}
}

// sameKeys compares two tables as sets.
func sameKeys(a, b []ib.PKey) bool {
	a, b = slices.Clone(a), slices.Clone(b)
	slices.Sort(a)
	slices.Sort(b)
	return slices.Equal(a, b)
}

// proof is one table read by smpquery and what it should hold.
type proof struct {
	what  string // "host-1-hca-1", "leaf-1 port 3"
	found []ib.PKey
	want  []ib.PKey
}

func (p proof) ok() bool { return sameKeys(p.found, p.want) }
