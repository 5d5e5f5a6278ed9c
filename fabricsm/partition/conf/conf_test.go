package conf_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/partition/conf"
	"portcullis/fabricsm/topo"
	"portcullis/fabricsm/topo/topotest"
)

func gid(s string) ib.GID {
	g, err := ib.ParseGID(s)
	if err != nil {
		panic(err)
	}
	return g
}

func one(g ib.GUID) conf.Who { return conf.Who{GUID: g} }

func TestParse(t *testing.T) {
	for _, tt := range []struct {
		name, file string
		want       conf.Rules
	}{
		{"empty", "", conf.Rules{}},
		{"comment only", "# nothing\n\n", conf.Rules{}},
		{"default partition as it is anyway", "Default=0x7fff, defmember=limited : ALL, SELF=full, 0x10=limited, NONE ;", conf.Rules{}},
		{"default partition by name", "Default : ALL=limited ;\nB=5: 1=full;", conf.Rules{
			Partitions: []conf.Partition{{Name: "B", PKey: 0x8005, Who: []conf.Who{one(1)}}},
		}},
		{"tenants", "A=0x101, defmember=full : 0x10, 020,\n  17 ;\nB = 258 : 0x20 = full , SELF=full", conf.Rules{
			Partitions: []conf.Partition{
				{Name: "A", PKey: 0x8101, Who: []conf.Who{one(0x10), one(17)}},
				{Name: "B", PKey: 0x8102, Who: []conf.Who{one(0x20), {Group: conf.Self}}},
			},
		}},
		{"several on one line, comment inside", "A=1:1=full;B=2:ALL_CAS=full, # all\nALL_ROUTERS=full;", conf.Rules{
			Partitions: []conf.Partition{
				{Name: "A", PKey: 0x8001, Who: []conf.Who{one(1)}},
				{Name: "B", PKey: 0x8002, Who: []conf.Who{{Group: conf.AllCAs}, {Group: conf.AllRouters}}},
			},
		}},
		{"key without a name, upper bit set", "0x8003 : 1=full;", conf.Rules{
			Partitions: []conf.Partition{{PKey: 0x8003, Who: []conf.Who{one(1)}}},
		}},
		{"same key merges", "A=3 : 1=full;\nB=0x8003 : 2=full, 1=full;", conf.Rules{
			Partitions: []conf.Partition{{Name: "A", PKey: 0x8003, Who: []conf.Who{one(1), one(2)}}},
			Notices:    []string{`f:2: "A" and "B" have the P_Key 0x0003 and are one partition`},
		}},
		{"keys that are not given", "X : 1=full;\nA=1 : 2=full;\nX : 3=full;\nA : 4=full;", conf.Rules{
			Partitions: []conf.Partition{
				{Name: "X", PKey: 0x8002, Who: []conf.Who{one(1), one(3)}},
				{Name: "A", PKey: 0x8001, Who: []conf.Who{one(2), one(4)}},
			},
			Notices: []string{`f:1: partition "X" gets the P_Key 0x0002; name one to keep it when the file changes`},
		}},
		{"groups", "A=1, ipoib, rate=7, mtu=5, sl=0x0 :\n mgid=ff12:401b::16, sl=1\n 1=full;", conf.Rules{
			Partitions: []conf.Partition{{Name: "A", PKey: 0x8001, Who: []conf.Who{one(1)}}},
			Groups: []conf.Multicast{
				{PKey: 0x8001, Scope: 2, QKey: 0xB1B, MTU: ib.MTU4096, Rate: 7},
				{PKey: 0x8001, MGID: gid("ff12:401b:8001::16"), QKey: 0xB1B, MTU: ib.MTU2048, Rate: ib.Rate10, SL: 1},
			},
			SLs: map[ib.PKey]ib.SL{1: 0},
		}},
		{"groups of the default partition", "Default=0x7fff, ipoib, scope=2, scope=5, Q_Key=0x80000b1b, TClass=3, FlowLabel=9 : ALL=limited;\nDefault=0x7fff, sl=4 : ;\nA=1, rate=3:1=full;\n0x7fff : mgid=ff15::1, mtu=1, scope=3;\n0x7fff : mgid=ff15::1, mtu=1;", conf.Rules{
			Partitions: []conf.Partition{{Name: "A", PKey: 0x8001, Who: []conf.Who{one(1)}}},
			Groups: []conf.Multicast{
				{PKey: 0xFFFF, Scope: 2, QKey: 0x80000B1B, MTU: ib.MTU2048, Rate: ib.Rate10, TClass: 3, FlowLabel: 9},
				{PKey: 0xFFFF, Scope: 5, QKey: 0x80000B1B, MTU: ib.MTU2048, Rate: ib.Rate10, TClass: 3, FlowLabel: 9},
				{PKey: 0xFFFF, MGID: gid("ff15::1"), QKey: 0xB1B, MTU: ib.MTU256, Rate: ib.Rate10},
			},
			SLs: map[ib.PKey]ib.SL{0x7FFF: 4},
			Notices: []string{
				"f:3: rate: no effect without ipoib",
				"f:4: scope: no effect beside mgid, which has it",
			},
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := conf.Parse("f", []byte(tt.file))
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(&tt.want, got); d != "" {
				t.Errorf("rules (-want +got):\n%s", d)
			}
		})
	}
}

