package etcd_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"portcullis/api/ca"
	"portcullis/api/store"
	"portcullis/api/store/etcd"
	"portcullis/api/store/etcd/etcdtest"
	"portcullis/api/store/storetest"
	"portcullis/packaging/testenv"
)

// openRemote opens a store on a foreign etcd; the test closes it.
func openRemote(t testing.TB, r etcd.Remote, prefix string) *store.Store {
	t.Helper()
	s, err := etcd.Open(t.Context(), etcd.Options{Remote: r, Prefix: prefix, Log: storetest.Quiet()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("close store: %v", err)
		}
	})
	return s
}

// TestForeignEtcd runs the suite on Debian's etcd, by a user that may access only the keys of the suite.
func TestForeignEtcd(t *testing.T) {
	t.Parallel()
	c := etcdtest.Start(t, 1)
	c.User("portcullis", "secret-1", "suites")
	n, shared := 0, openRemote(t, c.RemoteAs("portcullis", "secret-1"), "suites")
	storetest.Conformance(t, func(testing.TB) *store.Store {
		n++
		return store.New(shared.Backend(), fmt.Sprintf("suites/%d", n))
	})
}

// TestForeignRefusals holds that a store which cannot be used says where and why.
func TestForeignRefusals(t *testing.T) {
	t.Parallel()
	c := etcdtest.Start(t, 1)
	c.User("portcullis", "secret-1", "portcullis")
	other, err := ca.New("another CA", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	stranger, err := other.IssueClient("machine", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	dead := "https://" + testenv.Address(t) // where nothing listens
	at := c.Endpoints()[0]
	for _, tt := range []struct {
		name   string
		remote func() etcd.Remote
		prefix string
		want   []string
	}{
		{"wrong CA", func() etcd.Remote {
			r := c.RemoteAs("portcullis", "secret-1")
			r.TLS = withCA(t, r, other)
			return r
		}, "", []string{at, "unknown authority"}},
		{"certificate of another CA", func() etcd.Remote {
			r := c.RemoteAs("portcullis", "secret-1")
			r.TLS.Certificates = nil
			pair, err := keyPair(stranger)
			if err != nil {
				t.Fatal(err)
			}
			r.TLS.Certificates = append(r.TLS.Certificates, pair)
			return r
		}, "", []string{at, "certificate"}},
		{"no certificate", func() etcd.Remote {
			r := c.RemoteAs("portcullis", "secret-1")
			r.TLS.Certificates = nil
			return r
		}, "", []string{at, "certificate"}},
		{"wrong password", func() etcd.Remote { return c.RemoteAs("portcullis", "secret-2") }, "", []string{at, "portcullis", "password"}},
		{"unknown user", func() etcd.Remote { return c.RemoteAs("mallory", "secret-1") }, "", []string{at, "mallory"}},
		{"no user", func() etcd.Remote { return c.Remote() }, "", []string{at, "etcd.user"}},
		{"keys of others", func() etcd.Remote { return c.RemoteAs("portcullis", "secret-1") }, "others", []string{at, "readwrite"}},
		{"nothing listens", func() etcd.Remote {
			r := c.RemoteAs("portcullis", "secret-1")
			r.Endpoints = []string{dead}
			return r
		}, "", []string{dead, "refused"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := tt.remote()
			r.DialTimeout = 3 * time.Second
			r.RequestTimeout = 3 * time.Second
			s, err := etcd.Open(t.Context(), etcd.Options{Remote: r, Prefix: tt.prefix, Log: storetest.Quiet()})
			if err == nil {
				s.Close()
				t.Fatal("the store was opened")
			}
			for _, want := range tt.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%q does not say %q", err, want)
				}
			}
			if strings.Contains(err.Error(), "secret-") {
				t.Errorf("%q shows the password", err)
			}
		})
	}
}

