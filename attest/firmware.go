package attest

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// parseVersion reads two to four dotted decimal numbers of at most six digits.
func parseVersion(s string) ([]int, error) {
	parts := strings.Split(s, ".")
	if len(parts) < 2 || len(parts) > 4 {
		return nil, fmt.Errorf("firmware version %q: want dotted numbers, for example 28.43.1014", clip(s))
	}
	v := make([]int, len(parts))
	for i, p := range parts {
		n, err := strconv.ParseUint(p, 10, 20)
		if err != nil || len(p) > 6 {
			return nil, fmt.Errorf("firmware version %q: want dotted numbers, for example 28.43.1014", clip(s))
		}
		v[i] = int(n)
	}
	return v, nil
}

// checkFirmware wants each HCA at or above the floor of its board. Without
// any floor in the policy firmware is recorded and not judged.
func checkFirmware(s *Statement, floors []FirmwareFloor) *Refusal {
	if len(floors) == 0 {
		return nil
	}
	var low []string
	for _, h := range s.HCAs {
		if err := checkFloor(h, floors); err != nil {
			low = append(low, fmt.Sprintf("HCA %s: %v", h.Name, err))
		}
	}
	if len(low) > 0 {
		return refuse(ReasonFirmware, "%s", strings.Join(low, "; "))
	}
	return nil
}

func checkFloor(h HCA, floors []FirmwareFloor) error {
	i := slices.IndexFunc(floors, func(f FirmwareFloor) bool { return f.PSID == h.PSID })
	if i < 0 {
		return fmt.Errorf("board %q has no firmware minimum in the policy", h.PSID)
	}
	want, err := parseVersion(floors[i].Min)
	if err != nil {
		return err
	}
	got, err := parseVersion(h.Firmware.Running)
	if err != nil {
		return err
	}
	if slices.Compare(got, want) < 0 {
		return fmt.Errorf("firmware %s of board %s is below %s", h.Firmware.Running, h.PSID, floors[i].Min)
	}
	return nil
}
