// Package policy says which firmware a site wants: on which boards, from which version on, and which is forbidden. It
// judges images and the reports of devices alike, and knows nothing of signatures: firmware that the policy allows may
// still come from any source.
//
// The file is YAML:
//
//	boards:
//	  - psid: MT_0000000838
//	    floor: 28.39.1002
//	    hardware: [0x218]
//	    security_version: 2
//	    digests: []
//	forbidden:
//	  - {psid: MT_0000000838, version: 28.40.1000, reason: loses packets}
//	digests: []
//
// A PSID that is not among the boards is refused. Where digests are listed, for a board or for all, only these images are
// allowed.
package policy

import (
	"encoding/hex"
	"fmt"
	"slices"

	"portcullis/firmware/image"
)

// Digest is that of an image (SHA-256, image.Digest256).
type Digest [32]byte

func (d Digest) String() string { return hex.EncodeToString(d[:]) }

// MarshalText implements encoding.TextMarshaler.
func (d Digest) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (d *Digest) UnmarshalText(b []byte) error {
	raw, err := hex.DecodeString(string(b))
	if err != nil || len(raw) != len(d) {
		return fmt.Errorf("digest %q: want 64 hexadecimal digits", b)
	}
	*d = Digest(raw)
	return nil
}

// Board is what a site wants of one kind of board.
type Board struct {
	PSID            image.PSID
	Floor           image.Version      // the oldest version allowed
	Hardware        []image.HardwareID // one of these, if any are named
	SecurityVersion uint32             // the lowest allowed
	Digests         []Digest           // only these, if any are named
}

// Forbidden is a version that must not run. A zero PSID means all boards.
type Forbidden struct {
	PSID    image.PSID
	Version image.Version
	Reason  string
}

// Policy is what a site wants. It does not change.
type Policy struct {
	boards    []Board
	forbidden []Forbidden
	digests   []Digest
}

// Subject is firmware to be judged: an image, or the report of a device.
type Subject struct {
	PSID            image.PSID
	Version         image.Version
	Hardware        []image.HardwareID // chips; none: not known
	SecurityVersion uint32
	Digest          *Digest // nil: not known
	Secure          bool    // only signed updates are taken
	Signed          bool
	Debug           bool
	Development     bool // signed under a development key, or brings one along
}

// Code says why firmware is refused. Codes do not change from release to release.
type Code string

// The reasons.
const (
	NotSecure       Code = "not-secure"
	Debug           Code = "debug-firmware"
	Development     Code = "development-firmware"
	UnknownBoard    Code = "psid"
	WrongHardware   Code = "hardware"
	BelowFloor      Code = "version-floor"
	SecurityVersion Code = "security-version"
	ForbiddenOne    Code = "forbidden-version"
	NotListed       Code = "digest"
)

// Refusal is one reason against firmware.
type Refusal struct {
	Code Code   `json:"code"`
	Text string `json:"text"`
}

// Judge lists all refusals of firmware, in the order of the codes. None means that it is allowed. A nil policy has only the
// rules that every site has: no debug, no development, and only firmware that takes signed updates.
func (p *Policy) Judge(s Subject) []Refusal {
	r := refusals{}
	r.when(!s.Secure || !s.Signed, NotSecure, "it accepts firmware that is not signed: secure_fw and signed_fw must be set")
	r.when(s.Debug, Debug, "it is debug firmware")
	r.when(s.Development, Development, "a development key signed it, or is in it")
	if p == nil {
		return r
	}
	i := slices.IndexFunc(p.boards, func(b Board) bool { return b.PSID == s.PSID })
	if i < 0 {
		r.when(true, UnknownBoard, "PSID %q is not among the boards of the policy", s.PSID)
	} else {
		p.boards[i].judge(&r, s)
	}
	for _, f := range p.forbidden {
		r.when((f.PSID == "" || f.PSID == s.PSID) && f.Version == s.Version, ForbiddenOne, "version %v is forbidden: %s", s.Version, f.Reason)
	}
	r.when(len(p.digests) > 0 && !listed(p.digests, s.Digest), NotListed, "its digest is not on the list of the site")
	return r
}

func (b *Board) judge(r *refusals, s Subject) {
	ours := slices.ContainsFunc(s.Hardware, func(h image.HardwareID) bool { return slices.Contains(b.Hardware, h) })
	r.when(len(b.Hardware) > 0 && !ours, WrongHardware, "it is for %v, but the board has %v", s.Hardware, b.Hardware)
	r.when(s.Version.Compare(b.Floor) < 0, BelowFloor, "version %v is older than %v", s.Version, b.Floor)
	r.when(s.SecurityVersion < b.SecurityVersion, SecurityVersion, "security version %d is below %d", s.SecurityVersion, b.SecurityVersion)
	r.when(len(b.Digests) > 0 && !listed(b.Digests, s.Digest), NotListed, "its digest is not on the list of PSID %s", b.PSID)
}

func listed(list []Digest, d *Digest) bool { return d != nil && slices.Contains(list, *d) }

type refusals []Refusal

func (r *refusals) when(wrong bool, code Code, text string, args ...any) {
	if wrong {
		*r = append(*r, Refusal{code, fmt.Sprintf(text, args...)})
	}
}
