package imagetest_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"portcullis/firmware/imagetest"
	"portcullis/packaging/testenv"
)

// mstflint runs the real one on an image.
func mstflint(t *testing.T, image []byte, command ...string) string {
	t.Helper()
	path := testenv.Program(t, "mstflint")
	file := filepath.Join(t.TempDir(), "image.bin")
	if err := os.WriteFile(file, image, 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(path, append([]string{"-i", file}, command...)...).CombinedOutput()
	if err != nil {
		t.Errorf("mstflint %s: %v\n%s", strings.Join(command, " "), err, out)
	}
	return string(out)
}

// TestMstflintAccepts shows that the real tool accepts images made here, and that it reads the requested values in them.
func TestMstflintAccepts(t *testing.T) {
	specs := map[string]func(s *imagetest.Spec){
		"default":   func(*imagetest.Spec) {},
		"shifted":   func(s *imagetest.Spec) { s.TOCShift = true },
		"uncounted": func(s *imagetest.Spec) { s.TOCCount = false },
		"FS3":       func(s *imagetest.Spec) { s.Format, s.Hardware = 3, []uint32{0x209} },
		"other": func(s *imagetest.Spec) {
			s.PSID, s.Version, s.BaseGUID = "MT_0000000838", [3]uint16{28, 39, 1002}, 0x0002c90300bb0000
		},
	}
	for name, change := range specs {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := imagetest.New()
			change(s)
			image := s.Build()
			if s.Format == 4 {
				imagetest.Sign4096(image, imagetest.Key4096(), imagetest.KeyUUID)
			}
			imagetest.Sign2048(image, imagetest.Key2048(), imagetest.KeyUUID)
			if out := mstflint(t, image, "v"); !strings.Contains(out, "Image is bootable") {
				t.Errorf("mstflint says\n%s", out)
			}
			out := mstflint(t, image, "q", "full")
			for _, want := range []string{s.PSID, "secure-fw", version(s)} {
				if !strings.Contains(out, want) {
					t.Errorf("mstflint does not show %q:\n%s", want, out)
				}
			}
		})
	}
}

func version(s *imagetest.Spec) string {
	return fmt.Sprintf("%d.%d.%d", s.Version[0], s.Version[1], s.Version[2])
}
