package backup

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"filippo.io/age"

	"portcullis/api/audit"
	"portcullis/api/backup/archive"
	"portcullis/api/refusal"
	"portcullis/api/store"
	"portcullis/api/store/memory"
	"portcullis/api/store/storetest"
	"portcullis/api/tenancy"
	v1 "portcullis/api/v1"
)

var began = time.Date(2026, 11, 26, 9, 0, 0, 0, time.UTC)

// fixture is a store with tenants and an audit log, and a service that backs it up.
type fixture struct {
	store   *store.Store
	service *Service
	id      *age.X25519Identity
	dir     string
	now     time.Time
}

func newFixture(t *testing.T, s *store.Store) *fixture {
	t.Helper()
	id, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	f := &fixture{store: s, id: id, dir: t.TempDir(), now: began}
	f.service = New(Options{
		Store: s, Recipients: []*age.X25519Recipient{id.Recipient()}, Directory: f.dir, State: 1, Version: "test",
		Log: slog.New(slog.DiscardHandler), Now: func() time.Time { return f.now },
	})
	return f
}

func inMemory() *store.Store { return store.New(memory.New(time.Now), "") }

// tenants puts n tenants, each with its entry in the audit log.
func tenants(t *testing.T, s *store.Store, n int) {
	t.Helper()
	for i := range n {
		_, err := s.Update(t.Context(), func(tx *store.Tx) error {
			name := fmt.Sprintf("t%04d", i)
			return errors.Join(
				tenancy.Tenants().Put(tx, name, tenancy.Tenant{Name: name, Created: began}),
				audit.Append(t.Context(), tx, audit.Entry{Time: began, Actor: "ann", Action: "tenant.create", Object: "tenant/" + name}),
			)
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

func (f *fixture) read(t *testing.T, name string) (map[string][]byte, archive.Header) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(f.dir, name))
	if err != nil {
		t.Fatal(err)
	}
	got := map[string][]byte{}
	h, _, err := archive.Read(bytes.NewReader(data), int64(len(data)), []age.Identity{f.id}, nil, func(i archive.Item) error {
		got[i.Key] = i.Value
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return got, h
}

// A backup is of one revision, over more pages than one, with each engine.
func TestCreate(t *testing.T) {
	for name, open := range map[string]func() *store.Store{
		"memory": inMemory, "embedded": func() *store.Store { return storetest.Open(t) },
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, open())
			tenants(t, f.store, pageSize+5)
			want := map[string][]byte{}
			snap, err := f.store.Snapshot(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			all, err := snap.Items(t.Context(), "", 10_000)
			if err != nil {
				t.Fatal(err)
			}
			for _, i := range all {
				want[i.Key] = i.Value
			}
			head, err := audit.Latest(t.Context(), f.store)
			if err != nil {
				t.Fatal(err)
			}
			b, err := f.service.Create(t.Context(), "ann")
			if err != nil {
				t.Fatal(err)
			}
			got, h := f.read(t, b.Name)
			if len(got) != len(want) || b.Records != int64(len(want)) {
				t.Errorf("%d records, said to be %d; want %d", len(got), b.Records, len(want))
			}
			for k, v := range want {
				if !bytes.Equal(got[k], v) {
					t.Errorf("record %s: %q, want %q", k, got[k], v)
				}
			}
			if h.Audit != head || h.Revision != snap.Revision || h.Origin == "" || h.State != 1 || v1.AuditHead(head) != b.Audit {
				t.Errorf("header %+v, want revision %d and audit head %+v", h, snap.Revision, head)
			}
			entry := lastEntry(t, f.store)
			if entry.Actor != "ann" || entry.Action != "backup.create" || !strings.Contains(entry.Detail, b.SHA256) || !strings.HasSuffix(entry.Object, b.Name) {
				t.Errorf("audit log: %+v", entry)
			}
			if v, err := f.service.Verify(t.Context(), b.Name); err != nil || v.SHA256 != b.SHA256 {
				t.Errorf("verified: %+v, %v", v, err)
			}
		})
	}
}

func lastEntry(t *testing.T, s *store.Store) v1.AuditEntry {
	t.Helper()
	page, err := audit.Book{Store: s}.List(t.Context(), v1.AuditQuery{Newest: true, Limit: 1})
	if err != nil || len(page.Items) != 1 {
		t.Fatalf("%+v, %v", page, err)
	}
	return page.Items[0]
}

// The keys that package archive knows the audit log by are those it has.
func TestAuditKeys(t *testing.T) {
	s := inMemory()
	tenants(t, s, 1)
	snap, err := s.Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	items, err := snap.Items(t.Context(), "", 10)
	if err != nil || len(items) != 3 || items[0].Key != archive.EntryPrefix+"00000000000000000001" || items[1].Key != archive.HeadKey {
		t.Errorf("items %+v, %v", items, err)
	}
}

func TestStream(t *testing.T) {
	f := newFixture(t, inMemory())
	tenants(t, f.store, 3)
	var b bytes.Buffer
	if err := f.service.Stream(t.Context(), "ann", func(v1.Backup) io.Writer { return &b }); err != nil {
		t.Fatal(err)
	}
	if h, _, err := archive.Digest(bytes.NewReader(b.Bytes()), int64(b.Len())); err != nil || h.Revision == 0 {
		t.Errorf("%+v, %v", h, err)
	}
	if e := lastEntry(t, f.store); e.Action != "backup.stream" || e.Object != "backup" {
		t.Errorf("audit log: %+v", e)
	}
	before := lastEntry(t, f.store).Seq
	if err := f.service.Stream(t.Context(), "ann", func(v1.Backup) io.Writer { return broken{} }); err == nil {
		t.Error("a stream that broke off is no error")
	}
	if lastEntry(t, f.store).Seq == before {
		t.Error("a stream that broke off is not in the audit log, though its reader may have all of it")
	}
}

type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

func code(err error) string {
	if e, ok := errors.AsType[*refusal.Error](err); ok {
		return e.Code
	}
	return fmt.Sprint(err)
}

func TestRefusals(t *testing.T) {
	f := newFixture(t, inMemory())
	tenants(t, f.store, 1)
	end, err := f.service.begin()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.service.Create(t.Context(), "ann"); code(err) != "backup_running" {
		t.Errorf("a second one: %v", err)
	}
	end()
	for _, name := range []string{"", "../x", "none" + Suffix, "..", "/etc/passwd"} {
		if _, err := f.service.Verify(t.Context(), name); code(err) != "backup_unknown" {
			t.Errorf("verify %q: %v", name, err)
		}
		if _, err := f.service.Open(name); code(err) != "backup_unknown" {
			t.Errorf("open %q: %v", name, err)
		}
	}
	bare := New(Options{Store: f.store, Log: slog.New(slog.DiscardHandler)})
	if _, err := bare.Create(t.Context(), "ann"); code(err) != "no_directory" {
		t.Errorf("without a directory: %v", err)
	}
	if err := bare.Stream(t.Context(), "ann", func(v1.Backup) io.Writer { return io.Discard }); code(err) != "no_recipients" {
		t.Errorf("without recipients: %v", err)
	}
	if list, err := bare.List(t.Context()); err != nil || list.Items == nil || len(list.Items) != 0 {
		t.Errorf("list without a directory: %+v, %v", list, err)
	}
	if err := os.RemoveAll(f.dir); err != nil {
		t.Fatal(err)
	}
	if _, err := f.service.Create(t.Context(), "ann"); code(err) != "backup_failed" {
		t.Errorf("a directory that is gone: %v", err)
	}
}

// Old files go when a new one is whole; a damaged one neither counts nor goes, and is shown with its problem.
func TestKeep(t *testing.T) {
	f := newFixture(t, inMemory())
	f.service.o.Keep = 2
	tenants(t, f.store, 1)
	damaged := filepath.Join(f.dir, "20200101T000000Z-1"+Suffix)
	if err := os.WriteFile(damaged, []byte("no header"), 0o600); err != nil {
		t.Fatal(err)
	}
	var made []string
	for range 4 {
		f.now = f.now.Add(time.Hour)
		b, err := f.service.Create(t.Context(), "ann")
		if err != nil {
			t.Fatal(err)
		}
		made = append(made, b.Name)
	}
	list, err := f.service.List(t.Context())
	if err != nil || len(list.Items) != 3 {
		t.Fatalf("%+v, %v", list, err)
	}
	if list.Items[0].Name != made[3] || list.Items[1].Name != made[2] || list.Items[2].Problem == "" {
		t.Errorf("listed: %+v", list.Items)
	}
	if _, err := f.service.Verify(t.Context(), filepath.Base(damaged)); code(err) != "backup_damaged" {
		t.Errorf("verify the damaged one: %v", err)
	}
	if newest, configured, err := f.service.Newest(); err != nil || !configured || !newest.Equal(f.now) {
		t.Errorf("newest backup of %v, configured %v, %v; want %v", newest, configured, err, f.now)
	}
	left, err := filepath.Glob(filepath.Join(f.dir, ".making-*"))
	if err != nil || len(left) != 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func TestRecipients(t *testing.T) {
	id, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	if got, err := Recipients([]string{id.Recipient().String()}); err != nil || len(got) != 1 {
		t.Errorf("%v, %v", got, err)
	}
	_, err = Recipients([]string{id.String()}) // the identity, by mistake
	if err == nil || strings.Contains(err.Error(), id.String()) {
		t.Errorf("an identity: %v, want an error that does not show it", err)
	}
}
