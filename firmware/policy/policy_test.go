package policy_test

import (
	"slices"
	"strings"
	"testing"

	"portcullis/firmware/image"
	"portcullis/firmware/policy"
)

const example = `
boards:
  - psid: MT_0000000838
    floor: 28.39.1002
    hardware: [0x218]
    security_version: 2
    digests: [0101010101010101010101010101010101010101010101010101010101010101]
  - psid: MT_0000000001
    floor: 0.0.0
forbidden:
  - {psid: MT_0000000838, version: 28.40.1000, reason: loses packets}
  - {version: 28.41.1000, reason: worse}
`

// good is allowed on the first board of the example.
func good() policy.Subject {
	d := policy.Digest{}
	for i := range d {
		d[i] = 1
	}
	return policy.Subject{
		PSID: "MT_0000000838", Version: image.Version{Major: 28, Minor: 39, Sub: 1002}, Hardware: []image.HardwareID{0x218},
		SecurityVersion: 2, Digest: &d, Secure: true, Signed: true,
	}
}

func TestJudge(t *testing.T) {
	p, err := policy.Parse("policy.yaml", []byte(example))
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name   string
		change func(s *policy.Subject)
		want   []policy.Code
	}{
		{"good", func(*policy.Subject) {}, nil},
		{"newer", func(s *policy.Subject) { s.Version.Major++; s.SecurityVersion++ }, nil},
		{"unknown board", func(s *policy.Subject) { s.PSID = "MT_0000000839" }, []policy.Code{policy.UnknownBoard}},
		{"no PSID", func(s *policy.Subject) { s.PSID = "" }, []policy.Code{policy.UnknownBoard}},
		{"older", func(s *policy.Subject) { s.Version.Sub-- }, []policy.Code{policy.BelowFloor}},
		{"older by its first number", func(s *policy.Subject) { s.Version = image.Version{Major: 27, Minor: 99, Sub: 9999} }, []policy.Code{policy.BelowFloor}},
		{"other chip", func(s *policy.Subject) { s.Hardware = []image.HardwareID{0x20F} }, []policy.Code{policy.WrongHardware}},
		{"chip not known", func(s *policy.Subject) { s.Hardware = nil }, []policy.Code{policy.WrongHardware}},
		{"rolled back", func(s *policy.Subject) { s.SecurityVersion = 1 }, []policy.Code{policy.SecurityVersion}},
		{"other digest", func(s *policy.Subject) { s.Digest = &policy.Digest{2} }, []policy.Code{policy.NotListed}},
		{"digest not known", func(s *policy.Subject) { s.Digest = nil }, []policy.Code{policy.NotListed}},
		{"forbidden here", func(s *policy.Subject) { s.Version = image.Version{Major: 28, Minor: 40, Sub: 1000} }, []policy.Code{policy.ForbiddenOne}},
		{"forbidden everywhere", func(s *policy.Subject) {
			s.PSID, s.Version = "MT_0000000001", image.Version{Major: 28, Minor: 41, Sub: 1000}
		}, []policy.Code{policy.ForbiddenOne}},
		{"board without wishes", func(s *policy.Subject) { *s = policy.Subject{PSID: "MT_0000000001", Secure: true, Signed: true} }, nil},
		{"debug and development", func(s *policy.Subject) { s.Debug, s.Development = true, true }, []policy.Code{policy.Debug, policy.Development}},
		{"takes unsigned updates", func(s *policy.Subject) { s.Signed = false }, []policy.Code{policy.NotSecure}},
		{"nothing known", func(s *policy.Subject) { *s = policy.Subject{} }, []policy.Code{policy.NotSecure, policy.UnknownBoard}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := good()
			tt.change(&s)
			var got []policy.Code
			for _, r := range p.Judge(s) {
				got = append(got, r.Code)
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("refused for %v, want %v", got, tt.want)
			}
		})
	}
	var none *policy.Policy
	if r := none.Judge(good()); len(r) != 0 {
		t.Errorf("without a policy: %v", r)
	}
	if r := none.Judge(policy.Subject{Debug: true}); len(r) != 2 {
		t.Errorf("without a policy, debug firmware: %v", r)
	}
}

func TestRefused(t *testing.T) {
	for _, tt := range []struct{ name, text, want string }{
		{"no boards", "boards: []", "it names none"},
		{"empty", "", "policy.yaml"},
		{"unknown field", "boards: [{psid: A, floor: 1.2.3, flor: 1}]", "flor"},
		{"no floor", "boards: [{psid: A}]", `version ""`},
		{"no PSID", "boards: [{floor: 1.2.3}]", `PSID ""`},
		{"long PSID", "boards: [{psid: ABCDEFGHIJKLMNOPQ, floor: 1.2.3}]", "1 to 16 characters"},
		{"hostile PSID", `boards: [{psid: "A\e[2J", floor: 1.2.3}]`, "letters, digits"},
		{"same board twice", "boards: [{psid: A, floor: 1.2.3}, {psid: A, floor: 1.2.4}]", "occurs twice"},
		{"version of two numbers", "boards: [{psid: A, floor: 1.2}]", "three numbers"},
		{"version too large", "boards: [{psid: A, floor: 1.2.65536}]", "below 65536"},
		{"negative version", "boards: [{psid: A, floor: 1.2.-3}]", "below 65536"},
		{"short digest", "boards: [{psid: A, floor: 1.2.3, digests: [ab]}]", "64 hexadecimal digits"},
		{"digest of the site", "boards: [{psid: A, floor: 1.2.3}]\ndigests: [zz]", "64 hexadecimal digits"},
		{"forbidden without version", "boards: [{psid: A, floor: 1.2.3}]\nforbidden: [{reason: x}]", "forbidden 1"},
	} {
		if _, err := policy.Parse("policy.yaml", []byte(tt.text)); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: error %v, want one with %q", tt.name, err, tt.want)
		}
	}
	if _, err := policy.Parse("policy.yaml", make([]byte, policy.MaxFile+1)); err == nil {
		t.Error("a file of any size is read")
	}
}

func FuzzPolicy(f *testing.F) {
	f.Add([]byte(example))
	f.Add([]byte("boards: [{psid: A, floor: 1.2.3}]"))
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := policy.Parse("policy.yaml", data)
		if err != nil {
			return
		}
		if r := p.Judge(policy.Subject{Secure: true, Signed: true}); len(r) == 0 {
			t.Errorf("a board without PSID is allowed by\n%s", data)
		}
	})
}
