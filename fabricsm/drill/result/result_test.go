package result

import (
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestReport shows how results are reported.
func TestReport(t *testing.T) {
	took := Seconds(1500000)
	r := Report{Seed: 1}
	r.Add(Result{ID: "T1", Threat: "do harm", Passed: true, Tried: []string{"harm"}, Stopped: []string{"a gate"}, Reported: []string{"harm was done"}, Detected: &took, Victims: Felt{Sent: 10}})
	r.Add(Result{ID: "T2", Threat: "do more", Failures: []string{"it was done", "nobody cared"}})
	r.Add(Result{ID: "T3", Threat: "do most", Needs: "time"})
	var table, long, js bytes.Buffer
	if err := r.WriteTable(&table); err != nil {
		t.Fatal(err)
	}
	if err := r.WriteLong(&long); err != nil {
		t.Fatal(err)
	}
	if err := r.WriteJSON(&js); err != nil {
		t.Fatal(err)
	}
	want := `THREAT  RESULT      DETECTED  ISOLATED  VICTIMS LOST  WHAT
T1      passed      1.5ms     -         0 of 10       do harm
T2      FAILED      -         -         -             do more
                                                      it was done (and 1 more)
T3      not played  -         -         -             do most
                                                      needs time

1 of 3 drills passed, 1 failed, 1 cannot be played yet
`
	if d := cmp.Diff(want, table.String()); d != "" {
		t.Errorf("table (-want +got):\n%s", d)
	}
	want = `T1 passed: do harm
  tried       harm
  stopped by  a gate
  reported    harm was done
  times       detected after 1.5ms, isolated after -; victims lost 0 of 10 packets

T2 FAILED: do more
  failed      it was done
              nobody cared
  times       detected after -, isolated after -; victims lost - packets

T3 not played: do most
  needs       time

1 of 3 drills passed, 1 failed, 1 cannot be played yet
`
	if d := cmp.Diff(want, long.String()); d != "" {
		t.Errorf("long (-want +got):\n%s", d)
	}
	if want := []byte(`"detected_s": 0.001500`); !bytes.Contains(js.Bytes(), want) {
		t.Errorf("JSON lacks %s:\n%s", want, &js)
	}
}
