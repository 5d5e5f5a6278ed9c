package attest_test

import (
	"strings"
	"testing"

	"portcullis/attest"
	"portcullis/attest/attesttest"
)

// TestAdapters changes one thing about an adapter at a time.
func TestAdapters(t *testing.T) {
	t.Parallel()
	for _, tc := range attesttest.Adapters() {
		t.Run(tc.Name, func(t *testing.T) {
			t.Parallel()
			k := tc.Attack()
			v := k.Verdict()
			if v.Code != tc.Want || v.OK != (tc.Want == "") || !strings.Contains(v.Detail, tc.Tells) {
				t.Errorf("got OK %v, reason %q, detail %q; want reason %q and %q", v.OK, v.Code, v.Detail, tc.Want, tc.Tells)
			}
		})
	}
}

// TestEveryAdapterIsJudged: the second is not taken on trust.
func TestEveryAdapterIsJudged(t *testing.T) {
	t.Parallel()
	k := attesttest.Attack{Host: func(a *attesttest.Attempt) {
		more := a.NewHost("compute-02", 2).Statement.HCAs[0]
		more.Name, more.Lock.MLOCK = "mlx5_1", attest.MLOCKUnlocked
		a.Host.Statement.HCAs = append(a.Host.Statement.HCAs, more)
		a.Expected = a.Host.Expected()
	}}
	if v := k.Verdict(); v.Code != attest.ReasonLock || !strings.Contains(v.Detail, "mlx5_1") {
		t.Errorf("got %q, %q; want %s of mlx5_1", v.Code, v.Detail, attest.ReasonLock)
	}
}
