package ndt_test

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"portcullis/fabricsm/topospec"
	"portcullis/fabricsm/topospec/diff"
	"portcullis/fabricsm/topospec/generate"
	"portcullis/fabricsm/topospec/native"
	"portcullis/fabricsm/topospec/ndt"
	"portcullis/fabricsm/topospec/topospectest"
)

var rewrite = flag.Bool("rewrite", false, "write golden files anew")

func read(t testing.TB, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func manifest(t testing.TB, text string) *generate.Manifest {
	t.Helper()
	m, err := generate.ParseManifest("manifest.csv", text)
	if err != nil {
		t.Fatal(err)
	}
	return &m
}

// golden compares with a file of testdata.
func golden(t *testing.T, name, got string) {
	t.Helper()
	if *rewrite {
		if err := os.WriteFile(filepath.Join("testdata", name), []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if d := cmp.Diff(got, string(read(t, name))); d != "" {
		t.Errorf("%s (-got +want):\n%s", name, d)
	}
}

// TestGolden: the two plans of a fabric, in the wide form and in that of five columns,
// become one revision; the cables of other networks are counted.
func TestGolden(t *testing.T) {
	var files []*ndt.File
	for _, name := range []string{"switches.csv", "hosts.csv"} {
		f, err := ndt.Parse(name, read(t, name))
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, f)
	}
	r, out, err := ndt.Revision("pod1", manifest(t, string(read(t, "manifest.csv"))), files...)
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "revision.yaml", string(native.AppendTo(nil, r, native.YAML)))
	want := map[string]int{"link type Management": 1, "neither end is a device of the manifest or a switch": 1}
	if d := cmp.Diff(out, want); d != "" {
		t.Errorf("left out (-got +want):\n%s", d)
	}
	text, err := ndt.Write(topospectest.Spec(t, r))
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "written.csv", text)
}

// TestMerger reads the brief form with State and Domain, in which a cable may stand
// from both sides and ports have no cable.
func TestMerger(t *testing.T) {
	f, err := ndt.Parse("merger.csv", read(t, "merger.csv"))
	if err != nil {
		t.Fatal(err)
	}
	m := manifest(t, "name,guid,model\npod1-01IB0,0x0010000000000001,MQM8700\npod1-01IB1/L1/U1,0x0010000000000011,\ngpu-1 ibp11s0f0,0x0020000000000001,\n")
	r, _, err := ndt.Revision("pod1", m, f)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, l := range r.Links {
		got = append(got, l.A.String()+" "+l.B.String()+" "+l.State.String()+" "+l.Class.String()+" "+l.Reason)
	}
	const leaf, none = "0x0010000000000001/", "0x0000000000000000/0"
	want := []string{
		leaf + "1 0x0020000000000001/1 active host ", leaf + "21 0x0010000000000011/1 active trunk ",
		leaf + "39 " + none + " disabled any plan: Disconnected", leaf + "40 " + none + " no_discover any plan: Boundary",
	}
	if d := cmp.Diff(got, want); d != "" {
		t.Errorf("links (-got +want):\n%s", d)
	}
}

