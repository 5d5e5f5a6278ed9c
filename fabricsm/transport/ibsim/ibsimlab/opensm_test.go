package ibsimlab

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

func TestCameUp(t *testing.T) {
	const up, exit = "14:00:21 [DB] 0x02 -> SUBNET UP\n", "14:00:21 [DE] 0x80 -> Exiting SM\n"
	const failed = "14:00:21 [DE] 0x01 -> clear_madw: ERR 5401: evicting entry\n"
	const early = "14:00:21 [DE] 0x01 -> osm_get_port_by_mad_addr: ERR 7504: Lid is out of range: 2\n" +
		"14:00:21 [DE] 0x01 -> trap_rcv_process_request: ERR 3809: Failed to find source physical port for trap\n"
	for log, want := range map[string]bool{
		"": false, up: true, up + exit: true, up + exit + failed: true,
		up + failed + exit: false, failed + up: false, exit + up: false,
		early + up + exit: true, early: false, early + failed + up: false,
	} {
		if got := CameUp([]byte(log)); got != want {
			t.Errorf("%q: %v, want %v", log, got, want)
		}
	}
}

// TestUntilExit: a program that says that it exits, and stays, is ended. One that has not said it is not.
func TestUntilExit(t *testing.T) {
	for name, tt := range map[string]struct {
		script string
		ends   bool // by itself
	}{
		"ends":    {`echo Exiting SM > "$0"`, true},
		"hangs":   {`echo Exiting SM > "$0"; exec sleep 600`, false},
		"crashes": {`echo Exiting SM > "$0"; kill -SEGV $$`, false},
		"works":   {`exec sleep 0.1`, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			log := filepath.Join(t.TempDir(), "log")
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			err := untilExit(exec.CommandContext(ctx, "sh", "-c", tt.script, log), log)
			if (err == nil) != tt.ends || ctx.Err() != nil {
				t.Errorf("%v, %v; ends by itself: %v", err, ctx.Err(), tt.ends)
			}
			if _, err := os.Stat(log); err != nil && name != "works" {
				t.Error(err)
			}
		})
	}
}
