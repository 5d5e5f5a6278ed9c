package journal

import (
	"log/slog"
	"strings"
	"testing"
)

func TestPriorities(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	log := slog.New(slog.NewTextHandler(&prioritised{w: &out}, TextOptions(slog.LevelDebug, true)))
	log.Debug("d")
	log.Info("i")
	log.Warn("w")
	log.Error("e", "time", "kept")
	want := "<7>level=DEBUG msg=d\n<6>level=INFO msg=i\n<4>level=WARN msg=w\n<3>level=ERROR msg=e\n"
	got := strings.ReplaceAll(out.String(), " time=kept", "")
	if got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
