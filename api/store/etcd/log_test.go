package etcd

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"go.uber.org/zap"
)

// Routine reports of each new member are no errors in the log; other errors of the same kind are.
func TestQuietLogger(t *testing.T) {
	term := fmt.Errorf("cannot detect storage schema version: %w", errors.New("missing term information"))
	for _, tt := range []struct {
		message string
		err     error
		told    bool
	}{
		{"failed to update storage version", term, false},
		{"failed to update storage version", errors.New("cannot create migration plan"), true},
		{"failed to read", term, true},
	} {
		var out strings.Builder
		quietLogger(slog.New(slog.NewTextHandler(&out, nil)), func(error) {}).Error(tt.message, zap.Error(tt.err))
		if got := strings.Contains(out.String(), "level=ERROR"); got != tt.told {
			t.Errorf("%s: %v: told %v, want %v: %s", tt.message, tt.err, got, tt.told, &out)
		}
	}
}
