package proving_test

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	v1 "portcullis/api/v1"
	"portcullis/cmd/portcullisd/proving"
)

// Drift is of the newest reading, and a row says since when it is known.
func TestDriftOfNewestReading(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSeenSite(t, proving.Pace{Every: time.Hour, Rate: 1000}, nil)
		defer s.stop()
		if _, err := s.Drift(t.Context(), v1.DriftQuery{}); code(err) != v1.CodeNotExamined {
			t.Errorf("before the first reading: %v", err)
		}
		s.after(10 * time.Minute)
		list, err := s.Drift(t.Context(), v1.DriftQuery{})
		if err != nil || len(list.Items) > 0 || list.Items == nil || !list.Current || list.Again != nil || list.MaxAge != 3*3600 {
			t.Fatalf("%+v, %v", list, err)
		}
		s.manage(func() { s.stage.Grant(s.stage.GrantOf("h1", 1, 0x8202)) })
		s.after(10*time.Minute + 5*time.Second)
		s.manage(func() { s.stage.Grant(s.stage.GrantOf("h5", 1, 0x8303)) })
		s.after(11 * time.Minute)
		rows := func(q v1.DriftQuery) (out []string) {
			q.Limit = 1
			for {
				list, err := s.Drift(t.Context(), q)
				if err != nil || list.Again == nil {
					t.Fatalf("%+v, %v", list, err)
				}
				for _, d := range list.Items {
					out = append(out, d.Host+" "+d.Kind+" "+d.In+" "+d.PKey.String()+" "+d.Since.Sub(s.began.UTC()).Truncate(2*time.Second).String())
				}
				if list.Next == "" {
					slices.Sort(out)
					return out
				}
				q.After = list.Next
			}
		}
		h1 := []string{"h1 stray adapter 0x8202 10m2s", "h1 stray switch 0x8202 10m2s"}
		h5 := []string{"h5 stray adapter 0x8303 10m6s", "h5 stray switch 0x8303 10m6s"}
		if got := rows(v1.DriftQuery{}); !slices.Equal(got, slices.Concat(h1, h5)) {
			t.Errorf("drift %q", got)
		}
		if got := rows(v1.DriftQuery{Host: "h5"}); !slices.Equal(got, h5) {
			t.Errorf("of h5: %q", got)
		}
		if got := rows(v1.DriftQuery{Kind: v1.DriftMissing}); len(got) > 0 {
			t.Errorf("missing: %q", got)
		}
	})
}
