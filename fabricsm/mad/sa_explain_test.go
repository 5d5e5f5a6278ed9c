package mad

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"portcullis/fabricsm/ib"
)

// saFrames returns the requests or answers of a recorded call of saquery.
func saFrames(t testing.TB, kind, call string) (mads [][]byte) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "saquery.txt"))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "\n= "+call+"\n")
	rest, _, _ = strings.Cut(rest, "output\n")
	for _, part := range strings.SplitAfter(rest, "\n"+kind+"\n")[1:] {
		part, _, _ = strings.Cut(part, "\nquestion")
		part, _, _ = strings.Cut(part, "\nanswer")
		mads = append(mads, hexMAD(t, part))
	}
	if first, ok := strings.CutPrefix(rest, kind+"\n"); ok {
		first, _, _ = strings.Cut(first, "\nquestion")
		first, _, _ = strings.Cut(first, "\nanswer")
		mads = append([][]byte{hexMAD(t, first)}, mads...)
	}
	if len(mads) == 0 {
		t.Fatalf("no %s of %q in the test data", kind, call)
	}
	return mads
}

func hexMAD(t testing.TB, digits string) []byte {
	t.Helper()
	b, err := ParseHex([]byte(digits))
	if err != nil || len(b) != Size {
		t.Fatalf("%d bytes, %v", len(b), err)
	}
	return b
}

