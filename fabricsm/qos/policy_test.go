package qos_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/qos"
)

// policyFile has something of everything that the grammar allows.
const policyFile = `# who is who
port-groups
    port-group
        name: Storage
        use: our targets: the ones with disks
        port-guid: 0x10-0x1F, 0x30
    end-port-group
    port-group
        name: Virtual
        port-name: vs1 HCA-1/P1, vs2 HCA-1/P1
        partition: Part1
        pkey: 0x8003
    end-port-group
    port-group
        name: Routers and SM
        node-type: ROUTER, self
    end-port-group
end-port-groups

qos-setup
    vlarb-tables
        vlarb-scope
            group: Storage
            vlarb-high: 0:255,1:127
        end-vlarb-scope
    end-vlarb-tables
end-qos-setup

qos-levels
    qos-level
        name: Whole
        use: all limits
        sl: 1
        mtu-limit: 4
        rate-limit: 5
        packet-life: 8
        pkey: 0x1-0x3
    end-qos-level
    qos-level
        name: DEFAULT
        sl: 0
    end-qos-level
end-qos-levels

qos-ulps
    sdp, port-num 30000 : 2
    sdp : 3
    rds, port-num 25000 : 4
    iser : 5
    ipoib, pkey 0x0002 : 6
    ipoib : 7
    any, service-id 0x6234 : 8
    srp, target-port-guid 0x99 : 9
    any, source-target-port-guid 0x55-0x56 : 10
end-qos-ulps

qos-match-rules
    qos-match-rule
        use: by class
        qos-class: 7-9,11
        qos-level-name: whole
    end-qos-match-rule
    qos-match-rule
        source: Virtual, Routers and SM
        destination: Storage
        service-id: 22,4719-5000
        qos-level-name: Whole
    end-qos-match-rule
end-qos-match-rules
`

func policy(t testing.TB, file string) *qos.Policy {
	t.Helper()
	p, err := qos.ParsePolicy("f", []byte(file))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestPolicyLevels(t *testing.T) {
	p := policy(t, policyFile)
	if d := cmp.Diff([]string{"f:20: qos-setup is ignored: tables are set with options"}, p.Notices); d != "" {
		t.Errorf("notices (-want +got):\n%s", d)
	}
	whole := qos.Level{
		Name: "Whole", SL: 1, HasSL: true, MTULimit: ib.MTU2048, RateLimit: 5, PacketLife: 8, HasLife: true,
		PKeys: qos.Ranges{{From: 1, To: 3}},
	}
	levels := p.Levels()
	if levels[0].Name != "DEFAULT" {
		t.Errorf("the default level is %q", levels[0].Name)
	}
	for _, l := range levels {
		if l.Name == "Whole" {
			if d := cmp.Diff(whole, l); d != "" {
				t.Errorf("level (-want +got):\n%s", d)
			}
		}
	}
	storage := p.GroupsOf(&qos.Port{GUID: 0x12, Type: ib.NodeCA})
	byName := p.GroupsOf(&qos.Port{GUID: 1, Type: ib.NodeCA, Name: "vs2 HCA-1/P1"})
	byPart := p.GroupsOf(&qos.Port{GUID: 1, Type: ib.NodeCA, Partitions: []string{"Part1"}})
	byKey := p.GroupsOf(&qos.Port{GUID: 1, Type: ib.NodeCA, PKeys: []ib.PKey{0x8001, 0x0003}})
	self := p.GroupsOf(&qos.Port{GUID: 1, Type: ib.NodeCA, Self: true})
	router := p.GroupsOf(&qos.Port{GUID: 1, Type: ib.NodeRouter})
	other := p.GroupsOf(&qos.Port{GUID: 0x20, Type: ib.NodeCA, Name: "h1/P1"})
	guid := func(g ib.GUID) qos.Groups { return p.GroupsOf(&qos.Port{GUID: g, Type: ib.NodeCA}) }
	for _, tt := range []struct {
		name string
		q    qos.Query
		sl   ib.SL
	}{
		{"nothing matches", qos.Query{From: other, To: other}, 0},
		{"class", qos.Query{Class: 8, HasClass: true}, 1},
		{"class that is not asked for", qos.Query{Class: 8}, 0},
		{"class between", qos.Query{Class: 10, HasClass: true}, 0},
		{"groups and service", qos.Query{From: byName, To: storage, Service: 4719, HasService: true}, 1},
		{"by partition", qos.Query{From: byPart, To: storage, Service: 22, HasService: true}, 1},
		{"by P_Key", qos.Query{From: byKey, To: storage, Service: 22, HasService: true}, 1},
		{"the SM", qos.Query{From: self, To: storage, Service: 22, HasService: true}, 1},
		{"a router", qos.Query{From: router, To: storage, Service: 22, HasService: true}, 1},
		{"groups the other way", qos.Query{From: storage, To: byName, Service: 22, HasService: true}, 0},
		{"another service", qos.Query{From: byName, To: storage, Service: 23, HasService: true}, 0},
		{"sdp port", qos.Query{Service: 0x10000 + 30000, HasService: true}, 2},
		{"sdp", qos.Query{Service: 0x10000 + 30001, HasService: true}, 3},
		{"rds port", qos.Query{Service: 0x1060000 + 25000, HasService: true}, 4},
		{"iser", qos.Query{Service: 0x1060CBC, HasService: true}, 5},
		{"ipoib of a partition", qos.Query{PKey: 0x8002, HasPKey: true}, 6},
		{"ipoib", qos.Query{PKey: 0xFFFF, HasPKey: true}, 7},
		{"any service", qos.Query{Service: 0x6234, HasService: true}, 8},
		{"srp", qos.Query{From: other, To: guid(0x99)}, 9},
		{"srp the other way", qos.Query{From: guid(0x99), To: other}, 0},
		{"between two of a list", qos.Query{From: guid(0x55), To: guid(0x56)}, 10},
		{"from one of a list", qos.Query{From: guid(0x55), To: other}, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if l := p.Level(&tt.q); l.SL != tt.sl {
				t.Errorf("level %q with SL %d, want SL %d", l.Name, l.SL, tt.sl)
			}
		})
	}
	if !whole.Allows(0x8002) || whole.Allows(0x8004) || !levels[0].Allows(0x8004) {
		t.Error("P_Keys of levels")
	}
}

