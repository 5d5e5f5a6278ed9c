package admission

import (
	"errors"
	"strconv"
	"testing"

	"portcullis/api/ifmatch"
	"portcullis/api/refusal"
	v1 "portcullis/api/v1"
)

// TestEpochNamesOneTenancy repeats commands of one tenancy in the next one. None changes it.
func TestEpochNamesOneTenancy(t *testing.T) {
	l := newLab(t, member.Open(t))
	l.addHosts(1)
	l.tenantWithClusters("lattice", "b")
	at := func(epoch int64) []string { return []string{strconv.FormatInt(epoch, 10)} }
	assign := func(epoch int64, cluster string) error {
		_, err := l.svc.Assign(ifmatch.With(l.ctx(), at(epoch)), "alice", "host-1", v1.Assignment{Cluster: cluster})
		return err
	}
	release := func(epoch int64) error {
		_, err := l.svc.Release(ifmatch.With(l.ctx(), at(epoch)), "alice", "host-1")
		return err
	}
	for _, step := range []struct {
		what string
		do   func() error
		want string // code of the refusal
	}{
		{"assign", func() error { return assign(0, "lattice") }, ""},
		{"the same assign, late", func() error { return assign(0, "lattice") }, v1.CodeChanged},
		{"release", func() error { return release(1) }, ""},
		{"assign to b", func() error { return assign(1, "b") }, ""},
		{"the first release, late", func() error { return release(1) }, v1.CodeChanged},
		{"the first assign, late", func() error { return assign(0, "lattice") }, v1.CodeChanged},
		{"a release of a tenancy to come", func() error { return release(3) }, v1.CodeChanged},
		{"a release that names nothing", func() error {
			_, err := l.svc.Release(ifmatch.With(l.ctx(), nil), "alice", "host-1")
			return err
		}, v1.CodeChanged},
	} {
		err := step.do()
		e, refused := errors.AsType[*refusal.Error](err)
		if step.want == "" && err != nil || step.want != "" && (!refused || e.Status != refusal.Changed || e.Code != step.want) {
			t.Fatalf("%s: %v, want code %q", step.what, err, step.want)
		}
	}
	if h := l.host("host-1"); h.Cluster != "b" || h.Epoch != 2 {
		t.Errorf("the host is in cluster %q by assignment %d, want b by 2", h.Cluster, h.Epoch)
	}
	if err := release(2); err != nil {
		t.Fatal(err)
	}
}