func TestExplainSA(t *testing.T) {
	nodes := saFrames(t, "answer", "NR")
	service := saFrames(t, "answer", "--smkey 1 -K SR")[0]
	cut := func(b []byte, n int) []byte { return b[:n] }
	change := func(b []byte, f func(m *MAD)) []byte {
		m := MAD(slices.Clone(b))
		f(&m)
		return m[:]
	}
	tests := []struct {
		name string
		b    []byte
		o    DumpOptions
	}{
		{"path-question", saFrames(t, "question", "PR --service_id 0x1122334455667788 --sgid fe80::10:1 --dgid fe80::10:3 --slid 1 --dlid 4 --hop_limit 9 --flow_label 0x77"+
			" --tclass 6 --reversible 1 --numb_path 3 --pkey 0x8123 --qos_class 2748 --sl 5 --mtu 0x44 --rate 0x83 --pkt_lifetime 0xd2")[0], DumpOptions{}},
		{"path-answer", saFrames(t, "answer", "PR --slid 1 --dlid 4")[0], DumpOptions{}},
		{"issm-question", saFrames(t, "question", "-s")[0], DumpOptions{}},
		{"trusted-question", saFrames(t, "question", "--smkey 1 PKTR 1/1/0")[0], DumpOptions{}},
		{"trusted-question-secrets", saFrames(t, "question", "--smkey 1 PKTR 1/1/0")[0], DumpOptions{Secrets: true}},
		{"all-question", saFrames(t, "question", "NR")[0], DumpOptions{}},
		{"nodes-first", nodes[0], DumpOptions{}},
		{"nodes-middle", nodes[1], DumpOptions{}},
		{"nodes-last", nodes[len(nodes)-1], DumpOptions{}},
		{"nodes-cut", cut(nodes[0], 170), DumpOptions{}},
		{"refused", saFrames(t, "answer", "PKTR 1/1/0")[0], DumpOptions{}},
		{"empty", saFrames(t, "answer", "MFTR 3/5/7")[0], DumpOptions{}},
		{"classportinfo", saFrames(t, "answer", "-c")[0], DumpOptions{}},
		{"service", service, DumpOptions{}},
		{"service-secrets", service, DumpOptions{Secrets: true, Indent: "  "}},
		{"report", saFrames(t, "answer", "reported to h1")[0], DumpOptions{}},
		{"report-cut", cut(saFrames(t, "answer", "reported to h1")[0], 130), DumpOptions{}},
		{"unfilled", change(saFrames(t, "answer", "LR")[0], func(m *MAD) { m.SetRMPPHeader(RMPPHeader{Flags: RMPPActive}) }), DumpOptions{}},
		{"ack", change(nodes[0], func(m *MAD) {
			m.SetMethod(MethodGetTable)
			m.SetRMPPHeader(RMPPHeader{Version: 1, Type: RMPPAck, RespTime: NoRespTime, Flags: RMPPActive, Data1: 1, Data2: 33})
		}), DumpOptions{}},
		{"abort", change(nodes[0], func(m *MAD) {
			m.SetRMPPHeader(RMPPHeader{Version: 1, Type: RMPPAbort, Flags: RMPPActive, Status: RMPPS2B})
		}), DumpOptions{}},
		{"wrong-rmpp", change(nodes[0], func(m *MAD) {
			m.SetRMPPHeader(RMPPHeader{Version: 2, Type: RMPPData, Flags: RMPPActive | RMPPLast, Status: 1, Data1: 1, Data2: 7})
		}), DumpOptions{}},
		{"wrong-offset", change(nodes[0], func(m *MAD) { m.SetAttributeOffset(13) }), DumpOptions{}},
		{"multipath", multiPath(t, 200), DumpOptions{}},
		{"multipath-more", multiPath(t, 0), DumpOptions{}},
		{"tracetable", change(saFrames(t, "question", "PR --slid 1 --dlid 4")[0], func(m *MAD) {
			m.SetMethod(MethodGetTrace)
			m.SetAttr(AttrTraceRecord)
		}), DumpOptions{}},
		{"cut-in-rmpp", cut(nodes[0], 30), DumpOptions{}},
		{"cut-in-header", cut(nodes[0], 50), DumpOptions{}},
		{"cut-before-data", cut(nodes[0], 56), DumpOptions{}},
	}
	for _, c := range tests {
		t.Run(c.name, func(t *testing.T) {
			var b strings.Builder
			if err := Explain(&b, c.b, c.o); err != nil {
				t.Fatal(err)
			}
			path := filepath.Join("testdata", "explain", "sa-"+c.name+".txt")
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

// multiPath is a GetMulti that asks from two ports to one, or of 13 GIDs if others is
// 0, which do not fit.
func multiPath(t *testing.T, size int) []byte {
	t.Helper()
	var m MAD
	m.SetHeader(Header{Class: ClassSubnAdm, ClassVersion: SAClassVersion, Method: MethodGetMulti, Attr: AttrMultiPathRecord, TID: 7})
	m.SetRMPPHeader(RMPPHeader{Version: 1, Type: RMPPData, RespTime: NoRespTime, Flags: RMPPActive | RMPPFirst | RMPPLast, Data1: 1, Data2: 20 + 24 + 48})
	m.SetComponentMask(MultiPathComponentSGIDCount | MultiPathComponentDGIDCount | MultiPathServiceID)
	r := MultiPathRecord{SGIDCount: 2, DGIDCount: 1, ServiceID8MSB: 0x10, ServiceID56LSB: 0x42}
	if size == 0 {
		r.DGIDCount = 11
		m.SetRMPPFlags(RMPPActive | RMPPFirst)
	}
	if err := Encode(m.SAData(), &r); err != nil {
		t.Fatal(err)
	}
	for i := range 11 {
		g := ib.MakeGID(ib.DefaultPrefix, ib.GUID(i+1))
		if i < 3 || size == 0 {
			copy(m.SAData()[24+16*i:], g[:])
		}
	}
	return m[:]
}

func TestDissectionJSONSA(t *testing.T) {
	d, err := Dissect(saFrames(t, "answer", "SWIR")[1])
	if err != nil {
		t.Fatal(err)
	}
	js, err := json.Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		Layout string
		SA     struct {
			RMPP struct {
				Type, Flags string
				Data1       int
			}
			SMKey           string `json:"sm_key"`
			AttributeOffset int    `json:"attribute_offset"`
			ComponentMask   string `json:"component_mask"`
		}
		Records []struct {
			Number int
			Fields struct {
				LID          ib.LID
				LinearFDBCap int
			}
		}
	}
	if err := json.Unmarshal(js, &got); err != nil {
		t.Fatalf("%s: %v", js, err)
	}
	if got.Layout != "SwitchInfoRecord" || got.SA.RMPP.Type != "DATA" || got.SA.RMPP.Flags != "Active|First|Last" || got.SA.RMPP.Data1 != 1 ||
		got.SA.SMKey != "none" || got.SA.AttributeOffset != 3 || got.SA.ComponentMask != "0x0000000000000000" {
		t.Errorf("got %+v from %s", got, js)
	}
	if len(got.Records) != 2 || got.Records[0].Fields.LID != 2 || got.Records[1].Number != 1 || got.Records[1].Fields.LID != 3 || got.Records[1].Fields.LinearFDBCap != 0xC000 {
		t.Errorf("records %+v from %s", got.Records, js)
	}
}

// TestExplainSAPrefixes: no prefix of any recorded MAD is too much, and none shows a key.
func TestExplainSAPrefixes(t *testing.T) {
	service := saFrames(t, "answer", "--smkey 1 -K SR")[0]
	key := "a001020304050607"
	if whole, err := Dissect(service); err != nil || whole.Records[0].Value.(*ServiceRecord).ServiceKey.IsZero() {
		t.Fatalf("the record has no key: %v", err)
	}
	for n := HeaderSize; n <= Size; n++ {
		d, err := Dissect(service[:n])
		if err != nil {
			t.Fatal(err)
		}
		js, err := json.Marshal(d)
		if err != nil {
			t.Fatal(err)
		}
		var b strings.Builder
		if err := Explain(&b, service[:n], DumpOptions{}); err != nil {
			t.Fatal(err)
		}
		if strings.Contains(b.String(), key) || strings.Contains(string(js), key) || n < Size && len(d.Notes) == 0 && len(d.Records) == 0 {
			t.Errorf("%d bytes: %s %s", n, js, b.String())
		}
	}
}
