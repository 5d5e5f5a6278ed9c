package audit

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"portcullis/api/store"
	"portcullis/api/store/memory"
	v1 "portcullis/api/v1"
)

func seqs(t *testing.T, b Book, q v1.AuditQuery) (got []uint64, next string) {
	t.Helper()
	page, err := b.List(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range page.Items {
		got = append(got, e.Seq)
	}
	return got, page.Next
}

func TestList(t *testing.T) {
	s := store.New(memory.New(time.Now), "")
	if page, err := (Book{s}).List(t.Context(), v1.AuditQuery{Newest: true}); err != nil || len(page.Items) != 0 || page.Items == nil || page.Next != "" {
		t.Errorf("an empty log: %+v, %v", page, err)
	}
	appended(t, s, 5)
	b := Book{s}
	for _, tt := range []struct {
		name string
		q    v1.AuditQuery
		want []uint64
	}{
		{"all", v1.AuditQuery{}, []uint64{1, 2, 3, 4, 5}},
		{"newest", v1.AuditQuery{Newest: true}, []uint64{5, 4, 3, 2, 1}},
		{"object", v1.AuditQuery{Object: "host/h2"}, []uint64{3}},
		{"another actor", v1.AuditQuery{Actor: "bob"}, nil},
		{"action", v1.AuditQuery{Action: "host.assign", Limit: 2}, []uint64{1, 2}},
		{"actions of hosts", v1.AuditQuery{Action: "host.", Limit: 2, Newest: true}, []uint64{5, 4}},
		{"part of an action", v1.AuditQuery{Action: "host"}, nil},
		{"times", v1.AuditQuery{Since: start.Add(time.Second), Until: start.Add(3 * time.Second)}, []uint64{2, 3}},
		{"after", v1.AuditQuery{After: "3"}, []uint64{4, 5}},
		{"newest after", v1.AuditQuery{After: "3", Newest: true}, []uint64{2, 1}},
		{"newest after the first", v1.AuditQuery{After: "1", Newest: true}, nil},
		{"after the end", v1.AuditQuery{After: "99"}, nil},
		{"newest after the end", v1.AuditQuery{After: "99", Newest: true, Limit: 1}, []uint64{5}},
	} {
		got, _ := seqs(t, b, tt.q)
		if d := cmp.Diff(tt.want, got); d != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, d)
		}
	}
	for _, bad := range []string{"x", "-1", "1.5"} {
		if _, err := b.List(t.Context(), v1.AuditQuery{After: bad}); !errors.Is(err, ErrCursor) {
			t.Errorf("cursor %q: %v", bad, err)
		}
	}
}

// Pages in either direction visit each entry once, also over the bounds of what is read from the store at once.
func TestPages(t *testing.T) {
	s := store.New(memory.New(time.Now), "")
	const n = pageSize + 7
	if _, err := s.Update(t.Context(), func(tx *store.Tx) error {
		for i := range n {
			e := Entry{Time: start, Actor: "alice", Action: "host.assign", Object: fmt.Sprintf("host/h%d", i)}
			if err := Append(t.Context(), tx, e); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	for _, newest := range []bool{false, true} {
		q := v1.AuditQuery{Newest: newest, Limit: 300}
		seen := map[uint64]int{}
		for range n {
			got, next := seqs(t, Book{s}, q)
			for _, seq := range got {
				seen[seq]++
			}
			if q.After = next; next == "" {
				break
			}
		}
		for seq := uint64(1); seq <= n; seq++ {
			if seen[seq] != 1 {
				t.Fatalf("newest %v: entry %d was in %d pages", newest, seq, seen[seq])
			}
		}
		if len(seen) != n {
			t.Errorf("newest %v: %d entries, want %d", newest, len(seen), n)
		}
	}
	if _, err := Verify(t.Context(), s); err != nil {
		t.Error(err)
	}
}
