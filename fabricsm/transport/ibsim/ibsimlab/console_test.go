package ibsimlab

import (
	"io"
	"testing"
)

// talker answers each command with a prepared text, as ibsim's console does.
type talker struct {
	out  *transcript
	says []string
}

func (k *talker) Write(p []byte) (int, error) {
	next := k.says[0]
	k.says = k.says[1:]
	if _, err := k.out.Write([]byte(next)); err != nil {
		return 0, err
	}
	return len(p), nil
}

func (k *talker) Close() error { return nil }

// TestConsoleAmongOtherLines: ibsim prints lines of its own between and right
// after its prompts.
func TestConsoleAmongOtherLines(t *testing.T) {
	out := newTranscript()
	if _, err := io.WriteString(out, "Network simulator ready.\nsim> ibwarn: a client came\n"); err != nil {
		t.Fatal(err)
	}
	l := &Lab{out: out, console: &talker{out: out, says: []string{
		"one\nsim> ibwarn: no one takes a TrapRepress\n",
		"ibwarn: a client went\ntwo\nsim> ",
	}}}
	for _, want := range []string{"one\n", "ibwarn: a client went\ntwo\n"} {
		if got, err := l.Console("attached"); err != nil || got != want {
			t.Errorf("answer %q, %v; want %q", got, err, want)
		}
	}
}
