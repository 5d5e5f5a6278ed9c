package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"portcullis/api/audit/chain"
	v1 "portcullis/api/v1"
)

// An entry that is altered in the file of the store, as finding F2 did, shows by an event, metrics and readiness at the
// next start. A log that was cut contradicts the anchors that the journal had of it before.
func TestAuditLogAltered(t *testing.T) {
	t.Parallel()
	dir, address := install(t, "--fabric-port", nobody())
	d := start(t, dir)
	c, ctx := operator(t, dir, address), t.Context()
	if _, err := c.Tenants().Create(ctx, v1.NewTenant{Name: "acme"}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "a whole log", func() (bool, string) {
		text := fetch(t, dir, address, "/metrics")
		return strings.Contains(text, `portcullis_audit_verifications_total{result="whole"} 1`) &&
			strings.Contains(text, "portcullis_audit_whole 1") && !strings.Contains(text, "portcullis_audit_verified_timestamp_seconds 0"), text
	})
	head, err := c.Audit().Head(ctx)
	if err != nil {
		t.Fatal(err)
	}
	d.stop()
	inJournal, _ := chain.ReadAnchors(strings.NewReader(grep(d.lines.String(), strings.TrimSpace(chain.Marker))))
	if n := len(inJournal); n == 0 || inJournal[n-1].Seq < head.Seq || inJournal[n-1].JWS == "" {
		t.Errorf("anchors in the log %+v, want one of entry %d or later that is signed", inJournal, head.Seq)
	}

	db := filepath.Join(stateDir(t, dir), "etcd", "member", "snap", "db")
	data, err := os.ReadFile(db)
	if err != nil {
		t.Fatal(err)
	}
	was, now := []byte(`"action":"tenant.create"`), []byte(`"action":"tenant.DELETE"`)
	if !bytes.Contains(data, was) {
		t.Fatal("the store's file does not have the entry")
	}
	if err := os.WriteFile(db, bytes.ReplaceAll(data, was, now), 0o600); err != nil {
		t.Fatal(err)
	}

	d = start(t, dir)
	d.await("STATUS=serving, but ")
	eventually(t, "readiness of the audit log", func() (bool, string) {
		body, status := fetchRoute(t, dir, address, "/readyz/audit")
		return status == 503 && strings.Contains(string(body), "the audit log is not whole (altered)") && strings.Contains(string(body), "it was whole at "), fmt.Sprint(status, string(body))
	})
	if text := fetch(t, dir, address, "/metrics"); !strings.Contains(text, "portcullis_audit_whole 0") || !strings.Contains(text, `portcullis_audit_verifications_total{result="broken"} 1`) {
		t.Errorf("metrics do not say that the log is altered:\n%s", text)
	}
	eventually(t, "an event", func() (bool, string) {
		list, err := c.Audit().Events(ctx, v1.EventQuery{Type: "audit.broken"})
		return err == nil && len(list.Items) == 1 && list.Items[0].Cause == chain.Altered, fmt.Sprint(list, err)
	})
	if body, status := fetchRoute(t, dir, address, "/readyz/api"); status != 200 {
		t.Errorf("the API is not ready: %s", body)
	}
	acceptBreak(t, dir, address)
}

// acceptBreak has an operator accept the break that is known: the log counts as whole then, and has both ends of the break.
func acceptBreak(t *testing.T, dir, address string) {
	t.Helper()
	c, ctx := operator(t, dir, address), t.Context()
	known, err := c.Audit().Breaks(ctx)
	if err != nil || len(known.Open) != 1 || len(known.Accepted) != 0 {
		t.Fatalf("breaks %+v, %v, want one", known, err)
	}
	b := known.Open[0]
	if _, err := c.Audit().AcceptBreak(ctx, v1.AuditAccept{Seq: b.Seq, Hash: b.From.Hash, Reason: "x"}); err == nil {
		t.Error("a break is accepted that was not looked at")
	}
	after, err := c.Audit().AcceptBreak(ctx, v1.AuditAccept{Seq: b.Seq, Hash: b.To.Hash, Reason: "this test did it"})
	if err != nil || len(after.Open) != 0 || len(after.Accepted) != 1 || !strings.Contains(after.Accepted[0].Detail, "this test did it") {
		t.Fatalf("accepted: %+v, %v", after, err)
	}
	if body, status := fetchRoute(t, dir, address, "/readyz/audit"); status != 200 {
		t.Errorf("the audit log is not ready: %s", body)
	}
	eventually(t, "a whole log", func() (bool, string) {
		text := fetch(t, dir, address, "/metrics")
		return strings.Contains(text, `portcullis_audit_verifications_total{result="whole"} 1`) && strings.Contains(text, "portcullis_audit_whole 1"), text
	})
	var list []v1.AuditEntry
	for page, err := range c.Audit().Entries(ctx, v1.AuditQuery{Action: chain.AcceptAction}) {
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, page.Items...)
	}
	if len(list) != 1 || list[0].Before != b.From.Hash || list[0].After != b.To.Hash {
		t.Errorf("the log has %+v, want one entry with both ends of %+v", list, b)
	}
}

// grep returns the lines with a word.
func grep(text, word string) string {
	var out strings.Builder
	for line := range strings.Lines(text) {
		if strings.Contains(line, word) {
			out.WriteString(line)
		}
	}
	return out.String()
}