// TestForeignLeaderLost holds that a write which has no quorum is not acknowledged, that
// a watch ends instead of being silent, and that both go on when the quorum is back.
func TestForeignLeaderLost(t *testing.T) {
	t.Parallel()
	c := etcdtest.Start(t, 3)
	r := c.Remote()
	r.RequestTimeout = 5 * time.Second
	s := openRemote(t, r, "")
	put := func(ctx context.Context, key string) (int64, error) {
		return s.Update(ctx, func(tx *store.Tx) error { return words().Put(tx, key, word{key}) })
	}
	from, err := put(t.Context(), "before")
	if err != nil {
		t.Fatal(err)
	}
	c.Kill(0)
	eventually(t, "a write without one of three", func() error { _, err := put(t.Context(), "two"); return err })

	events := words().Watch(t.Context(), s, from)
	if ev := <-events; ev.Key != "two" {
		t.Fatalf("watch sent %+v, want the record two", ev)
	}
	c.Halt(1)
	if _, err := put(t.Context(), "lost"); err == nil {
		t.Error("a write without quorum was acknowledged")
	} else if !strings.Contains(err.Error(), c.Endpoints()[2]) {
		t.Errorf("%q names no endpoint", err)
	}
	c.Continue(1)
	c.Kill(1)
	for ev := range events { // ends, since its member has no leader or is gone
		if ev.Err == nil && ev.Key != "lost" {
			t.Errorf("watch sent %+v", ev)
		}
	}
	c.Restart(0)
	eventually(t, "a write after the quorum came back", func() error { _, err := put(t.Context(), "after"); return err })
	eventually(t, "what was acknowledged", func() error {
		for _, key := range []string{"before", "two", "after"} {
			if _, err := words().Get(t.Context(), s, key); err != nil {
				return fmt.Errorf("%s: %w", key, err)
			}
		}
		return nil
	})
}

