package storage

import (
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"portcullis/api/events"
	"portcullis/api/store"
	"portcullis/api/store/etcd"
	"portcullis/api/store/memory"
	v1 "portcullis/api/v1"
	"portcullis/cmd/portcullisd/readiness"
)

// TestStoreRunsShort: at 70 % of the quota there is an event, the store is ready and says what runs short. Where only
// removals are taken there is another event, and the store is not ready. Each is recorded once.
func TestStoreRunsShort(t *testing.T) {
	t.Parallel()
	st := store.New(memory.New(time.Now), "")
	state := readiness.New(func(string) {})
	health := &readiness.StoreHealth{Log: slog.New(slog.DiscardHandler), Status: func(detail string) { state.Set(readiness.Store, detail) }, News: make(chan struct{}, 1)}
	room := &Room{Store: st, Log: slog.New(slog.DiscardHandler), Now: health.Now, News: health.News}
	recorded := ""
	for _, tt := range []struct {
		name     string
		health   etcd.Health
		recorded string // the cause that was recorded last
		unready  bool
	}{
		{"room", etcd.Health{}, "", false},
		{"70 %", etcd.Health{Warning: "records take 70 %"}, "soon", false},
		{"71 %", etcd.Health{Warning: "records take 71 %"}, "soon", false},
		{"away", etcd.Health{Away: store.ErrAway}, "soon", true},
		{"80 %", etcd.Health{Warning: "records take 80 %", Short: errors.New("records take 80 %")}, "removals", true},
		{"room again", etcd.Health{}, "", false},
	} {
		health.Note(tt.health)
		select {
		case <-health.News:
		default:
			t.Errorf("%s: nothing waits for an event", tt.name)
		}
		if recorded = room.event(t.Context(), time.Now(), recorded); recorded != tt.recorded {
			t.Errorf("%s: recorded %q, want %q", tt.name, recorded, tt.recorded)
		}
		all := health.Warned(state.Conditions(t.Context()))
		i := slices.IndexFunc(all, func(c v1.Condition) bool { return c.Name == readiness.Store })
		if c := all[i]; c.OK == tt.unready || !strings.Contains(c.Detail, tt.health.Warning) {
			t.Errorf("%s: %+v", tt.name, c)
		}
	}
	// One that starts again ends what it recorded before, and nothing of another instance.
	health.Note(etcd.Health{Warning: "records take 70 %"})
	room.event(t.Context(), time.Now(), "")
	for instance, want := range map[string]string{"": "soon", "other": ""} {
		room.Instance = instance
		if got := room.before(t.Context()); got != want {
			t.Errorf("instance %q: %q, want %q", instance, got, want)
		}
	}
	room.Instance = ""
	health.Note(etcd.Health{})
	if room.event(t.Context(), time.Now(), room.before(t.Context())); room.before(t.Context()) != "" {
		t.Error("what ended is not recorded")
	}
	list, err := events.Book{Store: st}.List(t.Context(), v1.EventQuery{})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range list.Items {
		got = append(got, e.Type+" "+e.Cause)
		if want := map[string]uint64{"store.room room": 2, "store.short soon": 2, "store.short removals": 1}[e.Type+" "+e.Cause]; e.Count != want {
			t.Errorf("event %+v, want it %d times", e, want)
		}
	}
	if slices.Sort(got); !slices.Equal(got, []string{"store.room room", "store.short removals", "store.short soon"}) {
		t.Errorf("recorded %q", got)
	}
}
