//go:build vm

package machine

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseProtocol(t *testing.T) {
	const text = "vm: begin\r\n=== RUN   TestA\r\nnoise\r\n--- PASS: TestA (0.10s)\r\n    a_test.go:1: said\r\n=== RUN   TestB\r\n--- FAIL: TestB (1.00s)\r\nFAIL\r\n\r\nvm: end exit=1 taint=12800\r\n"
	got := ParseProtocol(text)
	want := Protocol{Begun: true, Exit: 1, Taint: 12800, Outcomes: []Outcome{
		{Name: "TestA", Result: "PASS", Seconds: "0.10", Output: "=== RUN   TestA\nnoise\n    a_test.go:1: said\n"},
		{Name: "TestB", Result: "FAIL", Seconds: "1.00", Output: "=== RUN   TestB\nFAIL\n\n"},
	}}
	want.Outcomes[0].Output = "=== RUN   TestA\nnoise\n    a_test.go:1: said\n"
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if got.Defects() != 1<<9 {
		t.Errorf("taint 12800 has defects %#x, want the bit of a warning", got.Defects())
	}
	if cut := ParseProtocol("vm: begin\n--- PASS: TestA (0.10s)\n"); cut.Exit != -1 {
		t.Errorf("a protocol without end has exit status %d, want -1", cut.Exit)
	}
}

func TestFileLine(t *testing.T) {
	content := []byte("\x00\n--- FAIL: TestA (0.10s)\n")
	got := ParseProtocol("vm: begin\r\n" + FileLine("log", content) + "\r\nvm: file cut YWJ\r\n--- PASS: TestA (0.10s)\r\n")
	if diff := cmp.Diff(map[string][]byte{"log": content}, got.Files); diff != "" {
		t.Error(diff)
	}
	if len(got.Outcomes) != 1 || got.Outcomes[0].Output != "vm: file cut YWJ\n" {
		t.Errorf("outcomes %+v, want one with the line that is not whole", got.Outcomes)
	}
}

func TestWarnings(t *testing.T) {
	console := Clean([]byte("\x1b[0mLinux version\r\n[ 1.0] WARNING: CPU: 1 PID: 7 at net/core/dev.c:1 f+0x1/0x2\r\nfine\r\n[ 2.0] BUG: KASAN: use-after-free\r\n"))
	if got := Warnings(console); len(got) != 2 {
		t.Errorf("%d warnings in %q, want 2", len(got), console)
	}
	if got := Warnings("systemd[1]: Started something.\nRun /init as init process\n"); len(got) != 0 {
		t.Errorf("%q is taken for a warning of the kernel", got)
	}
}
