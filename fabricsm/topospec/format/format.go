// Package format reads and writes a revision in any of the forms that are known, so
// that every program takes the same files.
package format

import (
	"bytes"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"portcullis/fabricsm/topospec"
	"portcullis/fabricsm/topospec/discovered"
	"portcullis/fabricsm/topospec/export"
	"portcullis/fabricsm/topospec/native"
	"portcullis/fabricsm/topospec/ndt"
	"portcullis/fabricsm/topospec/topoconf"
)

// Seal says whether a native file must end with its counts and digest.
type Seal bool

// Sealed files are whole as their author left them; Draft files are worked on.
const (
	Sealed Seal = true
	Draft  Seal = false
)

// ErrObserved rejects an observation where a declaration is needed.
var ErrObserved = errors.New("this is neither a native revision nor a topoconfig.conf; what a fabric shows is made a draft by: portcullis topospec import")

// Declared reads a native revision or a topoconfig.conf, which shows by its first
// bytes. name is what errors call the file, and for a topoconfig.conf, which does not
// say, the fabric.
func Declared(name string, data []byte, seal Seal) (*topospec.Revision, error) {
	switch start := bytes.TrimLeft(data[:min(64, len(data))], " \t\r\n"); {
	case bytes.HasPrefix(start, []byte("{")), bytes.HasPrefix(start, []byte("format")):
		if seal == Draft {
			return native.ParseDraft(name, data)
		}
		return native.Parse(name, data)
	case len(start) == 0, bytes.HasPrefix(start, []byte("0x")), bytes.HasPrefix(start, []byte("\uFEFF")):
		f, err := topoconf.Parse(name, data)
		if err != nil {
			return nil, err
		}
		return f.Revision(name, FabricOf(name))
	default:
		return nil, fmt.Errorf("%s: %w", name, ErrObserved)
	}
}

// Any reads what Declared does, and what ibnetdiscover printed or ibsim reads.
func Any(name string, data []byte, seal Seal) (*topospec.Revision, error) {
	r, err := Declared(name, data, seal)
	if errors.Is(err, ErrObserved) {
		return discovered.Parse(name, FabricOf(name), data)
	}
	return r, err
}

// FabricOf makes the name of a fabric of that of a file.
func FabricOf(name string) string { return strings.TrimSuffix(filepath.Base(name), filepath.Ext(name)) }

// Names returns the names of the forms that Text can write, the default first.
func Names() []string {
	names := []string{"json", "yaml", "topoconfig", "topoconfig-types", "ibnetdiscover", "slurm", "ndt"}
	for _, l := range export.Lists() {
		names = append(names, string(l))
	}
	return names
}

// Text writes a revision in one of the forms of Names.
func Text(s *topospec.Spec, form string) (string, error) {
	switch form {
	case "json":
		return string(native.AppendTo(nil, s.Revision(), native.JSON)), nil
	case "yaml":
		return string(native.AppendTo(nil, s.Revision(), native.YAML)), nil
	case "topoconfig":
		return string(topoconf.FromRevision(s.Revision(), topoconf.TypesAny).AppendTo(nil)), nil
	case "topoconfig-types":
		return string(topoconf.FromRevision(s.Revision(), topoconf.TypesKnown).AppendTo(nil)), nil
	case "ibnetdiscover":
		return export.Ibnetdiscover(s), nil
	case "slurm":
		return export.Slurm(s)
	case "ndt":
		return ndt.Write(s)
	}
	if !slices.Contains(export.Lists(), export.List(form)) {
		return "", fmt.Errorf("form %.40q: want one of %s", form, strings.Join(Names(), ", "))
	}
	return export.GUIDs(s, export.List(form))
}