// TestForeignCompactedWatch holds that a watch from before a compaction says so.
func TestForeignCompactedWatch(t *testing.T) {
	c := etcdtest.Start(t, 1)
	s := openRemote(t, c.Remote(), "")
	var last int64
	for i := range 5 {
		var err error
		if last, err = s.Update(t.Context(), func(tx *store.Tx) error { return words().Put(tx, "k", word{fmt.Sprint(i)}) }); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := c.Client("", "").Compact(t.Context(), last); err != nil {
		t.Fatal(err)
	}
	ev := <-words().Watch(t.Context(), s, last-4)
	if !errors.Is(ev.Err, store.ErrCompacted) {
		t.Errorf("got %+v, want ErrCompacted", ev)
	}
}

// TestForeignLocalDirectory holds that the state directory is locked and numbered also
// where the records are elsewhere, and that records in it are not left behind.
func TestForeignLocalDirectory(t *testing.T) {
	c := etcdtest.Start(t, 1)
	dir := t.TempDir()
	options := etcd.Options{Dir: dir, Remote: c.Remote(), Log: storetest.Quiet(), Version: "1.2.3"}
	s, err := etcd.Open(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	var inUse *etcd.InUseError
	if _, err := etcd.Open(t.Context(), options); !errors.As(err, &inUse) {
		t.Errorf("a second service: %v, want *InUseError", err)
	}
	if text, err := os.ReadFile(filepath.Join(dir, "format")); err != nil || !strings.HasPrefix(string(text), fmt.Sprint(etcd.Format, " 1.2.3")) {
		t.Errorf("format %q, %v", text, err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(dir, "etcd", "member"), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := etcd.Open(t.Context(), options); err == nil || !strings.Contains(err.Error(), "move") {
		t.Errorf("a directory with records: %v, want a refusal that says what to do", err)
	}
}

// TestForeignNewerRecords holds that records of a newer service are refused, and not
// changed.
func TestForeignNewerRecords(t *testing.T) {
	c := etcdtest.Start(t, 1)
	client := c.Client("", "")
	text := fmt.Sprint(etcd.Format+1, " 9.1.0\n")
	if _, err := client.Put(t.Context(), "portcullis/format", text); err != nil {
		t.Fatal(err)
	}
	_, err := etcd.Open(t.Context(), etcd.Options{Remote: c.Remote(), Log: storetest.Quiet()})
	newer, ok := errors.AsType[*etcd.NewerError](err)
	if !ok || newer.Format != etcd.Format+1 || newer.Since != "9.1.0" {
		t.Errorf("got %v, want *NewerError since 9.1.0", err)
	}
	got, err := client.Get(t.Context(), "portcullis/", clientPrefix())
	if err != nil || len(got.Kvs) != 1 || string(got.Kvs[0].Value) != text {
		t.Errorf("the records are %v, %v; want the format alone", got, err)
	}
}

func TestEndpoints(t *testing.T) {
	for endpoint, ok := range map[string]bool{
		"https://etcd1.example:2379": true, "https://[2001:db8::1]:2379": true, "http://127.0.0.1:2379": true,
		"http://localhost:2379": true, "http://etcd1.example:2379": false, "http://192.0.2.1:2379": false,
		"etcd1.example:2379": false, "https://etcd1.example": false, "https://a:b@etcd1.example:2379": false,
		"https://etcd1.example:2379/v3": false, "unix:///run/etcd:2379": false, "": false,
	} {
		if err := etcd.CheckEndpoint(endpoint); (err == nil) != ok {
			t.Errorf("CheckEndpoint(%q): %v, want accepted: %v", endpoint, err, ok)
		}
	}
	for prefix, ok := range map[string]bool{
		"portcullis": true, "site/fabric-1": true, "": false, "/a": false, "a/": false, "a b": false, "a\x00": false,
		strings.Repeat("a", 129): false,
	} {
		if err := etcd.CheckPrefix(prefix); (err == nil) != ok {
			t.Errorf("CheckPrefix(%q): %v, want accepted: %v", prefix, err, ok)
		}
	}
}

// TestAdminRecords: the records of a store are read and written by an administrator, too.
func TestAdminRecords(t *testing.T) {
	c := etcdtest.Start(t, 1)
	a, err := etcd.Administer(t.Context(), c.Remote(), storetest.Quiet())
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	words := store.NewCollection[string]("words", 1)
	if _, err := a.Records("site").Update(t.Context(), func(tx *store.Tx) error { return words.Put(tx, "one", "written") }); err != nil {
		t.Fatal(err)
	}
	if got, err := words.Get(t.Context(), openRemote(t, c.Remote(), "site"), "one"); err != nil || got.Value != "written" {
		t.Errorf("the service reads %q, %v", got.Value, err)
	}
	if got, err := words.Get(t.Context(), a.Records("other"), "one"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("below another prefix there is %q, %v", got.Value, err)
	}
}

// TestAdminRevoke: of two lists that were made from the same one, the second is refused. What the authority of the cluster
// did not sign is no list.
func TestAdminRevoke(t *testing.T) {
	c := etcdtest.Start(t, 1)
	a, err := etcd.Administer(t.Context(), c.Remote(), storetest.Quiet())
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	authority := revoker(t)
	member := &etcd.Cluster{CA: authority.file}
	if list, revision, err := a.Revoked(t.Context(), "site", member); list != nil || revision != 0 || err != nil {
		t.Fatalf("a fresh cluster has list %v of revision %d, %v", list, revision, err)
	}
	if err := a.Revoke(t.Context(), "site", authority.list(t, 1), 0); err != nil {
		t.Fatal(err)
	}
	if err := a.Revoke(t.Context(), "site", authority.list(t, 2), 0); err == nil || !strings.Contains(err.Error(), "another machine") {
		t.Errorf("a list made from an older one is taken: %v", err)
	}
	list, revision, err := a.Revoked(t.Context(), "site", member)
	if err != nil || len(list.RevokedCertificateEntries) != 1 || list.RevokedCertificateEntries[0].SerialNumber.Int64() != 1 {
		t.Fatalf("in force is %+v, %v, want the first list", list, err)
	}
	if err := a.Revoke(t.Context(), "site", authority.list(t, 1, 2), revision); err != nil {
		t.Fatal(err)
	}
	if list, _, err := a.Revoked(t.Context(), "site", member); err != nil || len(list.RevokedCertificateEntries) != 2 {
		t.Errorf("in force is %+v, %v, want both", list, err)
	}
	if _, _, err := a.Revoked(t.Context(), "site", &etcd.Cluster{CA: revoker(t).file}); err == nil {
		t.Error("a list of another authority is taken")
	}
}

// listMaker is an authority that revokes certificates, with its certificate in a file.
type listMaker struct {
	*ca.Authority
	file string
}

func revoker(t *testing.T) listMaker {
	t.Helper()
	a, err := ca.New("cluster", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	pair, err := a.PEM()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "ca.crt")
	if err := os.WriteFile(file, pair.Cert, 0o600); err != nil {
		t.Fatal(err)
	}
	return listMaker{a, file}
}

func (l listMaker) list(t *testing.T, serials ...int64) []byte {
	t.Helper()
	var all []*big.Int
	for _, s := range serials {
		all = append(all, big.NewInt(s))
	}
	der, err := l.Revoke(all, nil, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	return der
}

// The later of the configuration's list and the state directory's counts.
func TestLatestRevoked(t *testing.T) {
	authority := revoker(t)
	first, second := authority.list(t, 1), authority.list(t, 1, 2)
	for _, tt := range []struct{ configured, followed, want []byte }{
		{first, nil, first},
		{first, second, second},
		{second, first, second},
		{first, []byte("no list"), first},
	} {
		dir := t.TempDir()
		file := filepath.Join(dir, "revoked.crl")
		if err := os.WriteFile(file, tt.configured, 0o600); err != nil {
			t.Fatal(err)
		}
		if tt.followed != nil {
			if err := os.WriteFile(filepath.Join(dir, "cluster-revoked"), tt.followed, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if got, err := etcd.LatestRevoked(file, dir); err != nil || !bytes.Equal(got, tt.want) {
			t.Errorf("%d bytes, %v, want %d", len(got), err, len(tt.want))
		}
	}
}
