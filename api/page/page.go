package page

import (
	"context"
	"fmt"
	"math"
	"slices"
	"sort"
	"strings"
	"time"

	"portcullis/api/store"
	v1 "portcullis/api/v1"
)

const (
	// Default is how many items a page has when none is asked for.
	Default = 1000
	// maxExamined is how many records are looked at for a page. When filters leave out many of them
	// the page is short, or empty, and names a next one: no request reads the whole store.
	maxExamined = 5000
	// Records are read in chunks of as many as are missing, within these bounds.
	minChunk, maxChunk = 64, 512
)

// Size returns how many items a page has at most.
func Size(q v1.PageQuery) int {
	if q.Limit <= 0 {
		return Default
	}
	return min(q.Limit, v1.MaxPage)
}

// Source returns up to limit records in key order, beginning after the key after, or at the first if
// that is empty. Fewer than limit are the last.
type Source[R any] func(ctx context.Context, after string, limit int) ([]store.Record[R], error)

// Of is a Source of a collection.
func Of[R any](n store.Snapshot, c store.Collection[R], prefix string) Source[R] {
	return func(ctx context.Context, after string, limit int) ([]store.Record[R], error) {
		return c.PageBelow(ctx, n, prefix, after, limit)
	}
}

// Among is a Source of the records of a collection at keys, which are sorted. Nothing shows that there are others.
func Among[R any](n store.Snapshot, c store.Collection[R], keys []string) Source[R] {
	return func(ctx context.Context, after string, limit int) ([]store.Record[R], error) {
		first, found := slices.BinarySearch(keys, after)
		if found {
			first++
		}
		var out []store.Record[R]
		for rest := keys[first:]; len(out) < limit && len(rest) > 0; {
			take := min(limit-len(out), len(rest))
			recs, err := c.Of(ctx, n, rest[:take])
			if err != nil {
				return nil, err
			}
			out, rest = append(out, recs...), rest[take:]
		}
		return out, nil
	}
}

// Walk returns the page of a list that q asks for. items makes the item of each record, nil for those
// that the list does not show.
func Walk[R, T any](ctx context.Context, list string, q v1.PageQuery, from Source[R], items func([]store.Record[R]) ([]*T, error)) (*v1.List[T], error) {
	after, err := Parse(list, q.After)
	if err != nil {
		return nil, err
	}
	out, size := &v1.List[T]{Items: []T{}}, Size(q)
	for examined := 0; examined < maxExamined; {
		n := min(max(size-len(out.Items), minChunk), maxChunk, maxExamined-examined)
		recs, err := from(ctx, after, n+1) // one more shows whether others follow
		if err != nil {
			return nil, err
		}
		more := len(recs) > n
		recs = recs[:min(n, len(recs))]
		shown, err := items(recs)
		if err != nil {
			return nil, err
		}
		for i := range recs {
			if after = recs[i].Key; shown[i] == nil {
				continue
			}
			out.Items = append(out.Items, *shown[i])
			if len(out.Items) < size {
				continue
			}
			if more || i < len(recs)-1 {
				out.Next = Cursor(list, after)
			}
			return out, nil
		}
		if !more {
			return out, nil
		}
		examined += len(recs)
	}
	out.Next = Cursor(list, after)
	return out, nil
}

// Each is the items of Walk for a list whose records are shown one by one.
func Each[R, T any](show func(*store.Record[R]) (*T, error)) func([]store.Record[R]) ([]*T, error) {
	return func(recs []store.Record[R]) ([]*T, error) {
		out := make([]*T, len(recs))
		for i := range recs {
			one, err := show(&recs[i])
			if err != nil {
				return nil, err
			}
			out[i] = one
		}
		return out, nil
	}
}

// Cut returns the page of a list that is at hand as a whole, in ascending order of key, which names
// each item.
func Cut[T any](list string, q v1.PageQuery, all []T, key func(*T) string) (*v1.List[T], error) {
	after, err := Parse(list, q.After)
	if err != nil {
		return nil, err
	}
	first := 0
	if after != "" {
		first = sort.Search(len(all), func(i int) bool { return key(&all[i]) > after })
	}
	rest := all[first:]
	out := &v1.List[T]{Items: append([]T{}, rest[:min(Size(q), len(rest))]...)}
	if len(out.Items) < len(rest) {
		out.Next = Cursor(list, key(&out.Items[len(out.Items)-1]))
	}
	return out, nil
}

// Newest is Cut of a list with the last time first, which it sorts. when returns the time and the name of an
// item, which no other has.
func Newest[T any](list string, q v1.PageQuery, all []T, when func(*T) (time.Time, string)) (*v1.List[T], error) {
	key := func(item *T) string {
		at, name := when(item)
		return fmt.Sprintf("%020d/%s", uint64(math.MaxInt64)-uint64(at.UnixNano()), name)
	}
	slices.SortFunc(all, func(a, b T) int { return strings.Compare(key(&a), key(&b)) })
	return Cut(list, q, all, key)
}
