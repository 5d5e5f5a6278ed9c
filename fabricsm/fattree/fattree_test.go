package fattree

import (
	"errors"
	"testing"
)

func TestFewest(t *testing.T) {
	for _, tt := range []struct{ up, below, room, want int }{
		{18, 36, 36, 18}, {18, 18, 36, 9}, {18, 1, 36, 1}, {18, 37, 36, 0}, {2, 3, 4, 2}, {3, 2, 6, 1},
	} {
		if got := Fewest(tt.up, tt.below, tt.room); got != tt.want {
			t.Errorf("Fewest(%d, %d, %d) = %d, want %d", tt.up, tt.below, tt.room, got, tt.want)
		}
	}
}

// Each switch above has equally many cables, as many as there are ports for, and no port is used twice.
func TestUplinks(t *testing.T) {
	for _, tt := range []struct{ radix, above int }{{4, 1}, {4, 2}, {36, 9}, {36, 18}, {64, 32}, {10, 2}} {
		ports, cables := map[int]bool{}, make([]int, tt.above)
		for port, to := range Uplinks(tt.radix, tt.above) {
			if port <= tt.radix/2 || port > tt.radix || ports[port] {
				t.Errorf("radix %d: port %d", tt.radix, port)
			}
			ports[port] = true
			cables[to]++
		}
		for to, n := range cables {
			if n != tt.radix/2/tt.above {
				t.Errorf("radix %d, %d above: %d cables to switch %d", tt.radix, tt.above, n, to)
			}
		}
	}
	for range Uplinks(36, 2) {
		break // it can be left early
	}
}

// A switch above has room for the cables of all below, and each host for one.
func TestLevels(t *testing.T) {
	for radix := 4; radix <= 64; radix += 2 {
		for hosts := 1; hosts <= radix*radix/2; hosts += 1 + hosts/7 {
			two, err := TwoLevels(hosts, radix)
			if err != nil {
				t.Fatalf("%d hosts, radix %d: %v", hosts, radix, err)
			}
			if two.Leaves*radix/2 < hosts || two.Leaves*(radix/2/two.Spines) > radix {
				t.Errorf("%d hosts, radix %d: %+v", hosts, radix, two)
			}
		}
		for hosts := 1; hosts <= radix*radix*radix/4; hosts += 1 + hosts/3 {
			three, err := ThreeLevels(hosts, radix)
			if err != nil {
				t.Fatalf("%d hosts, radix %d: %v", hosts, radix, err)
			}
			leaves := 0
			for pod := range three.Pods {
				leaves += three.LeavesOf(pod)
			}
			if leaves != three.Leaves || leaves*three.Half() < hosts || three.Pods*(three.Half()/three.Cores) > radix {
				t.Errorf("%d hosts, radix %d: %+v has %d leaves in its pods", hosts, radix, three, leaves)
			}
		}
		if _, err := TwoLevels(radix*radix/2+1, radix); !errors.Is(err, ErrTooMany) {
			t.Errorf("radix %d: two levels for too many hosts: %v", radix, err)
		}
		if _, err := ThreeLevels(radix*radix*radix/4+1, radix); !errors.Is(err, ErrTooMany) {
			t.Errorf("radix %d: three levels for too many hosts: %v", radix, err)
		}
	}
}
