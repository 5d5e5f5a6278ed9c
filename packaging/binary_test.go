package packaging

import (
	"debug/elf"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// maxAgent is the most bytes that the agent's program may have: it is part of
// every provisioning image.
const maxAgent = 15_000_000

// TestAgentIsOneSmallFile builds the agent as releases are built: it needs no
// loader and no library of the image that it is put into.
func TestAgentIsOneSmallFile(t *testing.T) {
	t.Parallel()
	program := filepath.Join(t.TempDir(), "portcullis-agent")
	cmd := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-ldflags", "-s -w", "-o", program, "./cmd/portcullis-agent")
	cmd.Dir = ".."
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH=amd64")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	info, err := os.Stat(program)
	if err != nil {
		t.Fatal(err)
	}
	if info.Size() >= maxAgent {
		t.Errorf("portcullis-agent has %d bytes, want less than %d", info.Size(), maxAgent)
	}
	f, err := elf.Open(program)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP || p.Type == elf.PT_DYNAMIC {
			t.Errorf("portcullis-agent is not static: it has a segment %v", p.Type)
		}
	}
}
