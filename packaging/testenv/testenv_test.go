package testenv_test

import (
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/google/go-cmp/cmp"

	"portcullis/packaging/testenv"
)

// witness is a test that notes how it was ended.
type witness struct {
	testing.TB
	ended string
}

func (w *witness) Helper() {}

func (w *witness) Skipf(format string, args ...any) {
	w.ended = "skipped: " + fmt.Sprintf(format, args...)
	runtime.Goexit()
}

func (w *witness) Fatalf(format string, args ...any) {
	w.ended = "failed: " + fmt.Sprintf(format, args...)
	runtime.Goexit()
}

// watch runs a test to its end and says how it ended.
func watch(test func(t testing.TB)) string {
	w := &witness{ended: "went on"}
	done := make(chan struct{})
	go func() { defer close(done); test(w) }()
	<-done
	return w.ended
}

func TestNeed(t *testing.T) {
	absent := errors.New("ibsim is not installed")
	for _, tt := range []struct {
		name, parts string
		missing     error
		want        string
	}{
		{"there", "", nil, "went on"},
		{"there and required", "required", nil, "went on"},
		{"absent", "", absent, "skipped: needs a real part: ibsim is not installed"},
		{"absent and required", "required", absent, "failed: real parts are required: ibsim is not installed"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Setenv("PORTCULLIS_REAL_PARTS", tt.parts)
			got := watch(func(t testing.TB) { testenv.Need(t, tt.missing) })
			if d := cmp.Diff(got, tt.want); d != "" {
				t.Errorf("-got +want:\n%s", d)
			}
		})
	}
}

func TestProgram(t *testing.T) {
	t.Setenv("PORTCULLIS_REAL_PARTS", "required")
	want, err := exec.LookPath("go")
	if err != nil {
		t.Fatal(err)
	}
	if got := testenv.Program(t, "go"); got != want {
		t.Errorf("go is at %q, want %q", got, want)
	}
	absent := filepath.Join(t.TempDir(), "absent")
	got := watch(func(t testing.TB) { testenv.Program(t, absent) })
	if d := cmp.Diff(got, "failed: real parts are required: "+absent+` is not installed: run "make setup"`); d != "" {
		t.Errorf("-got +want:\n%s", d)
	}
}
