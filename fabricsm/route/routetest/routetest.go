// Package routetest routes fabrics in tests, and judges what comes of it.
package routetest

import (
	"testing"

	"portcullis/fabricsm/route"
	"portcullis/fabricsm/topo"
)

// Must routes a fabric with an engine, after prev if there was one, and ends the
// test unless the checker accepts the tables.
func Must(t testing.TB, e route.Engine, f *topo.Fabric, prev *route.Tables) (*route.Tables, route.Report) {
	t.Helper()
	tables, err := e.Route(f, prev)
	if err != nil {
		t.Fatal(err)
	}
	r := route.Check(f, tables)
	if err := r.Err(); err != nil {
		t.Fatal(err)
	}
	return tables, r
}
