package policy

import (
	"errors"
	"fmt"
	"slices"

	"portcullis/fabricsm/strictyaml"
	"portcullis/firmware/image"
)

// MaxFile is the size of the largest file that is read, in bytes.
const MaxFile = 4 << 20

// file is a policy as people write it.
type file struct {
	Boards []struct {
		PSID            string   `yaml:"psid"`
		Floor           string   `yaml:"floor"`
		Hardware        []uint32 `yaml:"hardware"`
		SecurityVersion uint32   `yaml:"security_version"`
		Digests         []string `yaml:"digests"`
	} `yaml:"boards"`
	Forbidden []struct {
		PSID    string `yaml:"psid"`
		Version string `yaml:"version"`
		Reason  string `yaml:"reason"`
	} `yaml:"forbidden"`
	Digests []string `yaml:"digests"`
}

// Parse reads a policy. name is for errors; all mistakes are reported together.
func Parse(name string, data []byte) (*Policy, error) {
	var f file
	if err := strictyaml.Load(name, data, MaxFile, &f); err != nil {
		return nil, err
	}
	p, err := f.policy()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return p, nil
}

func (f *file) policy() (*Policy, error) {
	p := &Policy{}
	var errs []error
	wrong := func(where string, i int, err error) {
		if err != nil {
			errs = append(errs, fmt.Errorf("%s %d: %w", where, i+1, err))
		}
	}
	for i, b := range f.Boards {
		psid, err := image.ParsePSID(b.PSID)
		wrong("board", i, err)
		if slices.ContainsFunc(p.boards, func(o Board) bool { return o.PSID == psid }) {
			wrong("board", i, fmt.Errorf("PSID %s occurs twice", psid))
		}
		board := Board{PSID: psid, SecurityVersion: b.SecurityVersion}
		board.Floor, err = image.ParseVersion(b.Floor)
		wrong("board", i, err)
		for _, h := range b.Hardware {
			board.Hardware = append(board.Hardware, image.HardwareID(h))
		}
		board.Digests, err = parseDigests(b.Digests)
		wrong("board", i, err)
		p.boards = append(p.boards, board)
	}
	for i, b := range f.Forbidden {
		x := Forbidden{Reason: b.Reason}
		var err error
		if b.PSID != "" {
			x.PSID, err = image.ParsePSID(b.PSID)
			wrong("forbidden", i, err)
		}
		x.Version, err = image.ParseVersion(b.Version)
		wrong("forbidden", i, err)
		p.forbidden = append(p.forbidden, x)
	}
	var err error
	if p.digests, err = parseDigests(f.Digests); err != nil {
		errs = append(errs, err)
	}
	if len(p.boards) == 0 {
		errs = append(errs, errors.New("boards: it names none, so no firmware would be allowed"))
	}
	return p, errors.Join(errs...)
}

func parseDigests(words []string) (digests []Digest, err error) {
	for _, w := range words {
		var d Digest
		if err := d.UnmarshalText([]byte(w)); err != nil {
			return nil, err
		}
		digests = append(digests, d)
	}
	return digests, nil
}
