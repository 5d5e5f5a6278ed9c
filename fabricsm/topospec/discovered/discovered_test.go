package discovered_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"portcullis/fabricsm/topospec"
	"portcullis/fabricsm/topospec/diff"
	"portcullis/fabricsm/topospec/discovered"
	"portcullis/fabricsm/topospec/topospectest"
)

// grouped is a fabric as ibnetdiscover prints it, with an aggregation node.
const grouped = `#
# Topology file: generated on Sat Nov 21 21:00:00 2026
#
vendid=0x2c9
devid=0xd2f2
sysimgguid=0x98039b0300867bba
switchguid=0x98039b0300867bba(98039b0300867bba)
Switch	65 "S-98039b0300867bba"		# "MF0;leaf-1:MQM9700/U1" enhanced port 0 lid 3 lmc 0
[1]	"H-f452140300280040"[1](f452140300280041) 		# "gpu-1 mlx5_0" lid 7 4xNDR
[2]	"H-f452140300280080"[1](f452140300280081) 		# "localhost HCA-1" lid 8 4xNDR
[65]	"H-98039b0300867bc2"[1](98039b0300867bc2) 		# "Mellanox Technologies Aggregation Node" lid 9 4xNDR

vendid=0x2c9
devid=0xcf09
sysimgguid=0x98039b0300867bba
caguid=0x98039b0300867bc2
Ca	1 "H-98039b0300867bc2"		# "Mellanox Technologies Aggregation Node"
[1](98039b0300867bc2) 	"S-98039b0300867bba"[65]		# lid 9 lmc 0 "MF0;leaf-1:MQM9700/U1" lid 3 4xNDR

caguid=0xf452140300280040
Ca	1 "H-f452140300280040"		# "gpu-1 mlx5_0"
[1](f452140300280041) 	"S-98039b0300867bba"[1]		# lid 7 lmc 0 "MF0;leaf-1:MQM9700/U1" lid 3 4xNDR

caguid=0xf452140300280080
Ca	1 "H-f452140300280080"		# "localhost HCA-1"
[1](f452140300280081) 	"S-98039b0300867bba"[2]		# lid 8 lmc 0 "MF0;leaf-1:MQM9700/U1" lid 3 4xNDR
`

func TestParse(t *testing.T) {
	r, err := discovered.Parse("f", "fab", []byte(grouped))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, d := range r.Devices {
		got = append(got, d.Kind.String()+" "+d.Name+" host="+d.Host)
	}
	for _, l := range r.Links {
		got = append(got, l.A.String()+" "+l.B.String()+" "+l.Class.String())
	}
	const sw = "0x98039b0300867bba/"
	want := []string{
		"switch MF0;leaf-1:MQM9700/U1 host=", "an Mellanox Technologies Aggregation Node host=", "hca gpu-1 mlx5_0 host=gpu-1", "hca localhost HCA-1 host=",
		sw + "1 0xf452140300280040/1 host", sw + "2 0xf452140300280080/1 host", sw + "65 0x98039b0300867bc2/1 internal",
	}
	if d := cmp.Diff(got, want); d != "" {
		t.Errorf("(-got +want):\n%s", d)
	}
	if g := r.Devices[2].PortGUIDs; len(g) != 1 || g[0] != 0xf452140300280041 {
		t.Errorf("port GUIDs %v", g)
	}
}

// TestNetlist: names and counted GUIDs, as ibsim reads them.
func TestNetlist(t *testing.T) {
	const netlist = "switchguid=0x0010000100000001\nSwitch 36 \"leaf1\"\n[1] \"sm\"[1]\n[2] \"h1\"\n\ncaguid=0x0020000000000000\nCa 1 \"sm\"\n[1] \"leaf1\"[1] w=3\n\nCa 1 \"h1\"\n[1] \"leaf1\"[2]\n"
	r, err := discovered.Parse("f", "fab", []byte(netlist))
	if err != nil {
		t.Fatal(err)
	}
	s := topospectest.Spec(t, r)
	if got, want := s.Where(s.Belongs(topospec.End{GUID: 0x0020000000000002, Port: 1})), "leaf1 port 2"; got != want {
		t.Errorf("h1 is at %q, want %q", got, want)
	}
}

func TestRefused(t *testing.T) {
	cut := func(old string) string {
		i := strings.LastIndex(grouped, old)
		if i < 0 {
			t.Fatalf("%q is not there", old)
		}
		return grouped[:i]
	}
	for _, tt := range []struct{ name, text, want string }{
		{"empty", "", "no link"},
		{"--ports", "CA   134  1 0x0002c90300a01b21 4x EDR - SW  1719 10 0x0002c90300a01b22 ( 'host HCA-1' - 'leaf' )\n", `is no line of ibnetdiscover`},
		{"cut off", cut("caguid=0xf452140300280080"), `leads to "H-f452140300280080", which the input does not describe`},
		{"cut off in a node", cut("[1](f452140300280081)"), "it leads to 0xf452140300280080/1, which does not lead back"},
		{"one GUID twice", grouped + grouped[strings.Index(grouped, "caguid=0xf452140300280080"):], "two devices claim one GUID"},
		{"port twice", strings.Replace(grouped, "[2]\t", "[1]\t", 1), "port 1 is there twice"},
		{"port too high", strings.Replace(grouped, "[65]\t", "[66]\t", 1), "want a port from 1 to 65"},
		{"group GUID", strings.ReplaceAll(grouped, "f452140300280080", "0152140300280080"), "has the group bit set"},
		{"port outside", "[1] \"x\"\n", "a port outside a node"},
		{"no name", "Switch 4\n", "want a number of ports"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if _, err := discovered.Parse("f", "fab", []byte(tt.text)); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want %q", err, tt.want)
			}
		})
	}
}

// TestFabricAndBack makes a fabric of a revision and a revision of the fabric.
func TestFabricAndBack(t *testing.T) {
	r := topospectest.Revision(t, topospectest.Small())
	f, _ := topospectest.Fabric(t, r)
	back, err := discovered.Revision(f, r.Fabric)
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range diff.Compare(topospectest.Spec(t, r), topospectest.Spec(t, back), diff.CablesOnly).Items {
		t.Error(i)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(grouped))
	f.Add([]byte("switchguid+0xffffffffffffffff\nSwitch 254 \"x\"\n[1] \"x\"[2]\n[2] \"x\"[1]\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := discovered.Parse("f", "fab", data)
		if err == nil && r.Validate("f") != nil {
			t.Error("an invalid revision is taken")
		}
	})
}
