package conf_test

import (
	"fmt"
	"strings"
	"testing"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/partition/conf"
	"portcullis/fabricsm/topo"
	"portcullis/fabricsm/topo/topotest"
)

// dealt returns a file that spreads hosts over 32 partitions, a line each.
func dealt(hosts int) []byte {
	var b strings.Builder
	b.WriteString("Default=0x7fff, ipoib: ALL=limited, SELF=full;\n")
	for k := range 32 {
		fmt.Fprintf(&b, "tenant%d=0x%04x: ", k, 0x1000+k)
		for h := hosts * k / 32; h < hosts*(k+1)/32; h++ {
			fmt.Fprintf(&b, "0x%016x=full,\n ", uint64(portOf(h)))
		}
		b.WriteString("NONE;\n")
	}
	return []byte(b.String())
}

var sizes = []int{1944, 5184, 10368}

func BenchmarkParse(b *testing.B) {
	for _, hosts := range sizes {
		b.Run(fmt.Sprint(hosts, " hosts"), func(b *testing.B) {
			file := dealt(hosts)
			b.SetBytes(int64(len(file)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := conf.Parse("f", file); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkReload moves a host to another tenant and back by rules that name all hosts, which are parsed already.
func BenchmarkReload(b *testing.B) {
	for _, hosts := range sizes {
		b.Run(fmt.Sprint(hosts, " hosts"), func(b *testing.B) {
			var k topotest.Kit
			var sw topo.NodeID
			for h := range hosts {
				if h%36 == 0 {
					sw = k.Switch(1, 1+h/36, 36)
				}
				k.LinkPorts(sw, 1+h%36, k.Host(1), 1)
			}
			f := k.Freeze()
			var rules [2]*conf.Rules
			for i := range rules {
				r, err := conf.Parse("f", dealt(hosts))
				if err != nil {
					b.Fatal(err)
				}
				rules[i] = r
			}
			from, to := &rules[1].Partitions[3], &rules[1].Partitions[7]
			to.Who = append(to.Who, from.Who[9])
			from.Who = append(append([]conf.Who{}, from.Who[:9]...), from.Who[10:]...)
			s := conf.NewSeating(rules[0])
			s.Seat(f, ib.GUID(1))
			b.ReportAllocs()
			turn := 0
			for b.Loop() {
				turn++
				s.SetRules(rules[turn%2])
				if granted, withdrawn := s.Seat(f, ib.GUID(1)); len(granted) != 1 || len(withdrawn) != 1 {
					b.Fatalf("granted %v, withdrawn %v", granted, withdrawn)
				}
			}
		})
	}
}
