package webhook

import (
	"net/netip"
	"testing"
)

func TestAddresses(t *testing.T) {
	t.Parallel()
	none, only, allow := Addresses{}, Addresses{Only: []netip.Prefix{netip.MustParsePrefix("10.20.0.0/16")}}, Addresses{
		Only: []netip.Prefix{netip.MustParsePrefix("10.20.0.0/16")}, Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("fe80::/10")},
	}
	for _, tt := range []struct {
		addr              string
		none, only, allow bool
	}{
		{"10.20.0.7", true, true, true},
		{"10.21.0.7", true, false, false},
		{"192.168.1.1", true, false, false},
		{"fd12:3456::1", true, false, false},
		{"2001:db8::1", true, false, false},
		{"::ffff:10.20.0.7", true, true, true},
		{"127.0.0.1", false, false, true},
		{"127.255.0.1", false, false, true},
		{"::ffff:127.0.0.1", false, false, true},
		{"::1", false, false, false},
		{"0.0.0.0", false, false, false},
		{"0.1.2.3", false, false, false},
		{"::", false, false, false},
		{"169.254.169.254", false, false, false},
		{"::ffff:169.254.169.254", false, false, false},
		{"fe80::1%eth0", false, false, true},
		{"fe80::1", false, false, true},
		{"fec0::1", false, false, false},
		{"fd00:ec2::254", false, false, false},
		{"fd20:ce::254", false, false, false},
		{"100.100.100.200", false, false, false},
		{"168.63.129.16", false, false, false},
		{"192.0.0.192", false, false, false},
		{"224.0.0.1", false, false, false},
		{"ff02::1", false, false, false},
		{"255.255.255.255", false, false, false},
		{"64:ff9b::a9fe:a9fe", false, false, false}, // 169.254.169.254
		{"64:ff9b::7f00:1", false, false, false},
		{"64:ff9b::a14:7", true, false, false}, // 10.20.0.7: the address that is dialled is not of the network
		{"2002:7f00:1::1", false, false, false},
		{"::7f00:1", false, false, false},
	} {
		a := netip.MustParseAddr(tt.addr)
		for _, p := range []struct {
			name string
			of   *Addresses
			want bool
		}{{"none", &none, tt.none}, {"only", &only, tt.only}, {"allow", &allow, tt.allow}} {
			if err := p.of.Check(a); (err == nil) != p.want {
				t.Errorf("%s with %s: %v", tt.addr, p.name, err)
			}
		}
	}
	if none.Check(netip.Addr{}) == nil {
		t.Error("no address is allowed")
	}
}
