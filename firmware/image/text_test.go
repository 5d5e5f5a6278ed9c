package image_test

import (
	"testing"

	"portcullis/firmware/image"
)

func TestVersion(t *testing.T) {
	v := func(s string) image.Version {
		v, err := image.ParseVersion(s)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	inOrder := []string{"0.0.0", "1.2.3", "1.2.30", "1.10.0", "2.0.0", "22.47.1088", "22.47.65535", "65535.0.0"}
	for i, a := range inOrder {
		for j, b := range inOrder {
			if got := v(a).Compare(v(b)); (got < 0) != (i < j) || (got > 0) != (i > j) {
				t.Errorf("%s compared with %s is %d", a, b, got)
			}
		}
		if v(a).String() != a {
			t.Errorf("%s is written %s", a, v(a))
		}
	}
	for _, bad := range []string{"", "1.2", "1.2.3.4", "1.2.x", "1..3", "+1.2.3", "1.2.65536", "1.2.000003", "1.2.3 "} {
		if v, err := image.ParseVersion(bad); err == nil {
			t.Errorf("%q is read as %v", bad, v)
		}
	}
}

func TestUUID(t *testing.T) {
	const text = "c0ffee00-1122-3344-5566-778899aabbcc"
	u, err := image.ParseUUID(text)
	if err != nil || u.String() != text || u[0] != 0xC0 || u.IsZero() || u.Development() {
		t.Errorf("%v %v", u, err)
	}
	for _, bad := range []string{"", "c0ffee00", "c0ffee001122-3344-5566-778899aabbcc-", "g0ffee00-1122-3344-5566-778899aabbcc"} {
		if u, err := image.ParseUUID(bad); err == nil {
			t.Errorf("%q is read as %v", bad, u)
		}
	}
	for text, want := range map[string]bool{
		"00000000-0000-0000-0000-000000000000": false, "00000001-0000-0000-0000-000000000000": true,
		"00000000-0000-0000-0001-000000000000": true, "00000000-0000-0000-0000-000000000001": false,
		"c0ffee00-1122-3344-5566-000100000000": false,
	} {
		if u, err := image.ParseUUID(text); err != nil || u.Development() != want {
			t.Errorf("%s: development is %v, %v", text, u.Development(), err)
		}
	}
}
