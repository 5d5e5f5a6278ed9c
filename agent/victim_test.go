package agent_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"portcullis/agent"
)

const (
	childConfig = "PORTCULLIS_TEST_AGENT"      // what a child provisions, as JSON
	childWrite  = "PORTCULLIS_TEST_AGENT_DIES" // "before", "torn" or "after", and the number of a write
)

// TestMain is the agent when a test has started its own program again, so that it
// can be killed.
func TestMain(m *testing.M) {
	if text := os.Getenv(childConfig); text != "" {
		os.Exit(child(text))
	}
	os.Exit(m.Run())
}

func child(text string) int {
	o := agent.Options{Version: "v1-test", Log: slog.New(slog.NewTextHandler(os.Stderr, nil)), Goal: agent.HandedOver}
	if err := json.Unmarshal([]byte(text), &o.Config); err != nil {
		panic(err)
	}
	if when, n, ok := strings.Cut(os.Getenv(childWrite), " "); ok {
		agent.SetWrite(&o, dyingWriter(when, n))
	}
	err := agent.Provision(context.Background(), o)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return int(agent.ClassOf(err))
	}
	return 0
}

// dyingWriter kills this process at the n-th write of a file.
func dyingWriter(when, n string) func(path string, data []byte) error {
	die := func() { _ = syscall.Kill(os.Getpid(), syscall.SIGKILL); select {} }
	writes := 0
	return func(path string, data []byte) error {
		if writes++; strconv.Itoa(writes) != n {
			return agent.WriteFile(path, data)
		}
		switch when {
		case "torn": // as far as it comes before it is renamed
			half := filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+"123")
			if err := os.WriteFile(half, data[:len(data)/2], 0o600); err != nil {
				panic(err)
			}
		case "after":
			if err := agent.WriteFile(path, data); err != nil {
				panic(err)
			}
		}
		die()
		return nil
	}
}

// victim is an agent that will be killed.
type victim struct {
	cmd     *exec.Cmd
	started chan struct{} // closed once there is a process
	once    sync.Once
	said    strings.Builder // complete once it was waited for
}

// victim is an agent of the site as a process of its own, which has more in its
// environment.
func (s *realSite) victim(more ...string) *victim {
	s.t.Helper()
	self, err := os.Executable()
	must(s.t, err)
	config, err := json.Marshal(s.config)
	must(s.t, err)
	v := &victim{cmd: exec.CommandContext(s.t.Context(), self), started: make(chan struct{})}
	v.cmd.Env = append(append(os.Environ(), childConfig+"="+string(config)), more...)
	v.cmd.Stderr = &v.said
	return v
}

func (v *victim) start() error {
	err := v.cmd.Start()
	if err == nil {
		close(v.started)
	}
	return err
}

// kill is called where the agent is waited for, so it was started, or is just being.
func (v *victim) kill() {
	<-v.started
	v.once.Do(func() { _ = v.cmd.Process.Kill() })
}
