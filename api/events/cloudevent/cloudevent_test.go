package cloudevent

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"time"

	"portcullis/api/events"
	v1 "portcullis/api/v1"
	"portcullis/packaging/testenv"
)

func sample(kind string) v1.Event {
	k, _ := events.KindOf(kind)
	return v1.Event{
		ID: "5f0c2a7be1d94c36-1042-9a3c5d0b77e1f204", Type: k.Type, Severity: k.Severity, By: events.ByService, Cause: k.Causes[0], Host: "h1",
		Adapter: 0xb83fd20300123400, Expected: "locked", Seen: "open \"<&>\"", Do: "look", First: time.Unix(1, 0).UTC(), Last: time.Unix(1764259200, 5).UTC(), Count: 3,
	}
}

func TestEnvelope(t *testing.T) {
	t.Parallel()
	e := sample(events.LockChanged)
	got := Of(&e)
	if got.ID != e.ID || got.Source != "/portcullis/5f0c2a7be1d94c36" || got.Type != "portcullis.lock.changed" || got.Subject != "lock/0xb83fd20300123400" || !got.Time.Equal(e.Last) || got.Data != e {
		t.Errorf("%+v", got)
	}
}

// TestPublicSDKReadsEnvelopes has the SDK of the CloudEvents project read and validate an event of each type.
func TestPublicSDKReadsEnvelopes(t *testing.T) {
	t.Parallel()
	judge := exec.CommandContext(t.Context(), testenv.Program(t, "go"), "run", "-modfile=../../../packaging/judges.mod", "./testdata/judge")
	var in, out, errs bytes.Buffer
	want := ""
	for _, k := range events.Kinds() {
		e := sample(k.Type)
		if err := json.NewEncoder(&in).Encode(Of(&e)); err != nil {
			t.Fatal(err)
		}
		want += fmt.Sprintf("%s portcullis.%s /portcullis/5f0c2a7be1d94c36 %s %s %s\n", e.ID, k.Type, events.Object(&e), e.Last.Format(time.RFC3339Nano), e.Severity)
	}
	judge.Stdin, judge.Stdout, judge.Stderr = &in, &out, &errs
	err := judge.Run()
	if unreachable(errs.String()) {
		testenv.Need(t, fmt.Errorf("the modules of packaging/judges.mod are not at hand: %s", errs.String()))
	}
	if err != nil || out.String() != want {
		t.Errorf("%v\n%s\nread:\n%s\nwant:\n%s", err, errs.String(), out.String(), want)
	}
}

// unreachable reports whether modules could not be fetched.
func unreachable(text string) bool {
	return strings.Contains(text, "dial tcp") || strings.Contains(text, "module lookup disabled")
}