// TestRoundTrip: a revision written as a plan and read with the manifest of its
// names has the same cables.
func TestRoundTrip(t *testing.T) {
	d := topospectest.Small()
	d.SwitchModel, d.Aggregation = "MQM9700", true
	r := topospectest.Revision(t, d)
	s := topospectest.Spec(t, r)
	text, err := ndt.Write(s)
	if err != nil {
		t.Fatal(err)
	}
	f, err := ndt.Parse("plan", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	m := topospectest.Manifest(t, d)
	back, _, err := ndt.Revision(r.Fabric, &m, f)
	if err != nil {
		t.Fatal(err)
	}
	report := diff.Compare(s, topospectest.Spec(t, back), diff.CablesOnly)
	for _, i := range report.Items {
		t.Error(i)
	}
	if report.Same == 0 {
		t.Error("no cable was compared")
	}
}

const header = "StartDevice,StartPort,EndDevice,EndPort,LinkType\n"

func TestRefused(t *testing.T) {
	const devices = "name,guid,model,stock\na-IB0,0x0010000000000001,MQM8700,\nb-IB0,0x0010000000000002,,\nn-IB0,0x0010000000000004,MQM9700,\nh mlx5_0,0x0020000000000001,,\ns mlx5_0,0x0020000000000009,ConnectX-6,spare\nx,0x0020000000000005,,\n"
	line := "a-IB0,Port 1,b-IB0,Port 1,Data\n"
	for _, tt := range []struct{ name, text, want string }{
		{"empty", "", "f: empty"},
		{"byte order mark", "\uFEFF" + header, "f:1: it begins with a byte order mark"},
		{"not UTF-8", header + "\xff\n", "it is not UTF-8"},
		{"no end", strings.TrimSuffix(header+line, "\n"), "f:2: the last line has no end"},
		{"no column", "StartDevice,StartPort,EndDevice\n", `f:1: column "EndPort": it is not there`},
		{"column twice", "StartDevice,StartPort,EndDevice,EndPort,EndPort\n", `f:1: column "EndPort": it is there twice`},
		{"too many columns", strings.Repeat("x,", 64) + "x\n", "f:1: 65 columns"},
		{"cut line", header + "a-IB0,Port 1,b-IB0\n", "f:2: 3 fields; EndPort is the 4th"},
		{"cut link type", header + "a-IB0,Port 1,b-IB0,Port 1\n", "f:2: 4 fields; LinkType is the 5th"},
		{"open quote", header + "\"a-IB0,Port 1\n", "f: parse error on line 2"},
		{"unprintable", header + "a\x01,Port 1,b,Port 1,Data\n", "f:2: StartDevice: \"a\\x01\" holds a character"},
		{"long", header + strings.Repeat("a", 129) + ",Port 1,b,Port 1,Data\n", "f:2: StartDevice: 129 bytes"},
		{"half an end", header + "a-IB0,Port 1,b-IB0,,Data\n", `f:2: half an end: device "b-IB0", port ""`},
		{"no start", header + ",,b-IB0,Port 1,Data\n", "f:2: no start device"},
		{"Activ", "StartDevice,StartPort,EndDevice,EndPort,State\na-IB0,Port 1,b-IB0,Port 1,Activ\n", `f:2: State: "Activ"; want Active, Disabled`},
		{"Active with nobody", "StartDevice,StartPort,EndDevice,EndPort,State\na-IB0,Port 1,,,Active\n", "Active without an end device"},
		{"height", "StartDevice,StartPort,EndDevice,EndPort,U height\na-IB0,Port 1,b-IB0,Port 1,top\n", `f:2: U height: "top"`},
		{"magic ports", header + "a-IB0,abra,b-IB0,cadabra,Data\n", `f:2: device "a-IB0": port "abra": want Port N`},
		{"port 0", header + "a-IB0,Port 0,b-IB0,Port 1,Data\n", `port "0": want a number from 1 to 254`},
		{"port 255", header + "a-IB0,Port 255,b-IB0,Port 1,Data\n", `port "255": want a number`},
		{"port 01", header + "a-IB0,Port 01,b-IB0,Port 1,Data\n", `port "01": want a number`},
		{"not on the model", header + "a-IB0,Port 43,b-IB0,Port 1,Data\n", `device "a-IB0": port 43: MQM8700 has ports 1 to 40`},
		{"label without model", header + "b-IB0,Port 1/2/1,a-IB0,Port 1,Data\n", `port label "1/2/1": the model "" is not known`},
		{"label that is not there", header + "n-IB0,Port 1/99/1,a-IB0,Port 1,Data\n", `port label "99/1": MQM9700 has none such`},
		{"split label", header + "n-IB0,Port 1/2/1/1,a-IB0,Port 1,Data\n", "has none such"},
		{"blade 0", header + "a-IB0,Port 1,b-IB0,Blade 0_Port 1/1,Data\n", "want Blade LEAF_Port CHIP/PORT"},
		{"half a blade", header + "a-IB0,Port 1,b-IB0,Blade 3,Data\n", "want Blade LEAF_Port CHIP/PORT"},
		{"chip not in the manifest", header + "a-IB0,Port 1,b-IB0,Blade 3_Port 1/1,Data\n", `device "b-IB0/L3/U1": it is not in the manifest`},
		{"not in the manifest", header + "a-IB0,Port 1,c-IB0,Port 1,Data\n", `f:2: device "c-IB0": it is not in the manifest`},
		{"other letters", header + "a-IB0,Port 1,B-IB0,Port 1,Data\n", `the manifest has "b-IB0": names are compared letter by letter`},
		{"a spare", header + "a-IB0,Port 1,s,mlx5_0,Data\n", "the manifest says that it is spare"},
		{"switch or adapter", header + "a-IB0,Port 1,x,Port 1,Data\n", `device "x": it is not known whether`},
		{"twice", header + line + line, `f:3: "a-IB0" port "Port 1": it has a cable in f:2, too`},
		{"port twice", header + line + "h,mlx5_0,b-IB0,Port 1,Data\n", `f:3: "b-IB0" port "Port 1": it has a cable in f:2, too`},
		{"crossed", header + line + "b-IB0,Port 1,a-IB0,Port 2,Data\n", `it has a cable in f:2, too`},
		{"to itself", header + "a-IB0,Port 1,a-IB0,Port 1,Data\n", "cabled to itself"},
		{"two states", "StartDevice,StartPort,EndDevice,EndPort,State\na-IB0,Port 1,b-IB0,Port 1,Active\nb-IB0,Port 1,a-IB0,Port 1,Disabled\n", "disabled here and active in f:2"},
		{"left over", header + line, `"n-IB0": no plan has a cable for it`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f, err := ndt.Parse("f", []byte(tt.text))
			if err == nil {
				_, _, err = ndt.Revision("fab", manifest(t, devices), f)
			}
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want %q", err, tt.want)
			}
		})
	}
}

