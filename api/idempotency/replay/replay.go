// Package replay is the HTTP side of first answers: what makes two requests the same, an answer that is held until it is kept, and
// how a kept answer is sent again. It keeps nothing itself.
package replay

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"slices"

	"portcullis/api/idempotency"
	v1 "portcullis/api/v1"
)

// Undone reports whether an answer says that nothing was done, so that the request can be sent again. Other faults of the
// service leave open whether the change was made.
func Undone(a *idempotency.Answer) bool {
	if a.Status < http.StatusInternalServerError && a.Status != http.StatusUnprocessableEntity {
		return a.Status == http.StatusTooManyRequests || a.Status == http.StatusPreconditionRequired
	}
	var p struct {
		Code string `json:"code"`
	}
	if json.Unmarshal(a.Body, &p) != nil {
		return false
	}
	if a.Status == http.StatusUnprocessableEntity {
		return p.Code == v1.CodeNoReason
	}
	return slices.Contains([]string{"busy", v1.CodeNoLeader, v1.CodeSMElsewhere}, p.Code)
}

// Unknown reports whether an answer leaves open whether the change was made.
func Unknown(a *idempotency.Answer) bool { return a.Status >= http.StatusInternalServerError }

// Fingerprint returns the digest of all that makes a request what it is.
func Fingerprint(r *http.Request, body []byte) [sha256.Size]byte {
	sum := sha256.Sum256(body)
	parts := []any{r.Method, r.URL.EscapedPath(), r.URL.RawQuery, hex.EncodeToString(sum[:])}
	for _, name := range []string{"Content-Type", "If-Match", "If-None-Match", "If-Modified-Since", "If-Unmodified-Since"} {
		parts = append(parts, r.Header.Values(name))
	}
	// Only where it is there, so that requests of before there were reasons are the same still.
	if why := r.Header.Values(v1.ReasonHeader); len(why) > 0 {
		parts = append(parts, v1.ReasonHeader, why)
	}
	text, _ := json.Marshal(parts) // strings alone
	return sha256.Sum256(text)
}

// keptHeaders belong to an answer; others belong to the request that it is sent to.
func keptHeaders() []string { return []string{"Content-Type", "Etag", "Location"} }

// Send writes an answer.
func Send(w http.ResponseWriter, a *idempotency.Answer) {
	for name, value := range a.Header {
		w.Header().Set(name, value)
	}
	w.WriteHeader(a.Status)
	_, _ = w.Write(a.Body) // a client that is gone asks again
}

// Held is an answer that waits until it is kept. It implements http.ResponseWriter.
type Held struct {
	header http.Header
	status int
	body   bytes.Buffer
}

// Hold returns an empty answer whose headers are those of w.
func Hold(w http.ResponseWriter) *Held { return &Held{header: w.Header()} }

// Header implements http.ResponseWriter.
func (h *Held) Header() http.Header { return h.header }

// WriteHeader implements http.ResponseWriter.
func (h *Held) WriteHeader(status int) {
	if h.status == 0 {
		h.status = status
	}
}

// Write implements http.ResponseWriter.
func (h *Held) Write(p []byte) (int, error) {
	h.WriteHeader(http.StatusOK)
	return h.body.Write(p)
}

// Whole returns the answer as it was written.
func (h *Held) Whole() idempotency.Answer {
	h.WriteHeader(http.StatusOK)
	a := idempotency.Answer{Status: h.status, Header: map[string]string{}, Body: h.body.Bytes()}
	for _, name := range keptHeaders() {
		if v := h.header.Get(name); v != "" {
			a.Header[name] = v
		}
	}
	return a
}
