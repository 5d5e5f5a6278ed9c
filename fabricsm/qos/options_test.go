package qos_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/qos"
)

func set(t *testing.T, o *qos.Options, name, value string) {
	t.Helper()
	if known, err := o.Set(name, value); !known || err != nil {
		t.Fatalf("%s %s: known %v, %v", name, value, known, err)
	}
}

func TestOptionsInherit(t *testing.T) {
	var o qos.Options
	set(t, &o, "qos", "TRUE")
	set(t, &o, "qos_high_limit", "3")
	set(t, &o, "qos_sl2vl", "0,0,1,1,2,2,3,3,4,4,5,5,6,6,15,15")
	set(t, &o, "qos_ca_vlarb_low", "0:1,1:2")
	set(t, &o, "qos_swe_max_vls", "4")
	set(t, &o, "qos_swe_high_limit", "-1")
	set(t, &o, "qos_rtr_sl2vl", "(null)")
	if !o.Enabled {
		t.Error("qos TRUE does not enable")
	}
	ca, swe := o.Table(qos.CA), o.Table(qos.SwitchExternal)
	if d := cmp.Diff([]qos.Entry{{VL: 0, Weight: 1}, {VL: 1, Weight: 2}}, ca.Low); d != "" {
		t.Errorf("low table of CAs (-want +got):\n%s", d)
	}
	if len(swe.Low) != 15 || swe.Low[0].Weight != 0 || swe.Low[14] != (qos.Entry{VL: 14, Weight: 4}) || swe.High[0].Weight != 4 {
		t.Errorf("default tables: low %v, high %v", swe.Low, swe.High)
	}
	if ca.HighLimit != 3 || swe.HighLimit != 3 || swe.MaxVLs != 4 || ca.MaxVLs != 15 {
		t.Errorf("limits %d and %d, lanes %d and %d", ca.HighLimit, swe.HighLimit, ca.MaxVLs, swe.MaxVLs)
	}
	if d := cmp.Diff([16]ib.VL{0, 0, 1, 1, 2, 2, 3, 3, 0, 0, 1, 1, 2, 2, 15, 15}, swe.Lanes(4)); d != "" {
		t.Errorf("lanes of a switch that may use 4 of 8 (-want +got):\n%s", d)
	}
	if d := cmp.Diff([16]ib.VL{0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 15, 15}, ca.Lanes(4)); d != "" {
		t.Errorf("lanes of a CA with 8 (-want +got):\n%s", d)
	}
}

func TestHalfFits(t *testing.T) {
	var o qos.Options
	set(t, &o, "qos_vlarb_high", strings.TrimSuffix(strings.Repeat("9:7,", 64), ","))
	table := o.Table(qos.CA)
	for _, tt := range []struct {
		name   string
		second bool
		room   uint8
		vls    ib.VLCap
		filled int
		vl     ib.VL
	}{
		{"room for 8", false, 8, 4, 8, 1},
		{"second half without room", true, 8, 4, 0, 0},
		{"room for all, 15 lanes", true, 64, 5, 32, 9},
		{"one lane", false, 64, 1, 32, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			half := table.Half(true, tt.second, tt.room, tt.vls)
			n := 0
			for n < len(half) && half[n].Weight != 0 {
				n++
			}
			if n != tt.filled || n > 0 && half[0].VL != tt.vl {
				t.Errorf("%d entries, the first %v; want %d of VL %d", n, half[0], tt.filled, tt.vl)
			}
		})
	}
}

func TestOptionsRefuse(t *testing.T) {
	for _, tt := range []struct{ name, value, want string }{
		{"qos", "maybe", `qos "maybe": want TRUE or FALSE`},
		{"qos_max_vls", "16", `qos_max_vls: "16": want 1 to 15`},
		{"qos_high_limit", "256", `qos_high_limit: "256": want 0 to 255`},
		{"qos_ca_vlarb_high", "0:4,15:1", `qos_ca_vlarb_high: "15:1": want a virtual lane 0 to 14`},
		{"qos_vlarb_low", "0", `qos_vlarb_low: "0": want a virtual lane`},
		{"qos_vlarb_low", strings.Repeat("0:1,", 64) + "0:1", "qos_vlarb_low: more than 64 entries"},
		{"qos_sl2vl", "0,1,2", `qos_sl2vl: "0,1,2" has 3 items: want 16`},
		{"qos_sl2vl", "0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,16", `qos_sl2vl: "16": want a virtual lane 0 to 15`},
	} {
		t.Run(tt.name+" "+tt.value, func(t *testing.T) {
			var o qos.Options
			known, err := o.Set(tt.name, tt.value)
			if !known || err == nil || !strings.HasPrefix(err.Error(), tt.want) {
				t.Errorf("known %v, %v; want %q", known, err, tt.want)
			}
		})
	}
	for _, name := range []string{"sm_priority", "qos_policy_file", "qos_ca_", "qosmax_vls"} {
		var o qos.Options
		if known, err := o.Set(name, "1"); known || err != nil {
			t.Errorf("%s: known %v, %v; it is none of these options", name, known, err)
		}
	}
}

func TestOptionsFile(t *testing.T) {
	o, err := qos.ParseOptions("f", []byte("# OpenSM's\nsm_priority 3\nqos TRUE\nqos_high_limit\t7 # units\n\nqos_policy_file /etc/x\n"))
	if err != nil {
		t.Fatal(err)
	}
	if !o.Enabled || o.Table(qos.Router).HighLimit != 7 {
		t.Errorf("enabled %v, limit %d", o.Enabled, o.Table(qos.Router).HighLimit)
	}
	_, err = qos.ParseOptions("f", []byte("qos perhaps\n\nqos_max_lanes 3\nqos_sl2vl 1"))
	want := "f:1: qos \"perhaps\": want TRUE or FALSE\nf:3: option \"qos_max_lanes\" is not known\nf:4: qos_sl2vl: \"1\" has 1 items: want 16, one for each service level"
	if err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}

func FuzzParseOptions(f *testing.F) {
	f.Add("qos TRUE\nqos_ca_vlarb_low 0:1,1:2\nqos_swe_max_vls 4\n")
	f.Fuzz(func(t *testing.T, file string) {
		o, err := qos.ParseOptions("f", []byte(file))
		if err != nil {
			if !strings.HasPrefix(err.Error(), "f:") {
				t.Errorf("error without its place: %v", err)
			}
			return
		}
		for _, k := range []qos.Kind{qos.CA, qos.SwitchPort0, qos.SwitchExternal, qos.Router} {
			table := o.Table(k)
			for vls := ib.VLCap(0); vls <= 5; vls++ {
				for _, vl := range table.Lanes(vls) {
					if vl != ib.VL15 && int(vl) >= max(1, vls.Count()) {
						t.Fatalf("VL %d on a port with %d", vl, vls.Count())
					}
				}
				table.Half(true, true, 64, vls)
			}
		}
	})
}