func TestLevelDoesNotAllocate(t *testing.T) {
	p := policy(t, policyFile)
	q := qos.Query{From: p.GroupsOf(&qos.Port{GUID: 0x12}), To: p.GroupsOf(&qos.Port{GUID: 0x13}), Service: 23, HasService: true}
	if n := testing.AllocsPerRun(100, func() { p.Level(&q) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestSimplePolicy(t *testing.T) {
	p := policy(t, "qos-ulps\n default : 2\n sdp : 1\nend-qos-ulps\n")
	if l := p.Level(&qos.Query{}); l.SL != 2 {
		t.Errorf("default SL %d", l.SL)
	}
	if l := p.Level(&qos.Query{Service: 0x10000, HasService: true}); l.SL != 1 {
		t.Errorf("SDP has SL %d", l.SL)
	}
}

func TestPolicyRefuses(t *testing.T) {
	level := "qos-levels\nqos-level\nname: DEFAULT\nend-qos-level\nend-qos-levels\n"
	for _, tt := range []struct{ name, file, want string }{
		{"empty", "", "f:0: no level is named DEFAULT"},
		{"unknown section", "qos-lvels\n" + level, `f:1: "qos-lvels": want one of the sections`},
		{"section in the wrong place", "qos-level\n" + level, `f:1: "qos-level": want one of the sections`},
		{"end missing", level + "qos-ulps\nsdp : 1", "f:7: the file ends inside qos-ulps: want end-qos-ulps"},
		{"unknown key", "port-groups\nport-group\nname: A\ngiud: 1\nend-port-group\nend-port-groups\n" + level, `f:4: key "giud" is not known in port-group`},
		{"no value", "port-groups\nport-group\nname:\nend-port-group\nend-port-groups\n" + level, `f:3: "name:": want a key, a colon and a value`},
		{"group without a name", "port-groups\nport-group\nend-port-group\nend-port-groups\n" + level, `f:3: port group "": want a name`},
		{"node type", "port-groups\nport-group\nname: A\nnode-type: HCA\nend-port-group\nend-port-groups\n" + level, `f:4: node type "HCA": want CA`},
		{"backwards", "port-groups\nport-group\nname: A\nport-guid: 9-8\nend-port-group\nend-port-groups\n" + level, `f:4: "9-8": want a number of at most 64 bits`},
		{"SL", "qos-levels\nqos-level\nname: A\nsl: 16\nend-qos-level\nend-qos-levels\n" + level, `f:4: sl "16": want a number 0 to 15`},
		{"MTU", "qos-levels\nqos-level\nname: A\nmtu-limit: 2048\nend-qos-level\nend-qos-levels\n" + level, `f:4: mtu-limit "2048": want a number 1 to 5`},
		{"level twice", level + level, `f:9: level "DEFAULT": want a name that no other has`},
		{"rule without a level", level + "qos-match-rules\nqos-match-rule\nqos-class: 1\nend-qos-match-rule\nend-qos-match-rules", "f:9: the rule has no qos-level-name"},
		{"unknown level", level + "qos-match-rules\nqos-match-rule\nqos-level-name: X\nend-qos-match-rule\nend-qos-match-rules", `f:7: the rule wants level "X"`},
		{"unknown group", level + "qos-match-rules\nqos-match-rule\nsource: X\nqos-level-name: default\nend-qos-match-rule\nend-qos-match-rules", `f:7: the rule wants port group "X"`},
		{"protocol", level + "qos-ulps\nsctp : 1\nend-qos-ulps", `f:7: "sctp ": want default; sdp`},
		{"key of a protocol", level + "qos-ulps\nsdp, pkey 1 : 1\nend-qos-ulps", `f:7: "sdp, pkey 1 ": want default; sdp`},
		{"port number", level + "qos-ulps\nsdp, port-num 65536 : 1\nend-qos-ulps", `f:7: "65536": want a number of at most 16 bits`},
		{"SL of a protocol", level + "qos-ulps\nsdp : 16\nend-qos-ulps", `f:7: service level "16": want 0 to 15`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := qos.ParsePolicy("f", []byte(tt.file))
			if err == nil || !strings.HasPrefix(err.Error(), tt.want) {
				t.Errorf("%v, want %q", err, tt.want)
			}
		})
	}
	if _, err := qos.ParsePolicy("f", make([]byte, qos.MaxPolicySize+1)); !errors.Is(err, qos.ErrTooLarge) {
		t.Errorf("a file of more than MaxPolicySize: %v", err)
	}
}

func TestRangesHas(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var b strings.Builder
		want := make(map[uint64]bool)
		for i := range rapid.IntRange(1, 8).Draw(rt, "ranges") {
			from := rapid.Uint64Range(0, 60).Draw(rt, "from")
			to := from + rapid.Uint64Range(0, 9).Draw(rt, "length")
			if i > 0 {
				b.WriteString(",")
			}
			b.WriteString(strings.Join([]string{u(from), u(to)}, "-"))
			for n := from; n <= to; n++ {
				want[n] = true
			}
		}
		p := policy(t, "qos-ulps\ndefault : 0\nany, service-id "+b.String()+" : 1\nend-qos-ulps")
		for n := range uint64(80) {
			if got := p.Level(&qos.Query{Service: n, HasService: true}).SL == 1; got != want[n] {
				rt.Fatalf("%s has %d: %v, want %v", &b, n, got, want[n])
			}
		}
	})
}

func u(n uint64) string {
	const digits = "0123456789abcdef"
	return "0x" + string(digits[n>>4]) + string(digits[n&15])
}

func FuzzParsePolicy(f *testing.F) {
	f.Add(policyFile)
	f.Add("qos-ulps\n default : 2\n any, pkey 0xFFFF-0x8001 : 1\nend-qos-ulps\n")
	f.Fuzz(func(t *testing.T, file string) {
		p, err := qos.ParsePolicy("f", []byte(file))
		if err != nil {
			if !strings.HasPrefix(err.Error(), "f:") {
				t.Errorf("error without its place: %v", err)
			}
			return
		}
		g := p.GroupsOf(&qos.Port{GUID: 1, Type: ib.NodeCA, Name: "a/P1", PKeys: []ib.PKey{1}})
		l := p.Level(&qos.Query{From: g, To: g, Class: 1, HasClass: true, Service: 1, HasService: true, PKey: 1, HasPKey: true})
		if l.SL > 15 || l.MTULimit > ib.MTU4096 {
			t.Errorf("level %+v", l)
		}
	})
}
