package query

import (
	"fmt"
	"log/slog"
	"path"
	"reflect"
	"strings"
	"sync"
	"time"

	v1 "portcullis/api/v1"
	"portcullis/fabricsm/driver"
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/sm"
	"portcullis/fabricsm/sm/violation"
)

// kept is how many events, and how many settlements, are remembered.
const (
	keptEvents  = 100
	keptSettles = 20
)

// history remembers what happened last.
type history struct {
	mu      sync.Mutex
	events  []told // a ring, next is the oldest
	next    int
	kind    reflect.Type // of the last event
	row     int          // how many of that type came in a row
	settles []settledAt
	times   settleTimes
	counts  map[reflect.Type]uint64 // events by type
}

// told is an event, or the last of several of a type that came one after the other.
type told struct {
	at    time.Time
	event sm.Event
	count uint64
	owner owner // of the place that it accuses
}

// alone is how many events of a type in a row are kept one by one.
const alone = 3

type settledAt struct {
	at    time.Time
	event *sm.Settled
}

func (h *history) add(now time.Time, e sm.Event, who owner) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.counts == nil {
		h.counts = map[reflect.Type]uint64{}
	}
	h.counts[reflect.TypeOf(e)]++
	if s, ok := e.(*sm.Settled); ok {
		if len(h.settles) == keptSettles {
			h.settles = append(h.settles[:0], h.settles[1:]...)
		}
		h.settles = append(h.settles, settledAt{now, s})
		h.times.add(s)
	}
	kind := reflect.TypeOf(e)
	if kind != h.kind {
		h.kind, h.row = kind, 0
	}
	if h.row++; h.row > alone+1 {
		t := &h.events[(h.next+len(h.events)-1)%len(h.events)]
		t.at, t.event, t.owner = now, e, who
		t.count++
		return
	}
	if len(h.events) < keptEvents {
		h.events = append(h.events, told{now, e, 1, who})
		return
	}
	h.events[h.next] = told{now, e, 1, who}
	h.next = (h.next + 1) % keptEvents
}

// last returns up to n events, newest last.
func (h *history) last(n int) []v1.SMEvent {
	h.mu.Lock()
	all := append(append([]told{}, h.events[h.next:]...), h.events[:h.next]...)
	h.mu.Unlock()
	all = all[max(0, len(all)-n):]
	out := make([]v1.SMEvent, 0, len(all))
	for _, t := range all {
		out = append(out, v1.SMEvent{Time: t.at.UTC(), Event: EventName(t.event), Level: LevelName(t.event), Text: t.event.String(), Fields: t.fields(), Count: t.count})
	}
	return out
}

// fields returns what an event is about, with the names of the hosts it accuses.
func (t *told) fields() map[string]string {
	out := EventFields(t.event)
	if t.owner.host != "" {
		out["host"] = t.owner.host
	}
	if t.owner.tenant != "" {
		out["tenant"] = t.owner.tenant
	}
	return out
}

func (h *history) settled() []v1.SettledWork {
	h.mu.Lock()
	defer h.mu.Unlock()
	out := make([]v1.SettledWork, 0, len(h.settles))
	for _, s := range h.settles {
		out = append(out, v1.SettledWork{
			Time: s.at.UTC(), Revision: s.event.Revision, Cause: s.event.Cause, SMPs: s.event.Work,
			Seconds: s.event.Took.Seconds(),
		})
	}
	return out
}

// LevelName names the weight of an event: "debug", "info" or "warning".
func LevelName(e sm.Event) string {
	switch l := driver.Level(e); {
	case l >= slog.LevelWarn:
		return "warning"
	case l >= slog.LevelInfo:
		return "info"
	default:
		return "debug"
	}
}

// EventName is the name of an event's type, in words: "port-placed". Those of subnet
// administration begin with "sa-".
func EventName(e sm.Event) string { return typeName(reflect.TypeOf(e)) }

func typeName(t reflect.Type) string {
	name := words(t.Elem().Name(), '-')
	if path.Base(t.Elem().PkgPath()) == "sa" {
		return "sa-" + name
	}
	return name
}

// words puts a separator between the words of a Go name and makes them small.
func words(name string, separator byte) string {
	var b strings.Builder
	for i := range len(name) {
		c := name[i]
		if upper(c) && i > 0 && !upper(name[i-1]) {
			b.WriteByte(separator)
		}
		b.WriteString(strings.ToLower(string(c)))
	}
	return b.String()
}

func upper(c byte) bool { return 'A' <= c && c <= 'Z' }

// EventFields returns what an event is about, by names such as "guid", "place", "p_key", "lid", "seconds". Fields that say
// nothing are left out.
func EventFields(e sm.Event) map[string]string {
	out := map[string]string{}
	addFields(out, reflect.ValueOf(e).Elem())
	return out
}

func addFields(out map[string]string, v reflect.Value) {
	for i := range v.NumField() {
		f := v.Type().Field(i)
		switch {
		case !f.IsExported():
			continue
		case f.Anonymous && f.Type.Kind() == reflect.Struct:
			addFields(out, v.Field(i))
			continue
		}
		name, value := fieldName(f.Name), v.Field(i).Interface()
		switch value := value.(type) {
		case time.Duration:
			if name != "seconds" {
				name += "_seconds"
			}
			out[name] = fmt.Sprintf("%.6f", value.Seconds())
		case ib.Place:
			if !value.IsZero() {
				out[name] = value.String()
			}
		case bool, violation.Kind, violation.Verdict:
			out[name] = fmt.Sprint(value)
		case time.Time:
			if !value.IsZero() {
				out[name] = value.UTC().Format(time.RFC3339Nano)
			}
		default:
			if !v.Field(i).IsZero() {
				out[name] = fmt.Sprint(value)
			}
		}
	}
}

// fieldName returns the name of a field for programs.
func fieldName(name string) string {
	switch name {
	case "GUID":
		return "guid"
	case "LID":
		return "lid"
	case "LIDs":
		return "lids"
	case "PKey":
		return "p_key"
	case "PKeys":
		return "p_keys"
	case "NodeGUID":
		return "node_guid"
	case "SMPs":
		return "smps_since_settled"
	case "Work":
		return "smps"
	case "Took":
		return "seconds"
	case "HCAProven":
		return "hca_proven"
	default:
		return words(name, '_')
	}
}
