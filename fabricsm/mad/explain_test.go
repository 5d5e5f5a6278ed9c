package mad

import (
	"encoding/json"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"portcullis/fabricsm/ib"
)

var update = flag.Bool("update", false, "rewrite testdata/explain")

// find returns the first captured frame of an origin.
func find(t *testing.T, origin string) []byte {
	t.Helper()
	for _, f := range frames(t) {
		if f.origin == origin {
			return f.mad[:]
		}
	}
	t.Fatalf("no frame %q in the test data", origin)
	return nil
}

func TestExplain(t *testing.T) {
	badKey := func() []byte {
		var m MAD
		NewSMP(&m, Header{Method: MethodTrap, Attr: AttrNotice}, nil, ib.MKey{})
		v := Trap256{NoticeHeader: security(TrapBadMKey), Method: MethodSet, AttributeID: AttrPortInfo, MKey: ib.NewMKey(0x1234)}
		if err := Encode(m.Data(), &v); err != nil {
			t.Fatal(err)
		}
		return m[:]
	}()
	set := find(t, "opensm to ibsim: SubnDR Set PortInfo")
	odd := append([]byte(nil), set...)
	odd[0], odd[2], odd[6], odd[7] = 2, 7, 9, 77
	vendor := append([]byte(nil), set...)
	vendor[16], vendor[17] = 0xFF, 0x99
	tests := []struct {
		name string
		b    []byte
		o    DumpOptions
	}{
		{"set-portinfo", set, DumpOptions{}},
		{"portinfo-response", find(t, "ibsim to smpquery: SubnDR GetResp PortInfo"), DumpOptions{}},
		{"switchinfo-response", find(t, "ibsim to opensm: SubnDR GetResp SwitchInfo"), DumpOptions{}},
		{"pkeytable-set", find(t, "opensm to ibsim: SubnDR Set P_KeyTable"), DumpOptions{}},
		{"vlarb-set", find(t, "opensm to ibsim: SubnDR Set VLArbitration"), DumpOptions{}},
		{"get-with-garbage", find(t, "smpquery to ibsim: SubnDR Get MlnxExtendedPortInfo"), DumpOptions{}},
		{"trap128", find(t, "ibsim to opensm: Subn Trap Notice"), DumpOptions{}},
		{"trap256-redacted", badKey, DumpOptions{}},
		{"trap256-secrets", badKey, DumpOptions{Secrets: true, Indent: "  "}},
		{"perf-classportinfo", find(t, "ibsim to perfquery: Perf GetResp ClassPortInfo"), DumpOptions{}},
		{"header-only", set[:24], DumpOptions{}},
		{"cut-in-key", set[:30], DumpOptions{}},
		{"cut-in-attribute", set[:100], DumpOptions{}},
		{"cut-in-path", set[:130], DumpOptions{}},
		{"broken-header", odd, DumpOptions{}},
		{"unknown-attribute", vendor, DumpOptions{}},
	}
	for _, c := range tests {
		t.Run(c.name, func(t *testing.T) {
			var b strings.Builder
			if err := Explain(&b, c.b, c.o); err != nil {
				t.Fatal(err)
			}
			path := filepath.Join("testdata", "explain", c.name+".txt")
			if *update {
				if err := os.WriteFile(path, []byte(b.String()), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(string(want), b.String()); d != "" {
				t.Errorf("-want +got:\n%s", d)
			}
		})
	}
}

func TestExplainRefuses(t *testing.T) {
	tests := []struct {
		name string
		size int
		want string
	}{
		{"nothing", 0, "MAD: too few bytes: 0, a MAD has 256 and its header alone 24"},
		{"half a header", 23, "MAD: too few bytes: 23, a MAD has 256 and its header alone 24"},
		{"an ibsim datagram", 288, "MAD: 288 bytes, a MAD has 256: remove what a transport put around it (ibsim puts 32 bytes in front)"},
	}
	for _, c := range tests {
		t.Run(c.name, func(t *testing.T) {
			var b strings.Builder
			if err := Explain(&b, make([]byte, c.size), DumpOptions{}); err == nil || err.Error() != c.want || b.Len() != 0 {
				t.Errorf("error %v, wrote %q, want error %s", err, b.String(), c.want)
			}
		})
	}
}

type brokenWriter struct{}

var errBroken = errors.New("broken pipe")

func (brokenWriter) Write([]byte) (int, error) { return 0, errBroken }

func TestExplainTellsWriteErrors(t *testing.T) {
	if err := Explain(brokenWriter{}, find(t, "opensm to ibsim: SubnDR Set PortInfo"), DumpOptions{}); !errors.Is(err, errBroken) {
		t.Errorf("error %v, want the writer's", err)
	}
}

func TestDissectionJSON(t *testing.T) {
	d, err := Dissect(find(t, "ibsim to sminfo: Subn GetResp SMInfo"))
	if err != nil {
		t.Fatal(err)
	}
	js, err := json.Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		Class, Method, Attribute, Layout string
		MKey                             string `json:"m_key"`
		Fields                           struct {
			GUID    ib.GUID
			SMKey   string
			SMState string
		}
	}
	if err := json.Unmarshal(js, &got); err != nil {
		t.Fatalf("%s: %v", js, err)
	}
	if got.Class != "Subn" || got.Method != "GetResp" || got.Layout != "SMInfo" || got.MKey != "none" || got.Fields.GUID != 0x100001 || got.Fields.SMState != "Master" {
		t.Errorf("got %+v from %s", got, js)
	}
}

// FuzzExplain demands an answer to any bytes, as text and as JSON, and that no
// key is in it.
func FuzzExplain(f *testing.F) {
	for _, m := range frames(f) {
		f.Add(m.mad[:])
		f.Add(m.mad[:77])
	}
	for _, call := range []string{"NR", "--smkey 1 -K SR", "-s", "MCMR", "reported to h1"} {
		for _, b := range saFrames(f, "answer", call) {
			f.Add(b)
			f.Add(b[:177])
		}
	}
	f.Add(saFrames(f, "question", "--smkey 1 PKTR 1/1/0")[0])
	f.Fuzz(func(t *testing.T, b []byte) {
		var out strings.Builder
		err := Explain(&out, b, DumpOptions{})
		if wrong := len(b) < HeaderSize || len(b) > Size; (err != nil) != wrong {
			t.Fatalf("%d bytes: error %v", len(b), err)
		}
		if err != nil {
			return
		}
		d, err := Dissect(b)
		if err != nil {
			t.Fatal(err)
		}
		js, err := json.Marshal(d)
		if err != nil || !json.Valid(js) {
			t.Fatalf("JSON %s, %v", js, err)
		}
		if p, ok := d.Attribute.(*PortInfo); ok && !p.MKey.IsZero() && !strings.Contains(out.String(), "  MKey: "+ib.Redacted) {
			t.Fatalf("the M_Key is not redacted in\n%s", out.String())
		}
		if d.SA != nil && !d.SA.SAKey.IsZero() && !strings.Contains(out.String(), "\nSM_Key: "+ib.Redacted) {
			t.Fatalf("the SM_Key is not redacted in\n%s", out.String())
		}
		for _, r := range d.Records {
			if s, ok := r.Value.(*ServiceRecord); ok && !s.ServiceKey.IsZero() && !strings.Contains(out.String(), "  ServiceKey: "+ib.Redacted) {
				t.Fatalf("a ServiceKey is not redacted in\n%s", out.String())
			}
		}
	})
}
