package adoption_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"portcullis/api/adoption"
	"portcullis/fabricsm/ib"
)

var (
	start = time.Date(2026, 11, 29, 8, 0, 0, 0, time.UTC)
	leaf  = ib.GUID(0x10)
)

func at(n ib.PortNum) ib.Place { return ib.Place{Switch: leaf, Port: n} }

func port(guid ib.GUID, n ib.PortNum, keys ...ib.PKey) adoption.Port {
	return adoption.Port{GUID: guid, Place: at(n), PKeys: keys}
}

func TestCheck(t *testing.T) {
	t.Parallel()
	site := &adoption.Site{
		Reserved: []ib.PKey{0x0666},
		Owned:    map[ib.PKey]string{0x0101: "cluster blue has it"},
		Cables:   map[ib.GUID]adoption.Cable{3: {Host: "h3", Place: at(3)}, 4: {Host: "h4"}},
		Behind:   map[ib.Place]ib.GUID{at(3): 3},
		Ledger:   []adoption.Entry{{GUID: 8, PKey: 0x0200, Place: at(8), Owner: "host h8"}, {GUID: 8, PKey: 0x0201, Place: at(8), Owner: "host h8"}},
	}
	many := adoption.Port{GUID: 1, Place: at(1)}
	for k := range ib.PKey(adoption.MaxPKeys + 1) {
		many.PKeys = append(many.PKeys, (k + 0x300).Full())
	}
	var much []adoption.Port
	for i := range adoption.MaxMemberships + 1 {
		much = append(much, port(ib.GUID(0x1000+i), 1, 0x8100))
	}
	for _, tt := range []struct {
		name  string
		ports []adoption.Port
		want  []string // parts of the problems, in order
	}{
		{"nothing", nil, []string{"no membership"}},
		{"good", []adoption.Port{port(1, 1, 0x8100, 0x0102), port(2, 2, 0x8100)}, nil},
		{"as the inventory has it", []adoption.Port{port(3, 3, 0x8100), port(4, 4, 0x8100)}, nil},
		{"no keys", []adoption.Port{port(1, 1, 0x8100), port(2, 2)}, []string{"0 P_Keys"}},
		{"too many keys", []adoption.Port{many}, []string{"want 1 to 126"}},
		{"too many memberships", much, []string{"make several"}},
		{"no GUID", []adoption.Port{port(0, 1, 0x8100)}, []string{"no port GUID"}},
		{"no place", []adoption.Port{{GUID: 1, PKeys: []ib.PKey{0x8100}}}, []string{"not known"}},
		{"a switch itself", []adoption.Port{port(1, 0, 0x8100)}, []string{"not known"}},
		{"a port twice", []adoption.Port{port(1, 1, 0x8100), port(1, 2, 0x8100)}, []string{"twice"}},
		{"a place twice", []adoption.Port{port(1, 1, 0x8100), port(2, 1, 0x8100)}, []string{"both listed"}},
		{"a key twice", []adoption.Port{port(1, 1, 0x8100, 0x8100)}, []string{"twice"}},
		{"both forms of a key", []adoption.Port{port(1, 1, 0x8100, 0x0100)}, []string{"same partition"}},
		{"default partition", []adoption.Port{port(1, 1, 0xffff), port(2, 2, 0x7fff)}, []string{"default partition", "default partition"}},
		{"no key", []adoption.Port{port(1, 1, 0x8000)}, []string{"or none"}},
		{"reserved", []adoption.Port{port(1, 1, 0x8666), port(2, 2, 0x0666)}, []string{"reserved", "reserved"}},
		{"of a cluster", []adoption.Port{port(1, 1, 0x0101)}, []string{"cluster blue has it"}},
		{"elsewhere than the inventory says", []adoption.Port{port(3, 5, 0x8100)}, []string{"the inventory has it at"}},
		{"at another's place", []adoption.Port{port(1, 3, 0x8100)}, []string{"where the inventory has port"}},
		{"admitted already", []adoption.Port{port(8, 8, 0x8100)}, []string{"already, of host h8"}},
		{"at the place of one that is", []adoption.Port{port(1, 8, 0x8100)}, []string{"of host h8"}},
	} {
		got := adoption.Check(tt.ports, site)
		if len(got) != len(tt.want) || !slices.EqualFunc(got, tt.want, strings.Contains) {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}

func TestTimes(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		left time.Duration
		good bool
	}{
		{-time.Hour, false},
		{adoption.MinTime - 1, false},
		{adoption.MinTime, true},
		{adoption.MaxTime, true},
		{adoption.MaxTime + 1, false},
	} {
		if why := adoption.CheckTime(start, start.Add(tt.left)); (why == "") != tt.good {
			t.Errorf("%v: %q", tt.left, why)
		}
	}
	for left, want := range map[time.Duration]time.Duration{8 * time.Hour: 2 * time.Hour, 30 * 24 * time.Hour: 48 * time.Hour} {
		end := start.Add(left)
		if got := end.Sub(adoption.Warns(start, end)); got != want {
			t.Errorf("of %v: told %v before, want %v", left, got, want)
		}
	}
}

func TestEnds(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name     string
		late     bool
		admitted bool
		want     adoption.Cause
	}{
		{name: "nothing happened", want: adoption.Stays},
		{name: "late", late: true, want: adoption.Deadline},
		{name: "admitted", admitted: true, want: adoption.Proven},
		{name: "admitted and late", admitted: true, late: true, want: adoption.Proven},
	} {
		s := adoption.Standing{Now: start, Deadline: start.Add(1), Admitted: tt.admitted}
		if tt.late {
			s.Now = s.Deadline
		}
		if got := s.Ends(); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}

func TestMemberships(t *testing.T) {
	t.Parallel()
	got := adoption.Memberships([]adoption.Port{port(2, 2, 0x8100), port(1, 1, 0x8101, 0x0102)})
	want := []adoption.Membership{{1, at(1), 0x0102}, {1, at(1), 0x8101}, {2, at(2), 0x8100}}
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
