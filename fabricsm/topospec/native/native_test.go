package native_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/topospec"
	"portcullis/fabricsm/topospec/native"
	"portcullis/fabricsm/topospec/topoconf"
)

// full is a revision with a value in every field.
func full() *topospec.Revision {
	at := time.Date(2026, 12, 20, 0, 0, 0, 0, time.UTC)
	return &topospec.Revision{
		Number: 42, Parent: topospec.Digest{1, 2, 3}, Fabric: "rail-a",
		Devices: []topospec.Device{
			{GUID: 0x0010000100000001, Kind: topospec.KindSwitch, Model: "QM9700", Serial: "MT1", Site: "fra", Room: "2", Rack: "12", U: 20, Slot: "a", Name: "leaf-1", Role: topospec.RoleLeaf, Ports: 64},
			{
				GUID: 0x0020000000000001, Kind: topospec.KindHCA, Host: "gpu-1", Rail: 3, PSID: "MT_0000000838", Role: topospec.RoleCompute, Ports: 1,
				Name: "\"gpu-1\" {é}: #3", SystemImage: 0x0020000000000001, PortGUIDs: []ib.GUID{0x0020000000000002},
			},
			{GUID: 0x0020000000000011, Kind: topospec.KindHCA, Stock: topospec.Spare, Model: "CX7"},
		},
		Links: []topospec.Link{
			{A: topospec.End{GUID: 0x0010000100000001, Port: 1}, B: topospec.End{GUID: 0x0020000000000001, Port: 1}, State: topospec.Maintenance, Class: topospec.ClassHost, Cable: topospec.Cable{Part: "MCP", Serial: "S", Length: 15}, Since: "2026-01-02", Reason: "RMA 7"},
			{A: topospec.End{GUID: 0x0010000100000001, Port: 2}, State: topospec.Reserved},
		},
		Policy: topospec.Policy{
			Mode: topospec.Enforce, Fields: topospec.Fields{GUID: topospec.FieldEnforce, Port: topospec.FieldWarn, Type: topospec.FieldOff, PortGUID: topospec.FieldWarn, SystemImage: topospec.FieldWarn, NumPorts: topospec.FieldEnforce},
			Unknown: topospec.UnknownHold, MinScore: 900, MaxFlips: 7, Stocked: true,
			Two: []topospec.Touch{topospec.TouchNewDevice, topospec.TouchPolicy}, Freeze: []topospec.Window{{From: at, To: at.Add(time.Hour), Why: "end of year"}},
		},
	}
}

var ignoreLines = cmp.Options{cmpopts.IgnoreFields(topospec.Device{}, "Line"), cmpopts.IgnoreFields(topospec.Link{}, "Line")}

func TestRoundTrip(t *testing.T) {
	for _, form := range []native.Form{native.JSON, native.YAML} {
		t.Run(fmt.Sprint(form), func(t *testing.T) {
			text := native.AppendTo(nil, full(), form)
			got, err := native.Parse("f", text)
			if err != nil {
				t.Fatalf("%v\n%s", err, text)
			}
			if diff := cmp.Diff(got, full(), ignoreLines); diff != "" {
				t.Errorf("(-got +want):\n%s", diff)
			}
			if diff := cmp.Diff(string(native.AppendTo(nil, got, form)), string(text)); diff != "" {
				t.Errorf("written again (-got +want):\n%s", diff)
			}
		})
	}
}

