package fabriclog

import (
	"bytes"
	"log/slog"
	"testing"

	"portcullis/cmd/portcullisd/journal"
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/sm"
	"portcullis/fabricsm/sm/violation"
)

// TestLogNamesWhoDidIt: the log of the service names host and tenant of what an
// event accuses.
func TestLogNamesWhoDidIt(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	h := &namingHandler{slog.NewTextHandler(&b, journal.TextOptions(slog.LevelInfo, true)), func(e sm.Event) (string, string) {
		if v, ok := e.(*violation.Violation); ok && v.Place.Port == 7 {
			return "compute-1", "acme"
		}
		return "", ""
	}}
	log := slog.New(h).With("a", "b")
	for _, e := range []sm.Event{&violation.Violation{Place: ib.Place{Switch: 1, Port: 7}}, &violation.Violation{}, &sm.NodeBack{}} {
		log.Warn("told", "event", e)
	}
	log.Warn("no event")
	want := "level=WARN msg=told a=b host=compute-1 tenant=acme\nlevel=WARN msg=told a=b\nlevel=WARN msg=told a=b\nlevel=WARN msg=\"no event\" a=b\n"
	if b.String() != want {
		t.Errorf("got\n%swant\n%s", b.String(), want)
	}
}
