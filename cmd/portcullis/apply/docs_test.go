package apply

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// blocks returns the blocks of code of a page in a language.
func blocks(t *testing.T, page, language string) (out []string) {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	for i, part := range strings.Split(string(text), "```"+language+"\n") {
		if i > 0 {
			block, _, _ := strings.Cut(part, "```")
			out = append(out, block)
		}
	}
	return out
}

// TestPage follows docs/operate/gitops.md: its documents are applied, and its scripts run with a command that answers as this one.
func TestPage(t *testing.T) {
	const page = "../../../docs/operate/gitops.md"
	s := newSite(t)
	var ids []string
	for i := range 33 {
		ids = append(ids, "compute-0"+string(rune('0'+(i+1)/10))+string(rune('0'+(i+1)%10)))
	}
	ids[32] = "compute-040"
	s.Register(ids...)
	documents := blocks(t, page, "yaml")
	if len(documents) != 1 {
		t.Fatalf("%d blocks of documents", len(documents))
	}
	s.write("site.yaml", documents[0])
	s.apply(1, "--set", "prod", "--dry-run")
	out, _ := s.apply(0, "--set", "prod")
	if strings.Count(out, "done  ") != 6+33 {
		t.Errorf("made:\n%s", out)
	}
	s.apply(0, "--set", "prod", "--prune", "--dry-run")

	scripts := blocks(t, page, "sh")
	if len(scripts) != 2 {
		t.Fatalf("%d scripts", len(scripts))
	}
	bin := t.TempDir()
	stub := "#!/bin/sh\necho \"$@\" >>" + filepath.Join(bin, "calls") + "\nexit ${CODE:-0}\n"
	if err := os.WriteFile(filepath.Join(bin, "portcullis"), []byte(stub), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		script, code, removals string
		fails                  bool
		asks                   string
	}{
		{scripts[0], "0", "", false, "--prune --dry-run"},
		{scripts[0], "1", "", false, "--prune --dry-run"},
		{scripts[0], "2", "", true, "--prune --dry-run"},
		{scripts[1], "0", "", false, "--prune --timeout 15m"},
		{scripts[1], "0", "3", false, "--prune --confirm 3 --timeout 15m"},
		{scripts[1], "3", "3", true, "--prune --confirm 3 --timeout 15m"},
	} {
		cmd := exec.CommandContext(t.Context(), "sh", "-e", "-c", tt.script)
		cmd.Env = []string{"PATH=" + bin + ":" + os.Getenv("PATH"), "CODE=" + tt.code, "REMOVALS=" + tt.removals}
		said, err := cmd.CombinedOutput()
		if (err != nil) != tt.fails {
			t.Errorf("%q with exit %s: %v\n%s", tt.script, tt.code, err, said)
		}
		calls, err := os.ReadFile(filepath.Join(bin, "calls"))
		if err != nil || !strings.HasSuffix(string(calls), "apply -f site/ --set prod "+tt.asks+"\n") {
			t.Errorf("asked %q, want ... %q", calls, tt.asks)
		}
	}
}
