package mad

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// frame is a MAD that a third-party program sent, see testdata/frames.txt.
type frame struct {
	origin string // "opensm to ibsim: SubnDR Set PortInfo"
	mad    *MAD
}

func frames(t testing.TB) []frame {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "frames.txt"))
	if err != nil {
		t.Fatal(err)
	}
	var all []frame
	for _, part := range strings.Split(string(text), "\n= ")[1:] {
		origin, digits, _ := strings.Cut(part, "\n")
		b, err := ParseHex([]byte(digits))
		if err != nil || len(b) != Size {
			t.Fatalf("%s: %d bytes, %v", origin, len(b), err)
		}
		m := MAD(b)
		all = append(all, frame{origin, &m})
	}
	return all
}

// TestFramesRoundTrip: attributes that OpenSM and ibsim sent are read and written again to the very bytes. (Not those of a
// Get: infiniband-diags leave memory in them.)
func TestFramesRoundTrip(t *testing.T) {
	seen := map[AttrID]bool{}
	for _, f := range frames(t) {
		l, ok := LookupLayout(f.mad.Class(), f.mad.Attr())
		if !ok || !f.mad.IsSMP() || f.mad.Method() == MethodGet {
			continue
		}
		seen[f.mad.Attr()] = true
		v, err := l.Decode(f.mad.Data())
		if err != nil {
			t.Fatalf("%s: %v", f.origin, err)
		}
		p := make([]byte, l.Size())
		if err := l.Encode(p, v); err != nil {
			t.Fatalf("%s: %v", f.origin, err)
		}
		if want := f.mad.Data()[:l.Size()]; !bytes.Equal(p, want) {
			t.Errorf("%s: re-encoded to\n%x, want\n%x", f.origin, p, want)
		}
	}
	if len(seen) < 13 {
		t.Errorf("frames of %d attributes, want 13: %v", len(seen), seen)
	}
}

// TestFramesHeader: the header and route views write the bytes that they read.
func TestFramesHeader(t *testing.T) {
	for _, f := range frames(t) {
		var m MAD
		m[offClass] = f.mad[offClass] // the D bit belongs to one class only
		m[6], m[7] = f.mad[6], f.mad[7]
		m.SetReturning(f.mad.IsDR() && f.mad.Returning())
		m.SetHeader(f.mad.Header())
		if !bytes.Equal(m[:HeaderSize], f.mad[:HeaderSize]) {
			t.Errorf("%s: header\n%x, want\n%x", f.origin, m[:HeaderSize], f.mad[:HeaderSize])
		}
		if f.mad.BaseVersion() != 1 || !strings.Contains(f.origin, " "+f.mad.Class().String()+" "+f.mad.Method().String()+" ") {
			t.Errorf("%s: base version %d, class %v, method %v", f.origin, f.mad.BaseVersion(), f.mad.Class(), f.mad.Method())
		}
		if got, want := f.mad.IsResponse(), strings.Contains(f.origin, "Resp ") || strings.Contains(f.origin, "Repress "); got != want {
			t.Errorf("%s: response %v", f.origin, got)
		}
	}
}

// TestNewSMPLikeOpenSM: NewSMP makes the request that OpenSM made, to the very bytes. (Behind the end of the path OpenSM
// leaves what lay in its memory.)
func TestNewSMPLikeOpenSM(t *testing.T) {
	n := 0
	for _, f := range frames(t) {
		if !strings.HasPrefix(f.origin, "opensm to ibsim: SubnDR ") {
			continue
		}
		n++
		var m MAD
		r := f.mad.Route()
		NewSMP(&m, f.mad.Header(), &r, f.mad.MKey())
		copy(m.Data(), f.mad.Data())
		end := offInitialPath + 1 + r.Len()
		if !bytes.Equal(m[:end], f.mad[:end]) {
			t.Errorf("%s:\n%x, want\n%x", f.origin, m[:end], f.mad[:end])
		}
	}
	if n < 20 {
		t.Errorf("only %d requests of OpenSM in the test data", n)
	}
}
