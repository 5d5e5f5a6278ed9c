package nvconfig_test

import (
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"

	"portcullis/firmware/nvconfig"
)

// FuzzParse checks that an accepted file is written as the same bytes.
func FuzzParse(f *testing.F) {
	for _, name := range []string{"digest.bin", "rsa2048.bin", "rsa4096.bin"} {
		f.Add(vector(f, name))
	}
	f.Add(must[[]byte](f)(nvconfig.Seal(boundLock(f))))
	f.Add([]byte(nvconfig.Fingerprint))
	f.Fuzz(func(t *testing.T, b []byte) {
		file, err := nvconfig.Parse(b)
		if err != nil {
			return
		}
		again := []byte(nvconfig.Fingerprint)
		for _, i := range file.Items {
			again = i.Append(again)
			if l, ok := nvconfig.LayoutOf(i.Address); ok {
				for _, field := range l.Fields {
					if _, err := field.Format(i.Data); err != nil {
						t.Fatal(err)
					}
				}
			}
		}
		if !bytes.HasPrefix(b, again) {
			t.Fatalf("%x is written as %x", b, again)
		}
		if arranged, c, err := nvconfig.Arrange(file.Items); err != nil || c != file.Component || !cmp.Equal(arranged, file.Items) {
			t.Fatalf("a file that was read is made otherwise: %v, %v", c, err)
		}
		if _, err := file.Verify(nil); err == nil {
			t.Fatal("no key is pinned, and the file is accepted")
		}
		_, _ = file.PSIDs(), file.DeviceIDs()
		if of, err := file.Challenges(); err == nil && file.Bound() != (len(of) > 0) {
			t.Fatalf("bound: %v, to %v", file.Bound(), of)
		}
	})
}

// FuzzParseRaw checks that accepted text is written as text that reads the same.
func FuzzParseRaw(f *testing.F) {
	f.Add(string(vector(f, "raw")))
	f.Add(nvconfig.RawFingerprint + "\n")
	f.Fuzz(func(t *testing.T, text string) {
		items, err := nvconfig.ParseRaw(text)
		if err != nil {
			return
		}
		again, err := nvconfig.ParseRaw(nvconfig.FormatRaw(items))
		if err != nil || !cmp.Equal(again, items) {
			t.Fatalf("%v\n%s", err, cmp.Diff(again, items))
		}
	})
}
