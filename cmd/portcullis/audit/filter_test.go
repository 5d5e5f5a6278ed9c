package audit

import (
	"testing"
	"time"
)

// TestFilterTimes checks that times of a filter are asked for in any zone.
func TestFilterTimes(t *testing.T) {
	f := auditFilter{since: "2026-03-01T12:00:00+01:00", until: "2026-03-02T12:00:00Z"}
	q, err := f.query()
	if err != nil || !q.Since.Equal(time.Date(2026, 3, 1, 11, 0, 0, 0, time.UTC)) || !q.Until.Equal(time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)) {
		t.Errorf("query %+v, %v", q, err)
	}
}
