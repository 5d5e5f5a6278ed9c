package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"portcullis/api/credential"
	v1 "portcullis/api/v1"
)

// A token that ends soon is good, and an event warns of its end. One that has ended is refused, and log, audit log and event say
// so. A token without an end goes on, and --check warns of it. Package expiry shows what comes when a token ends.
func TestTokenEnds(t *testing.T) {
	t.Parallel()
	dir, address := install(t, "--fabric-port", nobody())
	file := filepath.Join(dir, "tokens.yaml")
	old, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	short, shortDigest := credential.New()
	over, overDigest := credential.New()
	endless, endlessDigest := credential.New()
	ends, ended := time.Now().Add(time.Hour).UTC().Truncate(time.Second), time.Now().Add(-time.Hour).UTC().Truncate(time.Second)
	write(t, file, string(old)+fmt.Sprintf("- {name: short, role: viewer, sha256: %s, expires: %s}\n- {name: over, role: viewer, sha256: %s, expires: %s}\n- {name: endless, role: viewer, sha256: %s}\n",
		shortDigest, ends.Format(time.RFC3339), overDigest, ended.Format(time.RFC3339), endlessDigest))
	out, err := exec.CommandContext(t.Context(), "portcullisd", "--config", filepath.Join(dir, "portcullisd.yaml"), "--check").CombinedOutput()
	for _, want := range []string{`warning: tokens file ` + file + `: token "short" ends at ` + ends.Format(time.RFC3339), `no end: "endless";`, "portcullisd.yaml: good\n"} {
		if err != nil || !strings.Contains(string(out), want) {
			t.Errorf("--check: %v, want %q:\n%s", err, want, out)
		}
	}
	if strings.Contains(string(out), `"operator"`) {
		t.Errorf("--check warns of the token that init made:\n%s", out)
	}

	d := start(t, dir)
	c, ctx := operator(t, dir, address), t.Context()
	for token, good := range map[string]bool{short: true, endless: true, over: false} {
		_, err := withToken(t, dir, address, token).Hosts().All(ctx)
		if (err == nil) != good || !good && !strings.Contains(err.Error(), "token over ended at "+ended.Format(time.RFC3339)) {
			t.Errorf("a token that is good, %v: %v", good, err)
		}
	}
	told := func(cause, seen string) func() (bool, string) {
		return func() (bool, string) {
			list, err := c.Audit().Events(ctx, v1.EventQuery{Type: "token.ends"})
			if err != nil {
				return false, err.Error()
			}
			for _, e := range list.Items {
				if e.Cause == cause && e.Seen == seen && e.Count == 1 {
					return true, ""
				}
			}
			return false, fmt.Sprintf("%+v", list.Items)
		}
	}
	eventually(t, "an event ahead", told("soon", fmt.Sprintf("%q at %s", "short", ends.Format(time.RFC3339))))
	eventually(t, "an event of an end", told("ended", fmt.Sprintf("%q at %s", "over", ended.Format(time.RFC3339))))
	var noted []v1.AuditEntry
	for page, err := range c.Audit().Entries(ctx, v1.AuditQuery{Action: "token.refuse"}) {
		if err != nil {
			t.Fatal(err)
		}
		noted = append(noted, page.Items...)
	}
	if len(noted) != 1 || noted[0].Actor != "over" || noted[0].Object != "token/over" || noted[0].Code != "token_ended" {
		t.Errorf("audit log %+v, want one refusal", noted)
	}
	text := fetch(t, dir, address, "/metrics")
	for _, want := range []string{`portcullis_tokens{state="ended"} 1`, `portcullis_tokens{state="endless"} 1`, `portcullis_tokens{state="valid"} 1`, `portcullis_tokens{state="soon"} 1`} {
		if !strings.Contains(text, want) {
			t.Errorf("metrics lack %s", want)
		}
	}
	if log := d.lines.String(); !strings.Contains(log, "a token that has ended was refused") || strings.Contains(log, over) {
		t.Errorf("the log does not name the refusal, or has the token:\n%s", log)
	}
}