// TestTruncated cuts a plan at every byte: the rest is rejected, or is a plan with whole lines only.
func TestTruncated(t *testing.T) {
	data := read(t, "hosts.csv")
	for n := range len(data) {
		f, err := ndt.Parse("f", data[:n])
		if err == nil && data[n-1] != '\n' {
			t.Errorf("cut at %d of %d: %d lines are taken", n, len(data), len(f.Rows))
		}
	}
}

func TestWriteNeedsNames(t *testing.T) {
	r := topospectest.Revision(t, topospectest.Small())
	topospectest.Device(t, r, "leaf-2").Name = ""
	if _, err := ndt.Write(topospectest.Spec(t, r)); err == nil || !strings.Contains(err.Error(), "has no name") {
		t.Errorf("error %v, want one about a device without a name", err)
	}
}

func FuzzParse(f *testing.F) {
	for _, name := range []string{"switches.csv", "hosts.csv", "merger.csv"} {
		f.Add(read(f, name), read(f, "manifest.csv"))
	}
	f.Fuzz(func(t *testing.T, data, devices []byte) {
		file, err := ndt.Parse("f", data)
		if err != nil {
			return
		}
		m, err := generate.ParseManifest("m", string(devices))
		if err != nil {
			return
		}
		r, _, err := ndt.Revision("fab", &m, file)
		if err != nil {
			return
		}
		if err := r.Validate("f"); err != nil {
			t.Errorf("an invalid revision is taken: %v", err)
		}
		for i := range r.Links {
			if l := &r.Links[i]; l.B.IsZero() && l.State == topospec.Active {
				t.Errorf("link %v is active and leads nowhere", l.A)
			}
		}
	})
}
