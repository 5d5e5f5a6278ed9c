package agent

import "testing"

func TestImageOf(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"":                                       "",
		"ID=debian\nVERSION_ID=13\n":             "",
		"IMAGE_ID=prov\nIMAGE_VERSION=\"7.1\"\n": "prov-7.1",
		"IMAGE_VERSION=7\nIMAGE_ID='prov'":       "prov-7",
		"XIMAGE_ID=a\nIMAGE_ID=b\n":              "b",
	} {
		if got := imageOf([]byte(in)); got != want {
			t.Errorf("imageOf(%q) = %q, want %q", in, got, want)
		}
	}
	c := Config{OSRelease: t.TempDir() + "/none"}
	if got, err := c.image(); got != "" || err != nil {
		t.Errorf("no os-release: got %q, %v", got, err)
	}
	c.Image = "set"
	if got, err := c.image(); got != "set" || err != nil {
		t.Errorf("configured: got %q, %v", got, err)
	}
}
