package admission

import (
	"crypto/sha256"
	"encoding/hex"
	"testing"

	"portcullis/api/hostrecord"
	"portcullis/attest/result"
)

// TestResultNamesNoLiveSession: while a session waits for its seal, no result has its id, which is all that it takes to
// answer in the name of the host.
func TestResultNamesNoLiveSession(t *testing.T) {
	l, _, _ := newResultLab(t)
	r, err := l.attested("host-1")
	if err != nil {
		t.Fatal(err)
	}
	told, err := result.Decode([]byte(r.Result))
	if err != nil {
		t.Fatal(err)
	}
	live, err := hostrecord.Records().Get(l.ctx(), l.store, "host-1")
	if err != nil {
		t.Fatal(err)
	}
	id := live.Value.Evidence.Session
	if _, err := hostrecord.Seals().Get(l.ctx(), l.store, id); err != nil {
		t.Fatalf("session %q does not wait for its seal: %v", id, err)
	}
	sum := sha256.Sum256([]byte(id))
	for _, h := range []result.Host{told.Host, l.result("host-1").Host} {
		if h.Session == id || h.Session != hex.EncodeToString(sum[:]) {
			t.Errorf("a result shows session %q, and %q waits for its seal", h.Session, id)
		}
	}
}
