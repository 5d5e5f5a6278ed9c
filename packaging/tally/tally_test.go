package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const said = `{"Action":"start","Package":"p"}
{"Action":"run","Package":"p","Test":"TestGood"}
{"Action":"output","Package":"p","Test":"TestGood","Output":"chatter\n"}
{"Action":"pass","Package":"p","Test":"TestGood","Elapsed":0.1}
{"Action":"output","Package":"p","Test":"TestBad","Output":"got 1, want 2\n"}
{"Action":"fail","Package":"p","Test":"TestBad","Elapsed":0.1}
{"Action":"output","Package":"p","Test":"TestAbsent","Output":"=== RUN   TestAbsent\n"}
{"Action":"output","Package":"p","Test":"TestAbsent","Output":"    x_test.go:7: ibsim is not installed\n"}
{"Action":"output","Package":"p","Test":"TestAbsent","Output":"--- SKIP: TestAbsent (0.00s)\n"}
{"Action":"skip","Package":"p","Test":"TestAbsent","Elapsed":0}
{"Action":"output","Package":"p","Output":"FAIL\n"}
{"Action":"fail","Package":"p","Elapsed":1.25}
{"Action":"skip","Package":"empty","Elapsed":0}
{"ImportPath":"q","Action":"build-output","Output":"q.go:1:1: syntax error\n"}
{"Action":"fail","Package":"q","Elapsed":0,"FailedBuild":"q"}
`

func TestTally(t *testing.T) {
	var got bytes.Buffer
	tally := newTally(&got)
	if err := tally.read(strings.NewReader(said)); err != nil {
		t.Fatal(err)
	}
	tally.sum(true)
	want := `FAIL p TestBad
got 1, want 2
FAIL
FAIL p 1.2s
q.go:1:1: syntax error
FAIL q 0.0s
skipped p TestAbsent: x_test.go:7: ibsim is not installed
1 tests passed, 1 failed, 1 skipped
FAIL: every real part is required here, so nothing may be skipped
`
	if d := cmp.Diff(want, got.String()); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
}

func TestTallyRefusesWhatIsNotJSON(t *testing.T) {
	if err := newTally(&bytes.Buffer{}).read(strings.NewReader("ok  p 0.1s\n")); err == nil {
		t.Error("lines that are not JSON were taken for results")
	}
}

// TestRunExit runs the real go command on a package of which every test is
// left out, which must not look like success.
func TestRunExit(t *testing.T) {
	var out, errs bytes.Buffer
	if code := run([]string{"-run", "^TestTally$", "."}, &out, &errs, true); code != 0 {
		t.Errorf("a passing test: exit %d\n%s%s", code, &out, &errs)
	}
	if code := run([]string{"-run", "^$", "."}, &out, &errs, false); code == 0 {
		t.Errorf("no test at all: exit 0\n%s", &out)
	}
	if code := run([]string{"./absent"}, &out, &errs, false); code == 0 {
		t.Errorf("no such package: exit 0\n%s", &out)
	}
}
