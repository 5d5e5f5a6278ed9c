package mst

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"time"
)

// Suite is an installed set of tools.
type Suite struct {
	Name    string // of the package: mstflint or MFT
	Version Version
	flint   string // path
	config  string // path; "" not installed
	reg     string // path; "" not installed
	runner  runner
}

// Version is a version of the tools.
type Version struct{ Major, Minor, Patch int }

func (v Version) String() string { return fmt.Sprintf("%d.%d.%d", v.Major, v.Minor, v.Patch) }

// Before reports that v is older than w.
func (v Version) Before(w Version) bool {
	return cmp.Or(cmp.Compare(v.Major, w.Major), cmp.Compare(v.Minor, w.Minor), cmp.Compare(v.Patch, w.Patch)) < 0
}

// First versions that do a thing.
var (
	// FirstFWCTL takes a fwctl node as a device, by its short name. 4.31 takes it too, but asks for reads with the scope
	// "configuration", which the mlx5 driver of Linux refuses; up to 4.35 the scope is one that takes CAP_SYS_RAWIO.
	FirstFWCTL = Version{4, 32, 0}
	// FirstSetKey locks current devices.
	FirstSetKey = Version{4, 32, 0}
	// FirstJSON is the first version whose JSON this package knows.
	FirstJSON = Version{4, 36, 0}
)

// Deadlines of a run.
const (
	QueryTime = time.Minute
	ApplyTime = 5 * time.Minute
)

// Folders are where tools are looked for: never where a variable of the
// environment says.
func Folders() []string {
	return []string{"/usr/bin", "/usr/sbin", "/usr/local/bin", "/opt/mellanox/mft/bin"}
}

// names are those of upstream and Debian, then NVIDIA's.
var names = []struct{ suite, flint, config, reg string }{
	{"mstflint", "mstflint", "mstconfig", "mstreg"},
	{"MFT", "flint", "mlxconfig", "mlxreg"},
}

// ErrNone means that no tools are installed.
var ErrNone = errors.New("the vendor's tools are not installed: install the package mstflint")

// Find looks for tools in folders, in order, and asks them for their version.
func Find(ctx context.Context, folders []string) (*Suite, error) {
	for _, n := range names {
		for _, dir := range folders {
			flint := program(dir, n.flint)
			if flint == "" {
				continue
			}
			s := &Suite{Name: n.suite, flint: flint, config: program(dir, n.config), reg: program(dir, n.reg)}
			out, err := s.runner.run(ctx, QueryTime, flint, "--version")
			if err != nil {
				return nil, err
			}
			if s.Version, err = parseVersion(out); err != nil {
				return nil, fmt.Errorf("%s: %w", flint, err)
			}
			return s, nil
		}
	}
	return nil, ErrNone
}

// program returns the path of an executable file in a folder, or "".
func program(dir, name string) string {
	path := filepath.Join(dir, name)
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() || info.Mode()&0o111 == 0 {
		return ""
	}
	return path
}

// "mstflint, mstflint 4.21.0, Git SHA Hash: N/A"; "flint, mft 4.34.1-10, built on ...".
var versionPattern = regexp.MustCompile(`\b(?:mft|mstflint) (\d{1,4})\.(\d{1,4})\.(\d{1,4})\b`)

func parseVersion(out string) (Version, error) {
	m := versionPattern.FindStringSubmatch(out)
	if m == nil {
		return Version{}, fmt.Errorf("%q contains no version", clip(out))
	}
	var n [3]int
	for i := range n {
		n[i], _ = strconv.Atoi(m[i+1]) // digits, at most four
	}
	return Version{n[0], n[1], n[2]}, nil
}
