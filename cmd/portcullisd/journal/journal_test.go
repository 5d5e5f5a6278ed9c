package journal

import (
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/coreos/go-systemd/v22/journal"
	"github.com/google/go-cmp/cmp"

	"portcullis/fabricsm/driver"
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/sm"
)

// entry is what the journal was sent.
type entry struct {
	message  string
	priority journal.Priority
	fields   map[string]string
}

func TestJournalEntries(t *testing.T) {
	t.Parallel()
	var got []entry
	log := slog.New(&journalHandler{
		level: slog.LevelInfo, other: slog.DiscardHandler,
		send: func(m string, p journal.Priority, f map[string]string) error {
			got = append(got, entry{m, p, f})
			return nil
		},
	})
	log.Debug("not told")
	log.With("port", "ibsim:a/b").WithGroup("sm").Warn("out of reach", "error", "no such node")
	e := &sm.PortPlaced{GUID: 0x11, LID: 4, NodeGUID: 0x10, Place: ib.Place{Switch: 0x100, Port: 7}}
	log.LogAttrs(t.Context(), driver.Level(e), e.String(), slog.Any(driver.EventKey, e))
	log.Warn("lock.changed of host h1", driver.EventKey, "lock.changed", "host", "h1")
	want := []entry{
		{"out of reach port=ibsim:a/b sm_error=no such node", journal.PriWarning, map[string]string{
			"SYSLOG_IDENTIFIER": "portcullisd", "PORTCULLIS_PORT": "ibsim:a/b", "PORTCULLIS_SM_ERROR": "no such node",
		}},
		{e.String(), journal.PriInfo, map[string]string{
			"SYSLOG_IDENTIFIER": "portcullisd", "MESSAGE_ID": messageID("port-placed"), "PORTCULLIS_EVENT": "port-placed",
			"PORTCULLIS_GUID": "0x0000000000000011", "PORTCULLIS_LID": "4", "PORTCULLIS_NODE_GUID": "0x0000000000000010",
			"PORTCULLIS_PLACE": "0x0000000000000100/7",
		}},
		{"lock.changed of host h1", journal.PriWarning, map[string]string{
			"SYSLOG_IDENTIFIER": "portcullisd", "MESSAGE_ID": messageID("lock.changed"), "PORTCULLIS_EVENT": "lock.changed", "PORTCULLIS_HOST": "h1",
		}},
	}
	if d := cmp.Diff(got, want, cmp.AllowUnexported(entry{})); d != "" {
		t.Errorf("(-got +want):\n%s", d)
	}
}

// TestMessageIDsStay: journals are searched by them for years.
func TestMessageIDsStay(t *testing.T) {
	t.Parallel()
	if got, want := messageID("settled"), "adee3b7a1ac3eb33e02f87f3e56cd9c1"; got != want {
		t.Errorf("message id of settled is %s, want %s", got, want)
	}
}

// TestJournalAway: records that the journal does not take are written as text.
func TestJournalAway(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	log := slog.New(&journalHandler{
		level: slog.LevelInfo, other: slog.NewTextHandler(&out, TextOptions(slog.LevelInfo, true)),
		send: func(string, journal.Priority, map[string]string) error { return errors.New("away") },
	})
	e := &sm.NodeBack{GUID: 1}
	log.With("a", 1).LogAttrs(t.Context(), slog.LevelInfo, e.String(), slog.Any(driver.EventKey, e))
	if want := "level=INFO msg=\"node 0x0000000000000001 answers again\" a=1\n"; out.String() != want {
		t.Errorf("wrote %q, want %q", &out, want)
	}
}
