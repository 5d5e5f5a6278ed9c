package audit

import (
	"context"
	"errors"
	"strconv"
	"strings"

	"portcullis/api/store"
	v1 "portcullis/api/v1"
)

const (
	// pageSize is how many entries are read from the store at once.
	pageSize = 1000
	// maxScan bounds the entries that one page with filters looks at.
	maxScan = 20_000
	// defaultPage is how many entries a page has when the query does not say.
	defaultPage = 1000
)

// ErrCursor is the error for a cursor that no page returned.
var ErrCursor = errors.New("the value of after is not one that a page returned as next")

// Book answers queries about the audit log in Store.
type Book struct{ Store *store.Store }

// Head returns the last entry.
func (b Book) Head(ctx context.Context) (*v1.AuditHead, error) {
	h, err := head(ctx, b.Store)
	return (*v1.AuditHead)(&h), err
}

// List returns a page of the entries that q asks for. The error is ErrCursor, or one of the store.
func (b Book) List(ctx context.Context, q v1.AuditQuery) (*v1.AuditEntries, error) {
	snap, err := b.Store.Snapshot(ctx)
	if err != nil {
		return nil, err
	}
	end, err := head(ctx, snap)
	if err != nil {
		return nil, err
	}
	at, err := cursor(q.After)
	if err != nil {
		return nil, err
	}
	out := &v1.AuditEntries{Items: []v1.AuditEntry{}, Head: v1.AuditHead(end)}
	limit := q.Limit
	if limit <= 0 {
		limit = defaultPage
	}
	limit = min(limit, v1.MaxPage)
	s := scan{snap: snap, newest: q.Newest, at: at, started: q.After != "", end: end.Seq}
	for looked := 0; looked < maxScan; looked++ {
		e, err := s.next(ctx)
		if err != nil {
			return nil, err
		}
		if e == nil {
			return out, nil
		}
		out.Next = strconv.FormatUint(e.Seq, 10)
		if wanted(&q, e) {
			out.Items = append(out.Items, v1.AuditEntry(*e))
		}
		if len(out.Items) == limit {
			break
		}
	}
	return out, nil
}

func cursor(after string) (uint64, error) {
	if after == "" {
		return 0, nil
	}
	seq, err := strconv.ParseUint(after, 10, 64)
	if err != nil {
		return 0, ErrCursor
	}
	return seq, nil
}

func wanted(q *v1.AuditQuery, e *Entry) bool {
	action := q.Action == "" || e.Action == q.Action || strings.HasSuffix(q.Action, ".") && strings.HasPrefix(e.Action, q.Action)
	return action && (q.Actor == "" || e.Actor == q.Actor) && (q.Object == "" || e.Object == q.Object) &&
		!e.Time.Before(q.Since) && (q.Until.IsZero() || e.Time.Before(q.Until))
}

// scan visits entries in either direction, a store page at a time.
type scan struct {
	snap    store.Snapshot
	newest  bool
	at      uint64 // last entry that was visited
	started bool   // at counts
	end     uint64 // last entry there is
	page    []Entry
}

// next returns the next entry, nil after the last.
func (s *scan) next(ctx context.Context) (*Entry, error) {
	if len(s.page) == 0 {
		if err := s.fill(ctx); err != nil || len(s.page) == 0 {
			return nil, err
		}
	}
	i := 0
	if s.newest {
		i = len(s.page) - 1
	}
	e := s.page[i]
	if s.newest {
		s.page = s.page[:i]
	} else {
		s.page = s.page[1:]
	}
	s.at, s.started = e.Seq, true
	return &e, nil
}

// fill reads the next page that has an entry. Records that cannot be read, or are at another place than they say, are left
// out: verification finds them.
func (s *scan) fill(ctx context.Context) error {
	for {
		from, n, last := s.at, uint64(pageSize), s.end
		if s.newest {
			if s.started {
				last = min(s.at-min(s.at, 1), s.end)
			}
			if last == 0 {
				return nil
			}
			n = min(n, last)
			from = last - n
		}
		after := ""
		if from > 0 {
			after = key(from)
		}
		page, more, err := readPage(ctx, s.snap, after, int(n))
		if err != nil {
			return err
		}
		at := from
		for i := range page {
			e := page[i].entry
			at = max(at, page[i].place())
			if e != nil && page[i].place() == e.Seq && (!s.newest || e.Seq <= last) {
				s.page = append(s.page, *e)
			}
		}
		switch {
		case len(s.page) > 0:
			return nil
		case s.newest:
			s.at, s.started = from+1, true
		case !more || at == s.at:
			return nil
		default:
			s.at = at
		}
	}
}
