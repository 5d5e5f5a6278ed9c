package attest_test

import (
	"testing"

	"portcullis/attest"
	"portcullis/attest/attesttest"
)

func TestVerifyRefusesBoots(t *testing.T) {
	t.Parallel()
	for _, tc := range attesttest.BootAttacks() {
		t.Run(tc.Name, func(t *testing.T) {
			t.Parallel()
			v := tc.Verdict()
			if v.OK || v.Code != tc.Want || v.Detail == "" {
				t.Errorf("got OK %v, reason %s, detail %q; want reason %s", v.OK, v.Code, v.Detail, tc.Want)
			}
			if (v.Measured != nil) != (tc.Want == attest.ReasonReference) {
				t.Errorf("measured boot %v, though the reason is %s", v.Measured, tc.Want)
			}
		})
	}
}

func TestVerifyAcceptsBoots(t *testing.T) {
	t.Parallel()
	for _, tc := range attesttest.TrustedBoots() {
		t.Run(tc.Name, func(t *testing.T) {
			t.Parallel()
			plain := (&attesttest.Attack{}).Verdict()
			v := tc.Verdict()
			if !v.OK || v.Facts.Reference != tc.Reference || v.Measured == nil {
				t.Errorf("%s: %s, reference %q; want it accepted by %q", v.Code, v.Detail, v.Facts.Reference, tc.Reference)
			}
			if got := len(v.Facts.Waived) - len(plain.Facts.Waived); got != tc.Waived {
				t.Errorf("waived %q", v.Facts.Waived)
			}
		})
	}
}