func TestParseRefuses(t *testing.T) {
	for _, tt := range []struct {
		name, file string
		want       []string
	}{
		{"no colon", "\nA=1 ;", []string{`f:2: "A=1 ;": want a partition and a colon`}},
		{"key 0", "A=0x8000 : 1=full;", []string{`f:1: P_Key "0x8000": want`}},
		{"key too large", "A=0x18000 : 1=full;", []string{`f:1: P_Key "0x18000": want`}},
		{"empty key", "A= : 1=full;", []string{`f:1: P_Key "": want`}},
		{"unknown flag", "A=1, ipoip : 1=full;", []string{`f:1: flag "ipoip" is not known`}},
		{"flag value", "A=1, mtu=big : 1=full;", []string{`f:1: mtu: "big": want a number`}},
		{"abbreviated membership", "A=1 : 1=f;", []string{`f:1: membership "f": want full, limited or both`}},
		{"empty membership", "A=1 : 1=;", []string{`f:1: membership "": want`}},
		{"abbreviated group", "A=1 : AL=full;", []string{`f:1: member "AL": want a port GUID`}},
		{"zero GUID", "A=1 : 0=full;", []string{`f:1: member "0": want a port GUID`}},
		{"mgid", "A=1 : mgid=fe80::1;", []string{`f:1: mgid "fe80::1": want`}},
		{"group flags", "A=1, ipoib, mtu=6, rate=1, sl=16, scope=15, TClass=256, FlowLabel=0x100000 : 1=full;", []string{
			"f:1: mtu 6: want", "f:1: rate 1: want", "f:1: sl 16: want", "f:1: scope 15: want", "f:1: TClass 256: want", "f:1: FlowLabel 1048576: want",
		}},
		{"flag of mgid", "A=1 : mgid=ff12::1, ipoib\n mgid=ff12::2, rate=x\n 1=full;", []string{`f:1: flag "ipoib" of mgid`, `f:2: rate: "x"`}},
		{"group of another partition", "A=1 : mgid=ff12:401b:8002::16\n 1=full;", []string{"f:1: mgid ff12:401b:8002::16: it is a group of P_Key 0x8002, not of 0x0001"}},
		{"group twice", "A=1, ipoib : 1=full;\nA=1, ipoib, mtu=5 : ;", []string{"f:2: a multicast group is there twice"}},
		{"limited tenant", "A=1 : 7;", []string{`f:1: "7": limited members are supported in the default partition only`}},
		{"both", "A=1 : 7=both;", []string{`f:1: "7=both": both members are supported`}},
		{"all", "A=1 : ALL=full;", []string{`f:1: "ALL=full": switches are not made members`}},
		{"switches", "A=1 : ALL_SWITCHES=full;", []string{`f:1: "ALL_SWITCHES=full": switches are not made members`}},
		{"index 0", "A=1, indx0 : 7=full;", []string{"f:1: indx0: index 0"}},
		{"default opened", "Default=0x7fff : ALL=full;", []string{`f:1: "ALL=full": only the Subnet Manager is a full member`}},
		{"default opened to switches", "Default=0x7fff : ALL=limited, ALL_SWITCHES=full, SELF=full;", []string{`f:1: "ALL_SWITCHES=full": any host could send MADs to switches`}},
		{"default opened to one", "0xffff : SELF=full, 7=full;", []string{`f:1: "7=full": only the Subnet Manager`}},
		{"SM limited", "Default : ALL=limited;\nDefault : SELF;", []string{`f:2: "SELF": the Subnet Manager is always a full member`}},
		{"several", "A=1 : x=full,\n y=full;\nB=2, z : ;", []string{"f:1: member", "f:2: member", "f:3: flag"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := conf.Parse("f", []byte(tt.file))
			if err == nil {
				t.Fatalf("accepted: %+v", got)
			}
			said := strings.Split(err.Error(), "\n")
			if len(said) != len(tt.want) {
				t.Fatalf("said %q, want %d problems", said, len(tt.want))
			}
			for i, want := range tt.want {
				if !strings.HasPrefix(said[i], want) {
					t.Errorf("said %q, want it to begin with %q", said[i], want)
				}
			}
		})
	}
}

