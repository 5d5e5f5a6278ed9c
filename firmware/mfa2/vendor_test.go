package mfa2_test

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"os"
	"strings"
	"testing"

	"portcullis/firmware/mfa2"
)

// TestVendorPackages unpacks every image of four packages of the vendor and
// compares size and SHA-256 with expected.tsv.
func TestVendorPackages(t *testing.T) {
	table, err := os.ReadFile("testdata/expected.tsv")
	if err != nil {
		t.Fatal(err)
	}
	packages, seen := map[string]*mfa2.Package{}, map[string]string{}
	rows := strings.Split(strings.TrimSpace(string(table)), "\n")[1:]
	for _, row := range rows {
		file := strings.Split(row, "\t")[0]
		if packages[file] != nil {
			continue
		}
		data, err := os.ReadFile("testdata/" + file)
		if err != nil {
			t.Fatal(err)
		}
		if packages[file], err = mfa2.Open(bytes.NewReader(data), int64(len(data))); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		err = packages[file].Each(func(c mfa2.Component, image []byte) error {
			seen[fmt.Sprintf("%s\t%d", file, c.Index)] = fmt.Sprintf("%d\t%x\t%s", len(image), sha256.Sum256(image), strings.Join(c.PSIDs, " "))
			return nil
		})
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
	}
	for _, row := range rows {
		cells := strings.Split(row, "\t")
		got, want := seen[cells[0]+"\t"+cells[1]], cells[3]+"\t"+cells[4]+"\t"+cells[8]
		if got != want {
			t.Errorf("%s image %s: size, SHA-256 and PSIDs are %s, want %s", cells[0], cells[1], got, want)
		}
	}
	if len(seen) != len(rows) {
		t.Errorf("%d images were unpacked, want %d", len(seen), len(rows))
	}
}
