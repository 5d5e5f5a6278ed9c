package native_test

import (
	"testing"

	"portcullis/fabricsm/topospec"
	"portcullis/fabricsm/topospec/native"
	"portcullis/fabricsm/topospec/topoconf"
	"portcullis/fabricsm/topospec/topospectest"
)

// BenchmarkLoad reads and compiles a revision of 16384 adapters in each form. The
// target is 2 s.
func BenchmarkLoad(b *testing.B) {
	r := topospectest.Revision(b, topospectest.Large())
	for name, text := range map[string][]byte{
		"json": native.AppendTo(nil, r, native.JSON),
		"yaml": native.AppendTo(nil, r, native.YAML),
	} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				got, err := native.Parse("f", text)
				if err != nil {
					b.Fatal(err)
				}
				if _, err := topospec.Compile("f", got); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	text := topoconf.FromRevision(r, topoconf.TypesAny).AppendTo(nil)
	b.Run("topoconfig", func(b *testing.B) {
		b.SetBytes(int64(len(text)))
		for b.Loop() {
			f, err := topoconf.Parse("f", text)
			if err != nil {
				b.Fatal(err)
			}
			got, err := f.Revision("f", "large")
			if err != nil {
				b.Fatal(err)
			}
			if _, err := topospec.Compile("f", got); err != nil {
				b.Fatal(err)
			}
		}
	})
}
