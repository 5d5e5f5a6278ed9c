package events

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"

	"portcullis/api/audit"
	"portcullis/api/page"
	"portcullis/api/store"
	v1 "portcullis/api/v1"
	"portcullis/fabricsm/ib"
)

const (
	maxText = 512 // of what was expected, seen, and is to be done
	// quietFor is the time without an event after which it is reported again, whatever its number.
	quietFor = 24 * time.Hour
	// kept is how long a row stands after its last time.
	kept = 180 * 24 * time.Hour
)

// row is an event in the store.
type row struct {
	v1.Event
	Told uint64 `json:"told"` // Count when it was last reported
}

func rows() store.Collection[row] { return store.NewCollection[row]("events", 1) }

// keyOf has the source of the event last: a host's own report changes no row of what evidence showed.
func keyOf(e *v1.Event) string {
	adapter := ""
	if e.Adapter != 0 {
		adapter = e.Adapter.String()
	}
	return strings.Join([]string{e.Type, e.Host, adapter, e.Cause, e.By}, "/")
}

// Record records in tx that an event happened, at now. Type, By, Cause, Host, Expected, Seen and Do are the caller's; the
// rest follows, and without Do the cure of the catalogue. If the event is recorded already, its count goes up.
func Record(ctx context.Context, tx *store.Tx, now time.Time, e v1.Event) error {
	k, ok := KindOf(e.Type)
	if !ok || !slices.Contains(k.Causes, e.Cause) || (e.Host == "") != (k.About != "") || !slices.Contains([]string{ByEvidence, ByHost, ByService}, e.By) {
		return fmt.Errorf("event %q of host %q with cause %q, said by %q: there is none", e.Type, e.Host, e.Cause, e.By)
	}
	now = now.UTC().Round(0)
	e.ID, e.Severity, e.First, e.Last = "", k.Severity, now, now
	e.Expected, e.Seen, e.Do = clip(e.Expected), clip(e.Seen), clip(cmp.Or(e.Do, k.Cure))
	was, err := rows().Get(ctx, tx, keyOf(&e))
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return err
	}
	r := row{Event: e, Told: was.Value.Told}
	r.Count = was.Value.Count + 1
	if was.Value.Count > 0 {
		r.First = was.Value.First
	}
	if !k.Often || due(r.Count) || now.Sub(was.Value.Last) >= quietFor {
		r.Told = r.Count
		if err := audit.Append(ctx, tx, entry(&r.Event)); err != nil {
			return err
		}
	}
	return rows().Put(tx, keyOf(&e), r)
}

// due picks the numbers 1, 2, 5, 10, 20, 50 and so on.
func due(n uint64) bool {
	for n >= 10 && n%10 == 0 {
		n /= 10
	}
	return n == 1 || n == 2 || n == 5
}

// entry returns an event as the audit log has it.
func entry(e *v1.Event) audit.Entry {
	return audit.Entry{Time: e.Last, Actor: "service", Action: "event." + e.Type, Object: Object(e), Code: e.Cause, Detail: Text(e)}
}

// Object names what an event is about.
func Object(e *v1.Event) string {
	if e.Adapter != 0 {
		return "lock/" + e.Adapter.String()
	}
	if k, _ := KindOf(e.Type); k.About != "" {
		return k.About
	}
	return "host/" + e.Host
}

// Text says all of an event in one line.
func Text(e *v1.Event) string {
	about := "host " + e.Host
	if k, _ := KindOf(e.Type); k.About != "" {
		about = "the " + k.About
	}
	if e.Adapter != 0 {
		about += ", adapter " + e.Adapter.String()
	}
	text := fmt.Sprintf("%s (%s) of %s, says %s: expected %s, seen %s", e.Type, e.Cause, about, e.By, e.Expected, e.Seen)
	if e.Count > 1 {
		text += fmt.Sprintf("; %d times since %s", e.Count, e.First.Format(time.RFC3339))
	}
	if e.Do != "" {
		text += "; " + e.Do
	}
	return text
}

// clip bounds a text, which may repeat what a host said, and keeps it in one line.
func clip(s string) string {
	s = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(s, "?"))
	if len(s) > maxText {
		return strings.ToValidUTF8(s[:maxText], "") + "..."
	}
	return s
}

// Book shows the recorded events.
type Book struct{ Store *store.Store }

// List returns the events that the query asks for, the one that happened last first.
func (b Book) List(ctx context.Context, q v1.EventQuery) (*v1.Events, error) {
	prefix := ""
	if q.Type != "" {
		prefix = q.Type + "/"
	}
	series, err := SeriesOf(ctx, b.Store)
	if err != nil {
		return nil, err
	}
	list, revision, err := rows().List(ctx, b.Store, prefix)
	if err != nil {
		return nil, err
	}
	all := make([]v1.Event, 0, len(list))
	for i := range list {
		e := series.change(&list[i]).Event
		if Matches(&q, &e) && !e.Last.Before(q.Since) {
			all = append(all, e)
		}
	}
	p, err := page.Newest("events", q.PageQuery, all, func(e *v1.Event) (time.Time, string) { return e.Last, keyOf(e) })
	if err != nil {
		return nil, err
	}
	out := &v1.Events{Items: p.Items, Next: p.Next, Position: Position{series.ID, revision, lastRow}.String()}
	if p.Next != "" {
		last := &p.Items[len(p.Items)-1]
		out.LeftOff = len(all) - 1 - slices.IndexFunc(all, func(e v1.Event) bool { return keyOf(&e) == keyOf(last) })
	}
	return out, nil
}

func rank(severity string) int {
	return slices.Index([]string{Info, Notice, Warning, Critical}, severity)
}

// About returns an event about an adapter of a host.
func About(kind, by, cause, host string, adapter ib.GUID, expected, seen, do string) v1.Event {
	return v1.Event{Type: kind, By: by, Cause: cause, Host: host, Adapter: adapter, Expected: expected, Seen: seen, Do: do}
}

// All returns every recorded event as it is now, in no order.
func All(ctx context.Context, r store.Reader) ([]v1.Event, error) {
	list, _, err := rows().List(ctx, r, "")
	out := make([]v1.Event, 0, len(list))
	for i := range list {
		out = append(out, list[i].Value.Event)
	}
	return out, err
}