func TestParseBounds(t *testing.T) {
	if _, err := conf.Parse("f", make([]byte, conf.MaxSize+1)); !errors.Is(err, conf.ErrTooLarge) {
		t.Errorf("a file of more than MaxSize: %v", err)
	}
	_, err := conf.Parse("f", []byte("A=1 : "+strings.Repeat("x,", 1000)))
	if n := strings.Count(err.Error(), "\n") + 1; n != 51 {
		t.Errorf("a file of 1000 problems: %d are told, want 50 and that there are more", n)
	}
}

// tree is a switch with three hosts on ports 1 to 3, the last of which shows
// the GUID of the second.
func tree(t *testing.T) *topo.Fabric {
	t.Helper()
	var k topotest.Kit
	sw := k.Switch(1, 1, 8)
	for i := range 3 {
		h := k.Host(1)
		k.LinkPorts(sw, i+1, h, 1)
	}
	id := k.PortOf(k.Hosts[2], 1)
	clone := k.Port(id)
	clone.GUID = portOf(1)
	k.SetPort(id, clone)
	return k.Freeze()
}

func portOf(host int) ib.GUID { return topotest.HostGUID(host) + 1 }

func at(port ib.PortNum) ib.Place { return ib.Place{Switch: topotest.SwitchGUID(1, 1), Port: port} }

func FuzzParse(f *testing.F) {
	f.Add("Default=0x7fff, ipoib : ALL=limited, SELF=full ;\nA=0x101, defmember=full : 0x10, 16 ;\n")
	f.Add("X : mgid=ff12:401b::16, sl=1\n 1=full; # c")
	f.Fuzz(func(t *testing.T, file string) {
		r, err := conf.Parse("f", []byte(file))
		if err != nil {
			if !strings.HasPrefix(err.Error(), "f:") {
				t.Errorf("error without its place: %v", err)
			}
			return
		}
		for _, p := range r.Partitions {
			if !p.PKey.IsFull() || !p.PKey.Valid() || p.PKey == ib.DefaultPKeyFull {
				t.Errorf("partition %q has the P_Key %v", p.Name, p.PKey)
			}
		}
	})
}
