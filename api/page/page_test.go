package page_test

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"portcullis/api/page"
	"portcullis/api/store"
	"portcullis/api/store/memory"
	v1 "portcullis/api/v1"
)

type word struct {
	Text string `json:"text"`
}

func words() store.Collection[word] { return store.NewCollection[word]("words", 1) }

func put(t testing.TB, s *store.Store, keys ...string) {
	t.Helper()
	_, err := s.Update(context.Background(), func(tx *store.Tx) (err error) {
		for _, k := range keys {
			err = errors.Join(err, words().Put(tx, k, word{k}))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func remove(t testing.TB, s *store.Store, keys ...string) {
	t.Helper()
	_, err := s.Update(context.Background(), func(tx *store.Tx) error {
		for _, k := range keys {
			words().Delete(tx, k)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// walk returns one page of the words that keep lets through.
func walk(t testing.TB, s *store.Store, q v1.PageQuery, keep func(string) bool) *v1.List[string] {
	t.Helper()
	snap, err := s.Snapshot(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	out, err := page.Walk(context.Background(), "words", q, page.Of(snap, words(), ""), page.Each(func(r *store.Record[word]) (*string, error) {
		if keep(r.Key) {
			return &r.Value.Text, nil
		}
		return nil, nil
	}))
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func names(n int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = fmt.Sprintf("w%05d", i)
	}
	return out
}

// TestListThatChangesBetweenPages compares pages with the whole list: an entry that neither came nor went meanwhile is in
// exactly one of them, in order.
func TestListThatChangesBetweenPages(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		s := store.New(memory.New(time.Now), "")
		all := names(40)
		stays := func(k string) bool { return k[len(k)-1] < '5' }
		put(t, s, all...)
		var got []string
		q := v1.PageQuery{Limit: rapid.IntRange(1, 15).Draw(rt, "limit")}
		for {
			p := walk(t, s, q, func(string) bool { return true })
			got = append(got, p.Items...)
			if len(p.Items) > q.Limit {
				rt.Fatalf("page of %d items, limit %d", len(p.Items), q.Limit)
			}
			if p.Next == "" {
				break
			}
			q.After = p.Next
			word := rapid.SampledFrom(all).Draw(rt, "word")
			if stays(word) {
				put(t, s, word+"x") // comes
			} else {
				remove(t, s, word)
			}
		}
		if !slices.IsSorted(got) {
			rt.Fatalf("not sorted: %v", got)
		}
		seen := slices.DeleteFunc(slices.Clone(got), func(k string) bool { return len(k) != 6 || !stays(k) })
		want := slices.DeleteFunc(slices.Clone(all), func(k string) bool { return !stays(k) })
		if d := cmp.Diff(want, seen); d != "" {
			rt.Fatalf("what stayed (-want +got):\n%s", d)
		}
	})
}

// TestFiltersThatLeaveOutNearlyAll: one request looks at a bounded number of records, and the
// pages together still find all.
func TestFiltersThatLeaveOutNearlyAll(t *testing.T) {
	s := store.New(memory.New(time.Now), "")
	all := names(11_000)
	put(t, s, all...)
	last := all[len(all)-1]
	var got []string
	pages := 0
	for q := (v1.PageQuery{Limit: 3}); ; pages++ {
		p := walk(t, s, q, func(k string) bool { return k == last })
		if got = append(got, p.Items...); p.Next == "" {
			break
		}
		q.After = p.Next
	}
	if d := cmp.Diff([]string{last}, got); d != "" {
		t.Errorf("items (-want +got):\n%s", d)
	}
	if pages != 2 {
		t.Errorf("%d pages before the last one, want 2 that examined 5000 records each", pages)
	}
}

func TestSizes(t *testing.T) {
	s := store.New(memory.New(time.Now), "")
	put(t, s, names(1500)...)
	for _, tt := range []struct{ limit, want int }{{0, page.Default}, {1, 1}, {1499, 1499}, {1500, 1500}, {5000, 1500}} {
		p := walk(t, s, v1.PageQuery{Limit: tt.limit}, func(string) bool { return true })
		if len(p.Items) != tt.want || (p.Next != "") != (tt.want < 1500) {
			t.Errorf("limit %d: %d items, next %q; want %d", tt.limit, len(p.Items), p.Next, tt.want)
		}
	}
	if got := page.Size(v1.PageQuery{Limit: 1 << 30}); got != v1.MaxPage {
		t.Errorf("a page of 2^30 has %d items, want %d", got, v1.MaxPage)
	}
}

// TestCutIsWalk: a list that is at hand is cut as one in the store.
func TestCutIsWalk(t *testing.T) {
	all := names(25)
	for limit := 1; limit < 27; limit++ {
		var got []string
		for q := (v1.PageQuery{Limit: limit}); ; {
			p, err := page.Cut("words", q, all, func(s *string) string { return *s })
			if err != nil {
				t.Fatal(err)
			}
			if got = append(got, p.Items...); p.Next == "" {
				break
			}
			if len(p.Items) != limit {
				t.Errorf("limit %d: page of %d that is not the last", limit, len(p.Items))
			}
			q.After = p.Next
		}
		if d := cmp.Diff(all, got); d != "" {
			t.Errorf("limit %d (-want +got):\n%s", limit, d)
		}
	}
	p, err := page.Cut("words", v1.PageQuery{}, []string{}, func(s *string) string { return *s })
	if err != nil || p.Items == nil || len(p.Items) != 0 || p.Next != "" {
		t.Errorf("page of nothing: %+v, %v", p, err)
	}
}

func TestCursorsThatNoPageHas(t *testing.T) {
	enc := base64.RawURLEncoding.EncodeToString
	for name, cursor := range map[string]string{
		"no base64":            "what is this?",
		"an offset":            "1000",
		"no list":              enc([]byte("host-1")),
		"no item":              enc([]byte("words\x00")),
		"another list":         page.Cursor("hosts", "host-1"),
		"padding":              page.Cursor("words", "a") + "==",
		"another line":         page.Cursor("words", "a") + "\n",
		"bits behind the last": "d29yZHMAYR",
		"too long":             page.Cursor("words", strings.Repeat("a", 600)),
	} {
		t.Run(name, func(t *testing.T) {
			item, err := page.Parse("words", cursor)
			if !errors.Is(err, page.ErrCursor) || item != "" {
				t.Errorf("got %q, %v; want ErrCursor", item, err)
			}
		})
	}
}

func FuzzCursor(f *testing.F) {
	f.Add(page.Cursor("words", "host-1"))
	f.Add("")
	f.Add("AA")
	f.Fuzz(func(t *testing.T, cursor string) {
		item, err := page.Parse("words", cursor)
		switch {
		case err != nil && !errors.Is(err, page.ErrCursor):
			t.Errorf("%q: %v, want ErrCursor", cursor, err)
		case err == nil && cursor != "" && page.Cursor("words", item) != cursor:
			t.Errorf("%q names %q, whose cursor is another", cursor, item)
		}
	})
}

// TestAmong: a list of some keys is cut as a list that has no others, and a cursor that names another key says nothing of it.
func TestAmong(t *testing.T) {
	s := store.New(memory.New(time.Now), "")
	put(t, s, names(600)...)
	snap, err := s.Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	own := []string{"w00007", "w00100", "w00101", "w00599", "x-gone"}
	among := func(q v1.PageQuery) *v1.List[string] {
		out, err := page.Walk(t.Context(), "words", q, page.Among(snap, words(), own), page.Each(func(r *store.Record[word]) (*string, error) { return &r.Value.Text, nil }))
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	var got []string
	for q := (v1.PageQuery{Limit: 2}); ; {
		p := among(q)
		if got = append(got, p.Items...); p.Next == "" {
			break
		}
		q.After = p.Next
	}
	if d := cmp.Diff(own[:4], got); d != "" {
		t.Errorf("items (-want +got):\n%s", d)
	}
	there, absent := among(v1.PageQuery{After: page.Cursor("words", "w00050")}), among(v1.PageQuery{After: page.Cursor("words", "w00050x")})
	if d := cmp.Diff(absent, there); d != "" || len(there.Items) != 3 {
		t.Errorf("after a key that others have (+), and that nothing has (-):\n%s", d)
	}
}
