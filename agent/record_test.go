package agent

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"portcullis/attest"
	"portcullis/attest/tpm"
)

func sampleHandOver() *handOver {
	return &handOver{
		Host: "compute-01", EK: strings.Repeat("0", 64), BootID: "b", Reset: 3, Restart: 1,
		AgentPCR: 15, Open: make([]byte, 32), Statement: make([]byte, 32), Key: tpm.StoredAK{Public: []byte{1}, Private: []byte{2}},
		Session: "s", PCRs: []int{0, 7, 15}, Channel: attest.ChannelExporter, Nonce: []byte{1}, Expires: time.Unix(1, 0).UTC(), Token: "secret-token",
	}
}

// TestStatusTokenIsNotShown: it is in the file, and in nothing that is printed.
func TestStatusTokenIsNotShown(t *testing.T) {
	t.Parallel()
	h := sampleHandOver()
	var log strings.Builder
	slog.New(slog.NewJSONHandler(&log, nil)).Info("x", "token", h.Token)
	for _, shown := range []string{fmt.Sprint(h.Token), fmt.Sprintf("%v %+v %#v %s %q", *h, *h, *h, h.Token, h.Token), log.String()} {
		if strings.Contains(shown, "secret-token") {
			t.Errorf("shown: %s", shown)
		}
	}
	b, err := json.Marshal(h)
	if err != nil || !strings.Contains(string(b), "secret-token") {
		t.Errorf("kept as %s, %v", b, err)
	}
}

// TestBootOfHandOver: one kernel, and one count of the TPM.
func TestBootOfHandOver(t *testing.T) {
	t.Parallel()
	h := sampleHandOver()
	for _, tt := range []struct {
		id             string
		reset, restart uint32
		same           bool
	}{{"b", 3, 1, true}, {"c", 3, 1, false}, {"b", 4, 1, false}, {"b", 3, 2, false}, {"b", 4, 0, false}} {
		if err := h.sameBoot(tt.id, attest.Boot{Reset: tt.reset, Restart: tt.restart}); (err == nil) != tt.same {
			t.Errorf("%+v: %v", tt, err)
		}
	}
}

// FuzzHandOver reads whatever is in the file: a whole record, or an error.
func FuzzHandOver(f *testing.F) {
	whole, err := json.Marshal(sampleHandOver())
	if err != nil {
		f.Fatal(err)
	}
	for _, seed := range []string{string(whole), "", "{}", "null", "[]", `{"pcrs":[99]}`, string(whole[:len(whole)/2]), strings.Replace(string(whole), "[0,7,15]", "[15,0]", 1)} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, handOverFile), data, 0o600); err != nil {
			t.Fatal(err)
		}
		h, err := (&stateDir{dir: dir}).handOver()
		switch {
		case err != nil && (h != nil || !errors.Is(err, errGarbled)):
			t.Errorf("got %+v, %v", h, err)
		case h != nil && (len(h.Open) != 32 || len(h.PCRs) > 24 || h.Token == "" || h.check() != nil):
			t.Errorf("accepted %+v", h)
		}
	})
}
