package etcd

import (
	"context"
	"log/slog"
	"net"
	"strings"
	"testing"
)

// TestClustersDiffer: no two new clusters, and no two first members, have the same number, so
// that a member of one takes no part in the other.
func TestClustersDiffer(t *testing.T) {
	t.Parallel()
	seen := map[uint64]bool{}
	for range 2 {
		b, err := startMember(t.Context(), Options{Dir: t.TempDir(), Log: slog.New(slog.DiscardHandler), NoSync: true})
		if err != nil {
			t.Fatal(err)
		}
		server := b.member.(*member).etcd.Server
		for _, id := range []uint64{uint64(server.Cluster().ID()), uint64(server.MemberID())} {
			if seen[id] {
				t.Errorf("two clusters or members have the number %x", id)
			}
			seen[id] = true
		}
		if err := b.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestRecoverRefuses: nothing is recovered that needs it not, or cannot be.
func TestRecoverRefuses(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	o := Options{Dir: dir, Log: slog.New(slog.DiscardHandler), NoSync: true, Cluster: Cluster{Name: "portcullis"}}
	refused := func(why, want string, o Options, lost ...string) {
		t.Helper()
		if _, err := MayRecover(t.Context(), o, lost); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", why, err, want)
		}
	}
	refused("no records", "holds no records", o, "b")
	alone := o
	alone.Cluster = Cluster{}
	st, err := Open(t.Context(), alone)
	if err != nil {
		t.Fatal(err)
	}
	refused("in use", "is in use", o, "b")
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	refused("the only member", "only member", o, "b")
	other := o
	other.Cluster.Name = "a"
	refused("another name", "name no member a", other, "b")
}

func TestLostMembers(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	there := "https://" + l.Addr().String()
	b, c := Member{Name: "b", Peer: there}, Member{Peer: "https://10.0.0.3:2380"}
	for _, tt := range []struct {
		lost []string
		good bool
	}{
		{[]string{"https://10.0.0.3:2380", "b"}, true},
		{[]string{"b"}, false},
		{[]string{"b", "b"}, false},
		{[]string{"b", "c"}, false},
		{nil, false},
	} {
		if err := named([]Member{b, c}, tt.lost); (err == nil) != tt.good {
			t.Errorf("%v: %v", tt.lost, err)
		}
	}
	if err := silent(context.Background(), &b); err == nil || !strings.Contains(err.Error(), there) {
		t.Errorf("a member that accepts connections: %v", err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if err := silent(context.Background(), &b); err != nil {
		t.Errorf("a member that is gone: %v", err)
	}
}
