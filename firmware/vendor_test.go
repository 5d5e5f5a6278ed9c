package firmware_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"portcullis/firmware"
)

// vendorImages is how many images expected.tsv has.
const vendorImages = 126

// expected reads expected.tsv: a map by file and index.
func expected(t *testing.T) map[string]map[string]string {
	t.Helper()
	data, err := os.ReadFile("mfa2/testdata/expected.tsv")
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(data)), "\n")
	names, rows := strings.Split(lines[0], "\t"), map[string]map[string]string{}
	for _, line := range lines[1:] {
		row := map[string]string{}
		for i, cell := range strings.Split(line, "\t") {
			row[names[i]] = cell
		}
		rows[row["file"]+" "+row["component"]] = row
	}
	if len(rows) != vendorImages {
		t.Fatalf("expected.tsv has %d rows, want %d", len(rows), vendorImages)
	}
	return rows
}

// TestVendorImages opens every image of four packages of the vendor, and compares it with expected.tsv. It also compares
// the verdict: they are not signed.
func TestVendorImages(t *testing.T) {
	rows := expected(t)
	files, err := filepath.Glob("mfa2/testdata/*.mfa2")
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		places := map[int]string{}
		err = firmware.Images(bytes.NewReader(data), int64(len(data)), func(i *firmware.Image) error {
			if i.Err != nil {
				return i.Err
			}
			places[i.Index] = fmt.Sprintf("0x%x 0x%x %d", i.Image.TOC(), i.Image.End, i.Size)
			return nil
		})
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		report, err := firmware.Verify(bytes.NewReader(data), int64(len(data)), firmware.Site{Pins: testPins(t)})
		if err != nil {
			t.Fatal(err)
		}
		if report.Verdict != firmware.NotSigned || report.Problem != "" {
			t.Errorf("%s: %q %s, want %q", file, report.Verdict, report.Problem, firmware.NotSigned)
		}
		for _, r := range report.Images {
			seen++
			row := rows[fmt.Sprintf("%s %d", filepath.Base(file), r.Index)]
			got := map[string]string{
				"format":     r.Identity.Format.String(),
				"fw_version": r.Identity.Info.Version.String(), "psid": string(r.Identity.Info.PSID),
				"computed_digest": r.Identity.Digest.String(),
			}
			if want := row["itoc"] + " " + row["itoc_end"] + " " + row["size"]; places[r.Index] != want {
				t.Errorf("%s image %d: table, end and size are %s, want %s", file, r.Index, places[r.Index], want)
			}
			for name, value := range got {
				if value != row[name] {
					t.Errorf("%s image %d: %s is %s, want %s", file, r.Index, name, value, row[name])
				}
			}
			if len(r.Boards) == 0 || !stepPasses(r, "digest") || !stepPasses(r, "checksums") || !stepPasses(r, "board") {
				t.Errorf("%s image %d: boards %v, steps %+v", file, r.Index, r.Boards, r.Steps)
			}
		}
	}
	if seen != vendorImages {
		t.Errorf("%d images were judged, want %d", seen, vendorImages)
	}
}

func stepPasses(r firmware.ImageReport, name string) bool {
	for _, s := range r.Steps {
		if s.Name == name {
			return s.Outcome == firmware.Pass
		}
	}
	return false
}
