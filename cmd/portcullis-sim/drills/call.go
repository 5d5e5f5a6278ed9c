package drills

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"portcullis/api/audit"
	"portcullis/api/audit/chain"
	"portcullis/api/store"
	v1 "portcullis/api/v1"
)

// answer keeps what the API answered; it is a http.ResponseWriter.
type answer struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (a *answer) Header() http.Header { return a.header }

func (a *answer) WriteHeader(status int) {
	if a.status == 0 {
		a.status = status
	}
}

func (a *answer) Write(b []byte) (int, error) {
	a.WriteHeader(http.StatusOK)
	return a.body.Write(b)
}

// SetWriteDeadline is for handlers that send much: nothing here is slow.
func (a *answer) SetWriteDeadline(time.Time) error { return nil }

func (a *answer) good() bool { return a.status >= 200 && a.status < 300 }

// code is the reason why the API refused something, "" if it did not.
func (a *answer) code() string {
	var p v1.Problem
	if a.good() || json.Unmarshal(a.body.Bytes(), &p) != nil {
		return ""
	}
	return p.Code
}

// call sends a request to the API, by the credential of who.
func (v *site) call(who, method, path, body string) *answer {
	return v.send(who, method, path, body, nil)
}

// send is call with headers, which replace those that call would send.
func (v *site) send(who, method, path, body string, header map[string]string) *answer {
	r, err := http.NewRequestWithContext(context.Background(), method, "https://portcullis"+path, strings.NewReader(body))
	v.scene.Must(err)
	r.RemoteAddr = v.from + ":40000"
	r.Header.Set("Authorization", "Bearer "+v.tokens[who])
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	if takesAway(method, path) {
		r.Header.Set("If-Match", "*")
	}
	for name, value := range header {
		r.Header.Set(name, value)
	}
	a := &answer{header: make(http.Header)}
	v.api.ServeHTTP(a, r)
	v.said.Write(a.body.Bytes())
	return a
}

// takesAway reports whether the API demands the version of what a request is for.
func takesAway(method, path string) bool {
	return strings.HasPrefix(path, "/v1/") && method == http.MethodDelete || strings.HasPrefix(path, "/v1/hosts/") && strings.HasSuffix(path, "/release")
}

// must asks for something that the drill rests on.
func (v *site) must(who, method, path, body string) {
	if a := v.call(who, method, path, body); !a.good() {
		v.scene.Must(fmt.Errorf("%s %s as %s: %d %s", method, path, who, a.status, &a.body))
	}
}

// refused asks for something that must be refused for a reason.
func (v *site) refused(code, who, method, path, body string) {
	a := v.call(who, method, path, body)
	if v.scene.Check(a.code() == code, "%s %s %s as %s is answered with %d %q, want it refused as %s", method, path, body, who, a.status, a.code(), code) {
		v.scene.Stopped("%s %s: %d %s", method, path, a.status, code)
	}
}

// mark notes how long the audit log is before an attack.
func (v *site) mark() {
	v.Attack()
	head, err := audit.Latest(context.Background(), v.store)
	v.scene.Must(err)
	v.audited = int(head.Seq)
}

// audit demands that the audit log has an entry since mark with actor, action and code.
func (v *site) audit(actor, action, code string) {
	entries, _, err := audit.Entries().List(context.Background(), v.store, "")
	v.scene.Must(err)
	for _, e := range entries[min(v.audited, len(entries)):] {
		if e.Value.Actor == actor && e.Value.Action == action && e.Value.Code == code {
			v.Counted(true, "audit log: %s, %s of %s, %s: %s", e.Value.Actor, e.Value.Action, e.Value.Object, e.Value.Code, e.Value.Detail)
			return
		}
	}
	v.scene.Check(false, "no entry of the audit log says that %s was refused %s as %s", actor, action, code)
}

// metric reports whether a metric whose line has a text is not zero. Credential who may read metrics.
func (v *site) metric(who, text string) bool {
	for line := range strings.Lines(v.call(who, "GET", "/metrics", "").body.String()) {
		if strings.Contains(line, text) && !strings.HasPrefix(line, "#") && !strings.HasSuffix(strings.TrimSpace(line), " 0") {
			return true
		}
	}
	return false
}

// logged reports whether the audit log has an entry since mark for which is holds.
func (v *site) logged(is func(actor, action string) bool) bool {
	entries, _, err := audit.Entries().List(v.ctx(), v.store, "")
	v.scene.Must(err)
	return slices.ContainsFunc(entries[min(v.audited, len(entries)):], func(e store.Record[chain.Entry]) bool { return is(e.Value.Actor, e.Value.Action) })
}