// TestThroughTopoconf takes a revision to topoconfig.conf and back.
func TestThroughTopoconf(t *testing.T) {
	const text = "0x98039b0300867bba,1,0xb83fd2030080302e,1,Any,Active\n0x98039b0300867bba,2,-,-,Any,No-discover\n0xb83fd2030080302e,1,0x98039b0300867bba,1,Any,Active\n0xb83fd2030080302e,2,0xf452140300280041,1,Any,Disabled\n"
	f, err := topoconf.Parse("f", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	r, err := f.Revision("f", "fab")
	if err != nil {
		t.Fatal(err)
	}
	again, err := native.Parse("f", native.AppendTo(nil, r, native.YAML))
	if err != nil {
		t.Fatal(err)
	}
	if got := string(topoconf.FromRevision(again, topoconf.TypesAny).AppendTo(nil)); got != text {
		t.Errorf("(-got +want):\n%s", cmp.Diff(got, text))
	}
}

// TestTruncated cuts a file at every byte: it is rejected, or has the same content.
func TestTruncated(t *testing.T) {
	for _, form := range []native.Form{native.JSON, native.YAML} {
		text := native.AppendTo(nil, full(), form)
		for n := range text {
			got, err := native.Parse("f", text[:n])
			if err == nil && got.Digest() != full().Digest() {
				t.Errorf("form %d: cut after %d of %d bytes it is taken as another", form, n, len(text))
			}
		}
	}
}

func TestDigest(t *testing.T) {
	a, b := full(), full()
	b.Devices[0], b.Devices[1] = b.Devices[1], b.Devices[0]
	b.Links[0].A, b.Links[0].B = b.Links[0].B, b.Links[0].A
	b.Links[0].Line = 12
	if a.Digest() != b.Digest() {
		t.Error("the order of devices, links and ends counts")
	}
	for name, change := range map[string]func(*topospec.Revision){
		"number":    func(r *topospec.Revision) { r.Number++ },
		"parent":    func(r *topospec.Revision) { r.Parent[31]++ },
		"rack":      func(r *topospec.Revision) { r.Devices[0].Rack = "13" },
		"port GUID": func(r *topospec.Revision) { r.Devices[1].PortGUIDs[0]++ },
		"state":     func(r *topospec.Revision) { r.Links[1].State = topospec.Disabled },
		"mode":      func(r *topospec.Revision) { r.Policy.Mode = topospec.Warn },
		"freeze":    func(r *topospec.Revision) { r.Policy.Freeze[0].To = r.Policy.Freeze[0].To.Add(1) },
		"last link": func(r *topospec.Revision) { r.Links = r.Links[:1] },
	} {
		c := full()
		if change(c); c.Digest() == a.Digest() {
			t.Errorf("another %s has the same digest", name)
		}
	}
}

func TestRefused(t *testing.T) {
	good := string(native.AppendTo(nil, full(), native.JSON))
	yaml := string(native.AppendTo(nil, full(), native.YAML))
	edit := func(old, now string) string {
		if !strings.Contains(good, old) {
			t.Fatalf("%q is not there", old)
		}
		return strings.Replace(good, old, now, 1)
	}
	for _, tt := range []struct{ name, text, want string }{
		{"empty", " \n", "f: empty"},
		{"byte order mark", "\uFEFF" + good, "f:1: it begins with a byte order mark"},
		{"another format", `{"format": "x"}`, `f:1: format: "x"; want portcullis-topospec/1`},
		{"something after", good + "{}", "f:18: something follows the end"},
		{"unknown key", edit(`"serial"`, `"sreial"`), `f:8: device: unknown key "sreial"; the keys are guid, kind`},
		{"other case", edit(`"serial"`, `"Serial"`), `unknown key "Serial"`},
		{"key twice", edit(`"serial": "MT1"`, `"model": "MT1"`), `f:8: device: key "model" is there twice`},
		{"unknown kind", edit(`"kind": "switch"`, `"kind": "swtich"`), `f:8: device kind: kind "swtich": want one of any, switch`},
		{"unknown state", edit(`"state": "reserved"`, `"state": "Active"`), `state "Active": want one of active, disabled`},
		{"short GUID", edit("0x0010000100000001", "0x10000100000001"), `f:8: device guid: GUID "0x10000100000001": want 0x and 16`},
		{"number as text", edit(`"u": 20`, `"u": "20"`), `f:8: device u: "20"; want a number from 0 to 99`},
		{"number too large", edit(`"u": 20`, `"u": 200`), "want a number from 0 to 99"},
		{"negative", edit(`"u": 20`, `"u": -1`), "want a string in quotes, a whole number"},
		{"null", edit(`"u": 20`, `"u": null`), `"null": want a string`},
		{"edited", edit(`"rack": "12"`, `"rack": "13"`), "f: end: digest sha256:"},
		{"device missing", strings.Replace(edit(`"stock": "spare"`, `"stock": "retired"`), `"devices": 3`, `"devices": 4`, 1), "4 devices and 2 links are announced, 3 and 2 are there"},
		{"no end", good[:strings.Index(good, ",\n\"end\"")] + "}", "it does not end with \"end\""},
		{"deep", "{\"a\":" + strings.Repeat("[", 100), "nested deeper than"},
		{"control character", edit("fra", "f\\u0007a"), "holds a character that cannot be printed"},
		{"right-to-left", edit("fra", "f\u202ea"), "holds a character that cannot be printed"},
		{"YAML alias", strings.Replace(yaml, "fabric: \"rail-a\"", "fabric: &x rail-a", 1), "anchors and aliases are not taken"},
		{"no YAML", "a: b: c", "f"},
		{"list at the top", "- a\n", "it is a list; want a table of keys"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := native.Parse("f", []byte(tt.text))
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want %q", err, tt.want)
			}
		})
	}
}

func TestDraft(t *testing.T) {
	text := strings.Replace(string(native.AppendTo(nil, full(), native.JSON)), `"rack": "12"`, `"rack": "13"`, 1)
	r, err := native.ParseDraft("f", []byte(text))
	if err != nil || r.Devices[0].Rack != "13" {
		t.Errorf("an edited draft: %v", err)
	}
}

func FuzzParse(f *testing.F) {
	f.Add(native.AppendTo(nil, full(), native.JSON))
	f.Add(native.AppendTo(nil, full(), native.YAML))
	f.Add([]byte(`{"format": "portcullis-topospec/1", "links": [{"a": "0x0010000100000001/1"}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := native.ParseDraft("f", data)
		if err != nil {
			return
		}
		for _, form := range []native.Form{native.JSON, native.YAML} {
			again, err := native.Parse("f", native.AppendTo(nil, r, form))
			if err != nil {
				t.Fatalf("what was written is refused: %v", err)
			}
			if again.Digest() != r.Digest() {
				t.Fatal("it says something else when it is written and read")
			}
		}
	})
}
