package umad

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"portcullis/fabricsm/ib"
)

const (
	classMAD    = "class/infiniband_mad"
	classDevice = "class/infiniband"

	// maxAttribute bounds a read of one file: sysfs files have at most a page.
	maxAttribute = 4096

	linkInfiniBand = "InfiniBand"
)

// candidate is one port that has a umad device, as sysfs describes it.
type candidate struct {
	number int // N of umadN and issmN
	device string
	port   ib.PortNum
	state  ib.PortState
	link   string // link layer: InfiniBand or Ethernet
	guid   ib.GUID
}

// String describes the candidate for a user who has to choose one.
func (c candidate) String() string {
	if c.link != linkInfiniBand {
		return fmt.Sprintf("%s port %d (%s)", c.device, c.port, c.link)
	}
	return fmt.Sprintf("%s port %d (%v)", c.device, c.port, c.state)
}

// tree is a mounted sysfs.
type tree string

// text reads one attribute without its newline.
func (t tree) text(path ...string) (string, error) {
	f, err := os.Open(filepath.Join(append([]string{string(t)}, path...)...))
	if err != nil {
		return "", err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxAttribute))
	if err != nil {
		return "", err
	}
	return strings.TrimSpace(string(b)), nil
}

// find chooses a port: the named one, or among those that the options leave
// the one that is most alive. Before a subnet manager has been there a port is
// not Active yet, so Init will do. A choice between several ports that are all
// down is left to a person.
func (t tree) find(o *Options) (candidate, error) {
	all, unfinished, err := t.candidates()
	if err != nil {
		return candidate{}, err
	}
	var fit []candidate
	for _, c := range all {
		if (o.Device == "" || c.device == o.Device) && (o.Port == 0 || c.port == o.Port) {
			fit = append(fit, c)
		}
	}
	usable := slices.DeleteFunc(slices.Clone(fit), func(c candidate) bool { return c.link != linkInfiniBand })
	if len(usable) == 0 {
		for _, u := range unfinished {
			if o.Device == "" || u.Device == o.Device {
				return candidate{}, u
			}
		}
		return candidate{}, &NoPortError{Device: o.Device, Port: o.Port, Found: names(all), Ethernet: len(fit) > 0}
	}
	// The first of the most alive: candidates are in a fixed order.
	best := slices.MinFunc(usable, func(a, b candidate) int { return cmp.Compare(alive(b.state), alive(a.state)) })
	if alive(best.state) == 0 && len(usable) > 1 {
		return candidate{}, &NoPortError{Device: o.Device, Port: o.Port, Found: names(all), Down: true}
	}
	if !best.guid.Valid() {
		return candidate{}, &UnfinishedError{Device: best.device, Missing: fmt.Sprintf("the GUID of port %d", best.port)}
	}
	return best, nil
}

// alive orders port states by how far the link has come up.
func alive(s ib.PortState) int {
	switch s {
	case ib.PortActive, ib.PortActiveDefer:
		return 3
	case ib.PortArmed:
		return 2
	case ib.PortInit:
		return 1
	default:
		return 0
	}
}

func names(all []candidate) []string {
	var out []string
	for _, c := range all {
		out = append(out, c.String())
	}
	return out
}

// candidates lists the ports that have a umad device, by device and port. A port
// that is not described whole is left out, and its device is among the unfinished: the
// kernel registers it just now, or takes it away.
func (t tree) candidates() (all []candidate, unfinished []*UnfinishedError, err error) {
	version, err := t.text(classMAD, "abi_version")
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil, t.missing()
	case err != nil:
		return nil, nil, fmt.Errorf("read version of the user MAD interface: %w", err)
	case version != strconv.Itoa(abiVersion):
		return nil, nil, fmt.Errorf("user MAD interface has version %.20q: this program knows version %d", version, abiVersion)
	}
	entries, err := os.ReadDir(filepath.Join(string(t), classMAD))
	if err != nil {
		return nil, nil, fmt.Errorf("list user MAD devices: %w", err)
	}
	for _, e := range entries {
		digits, ok := strings.CutPrefix(e.Name(), "umad")
		number, err := strconv.ParseUint(digits, 10, 16)
		if !ok || err != nil {
			continue
		}
		switch c, err := t.candidate(int(number)); {
		case err == nil:
			all = append(all, c)
		case c.device != "" && errors.Is(err, fs.ErrNotExist):
			unfinished = append(unfinished, &UnfinishedError{Device: c.device, Missing: missingFile(err)})
		}
	}
	slices.SortFunc(all, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(a.device, b.device), cmp.Compare(a.port, b.port), cmp.Compare(a.number, b.number))
	})
	return all, append(unfinished, t.early(all)...), nil
}

func missingFile(err error) string {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return e.Path
	}
	return err.Error()
}

// early lists devices that the kernel shows before their ports, and those with an
// InfiniBand port that has no umad device yet.
func (t tree) early(all []candidate) (found []*UnfinishedError) {
	dir := filepath.Join(string(t), classDevice)
	devices, err := os.ReadDir(dir)
	if err != nil {
		return nil // existing devices were listed
	}
	for _, d := range devices {
		name := d.Name()
		if !validDevice(name) || slices.ContainsFunc(all, func(c candidate) bool { return c.device == name }) {
			continue
		}
		ports, err := os.ReadDir(filepath.Join(dir, name, "ports"))
		if err != nil || len(ports) == 0 {
			found = append(found, &UnfinishedError{Device: name, Missing: filepath.Join(dir, name, "ports")})
			continue
		}
		for _, p := range ports {
			if link, err := t.text(classDevice, name, "ports", p.Name(), "link_layer"); err == nil && link == linkInfiniBand {
				found = append(found, &UnfinishedError{Device: name, Missing: "the user MAD device of port " + p.Name()})
			}
		}
	}
	return found
}

// missing returns the reason why there is no interface at all.
func (t tree) missing() error {
	entries, err := os.ReadDir(filepath.Join(string(t), classDevice))
	if err != nil || len(entries) == 0 {
		return &NoPortError{}
	}
	return &ModuleError{Devices: len(entries)}
}

// candidate describes the port of umadN.
func (t tree) candidate(number int) (candidate, error) {
	c := candidate{number: number}
	umad := filepath.Join(classMAD, fmt.Sprintf("umad%d", number))
	device, err := t.text(umad, "ibdev")
	if err != nil {
		return c, err
	}
	if !validDevice(device) {
		return c, fmt.Errorf("device name %.70q", device)
	}
	c.device = device
	port, err := t.text(umad, "port")
	if err != nil {
		return c, err
	}
	if c.port, err = ib.ParsePortNum(port); err != nil {
		return c, err
	}
	dir := filepath.Join(classDevice, device, "ports", strconv.Itoa(int(c.port)))
	return c, t.describe(dir, &c)
}

// describe reads the data in the directory of a port.
func (t tree) describe(dir string, c *candidate) error {
	state, err := t.text(dir, "state")
	if err != nil {
		return err
	}
	if c.state, err = parseState(state); err != nil {
		return err
	}
	// Kernels that knew InfiniBand only have no link_layer.
	c.link = linkInfiniBand
	if link, err := t.text(dir, "link_layer"); err == nil {
		c.link = link
	}
	gid, err := t.text(dir, "gids/0")
	if err != nil {
		return err
	}
	if g, err := ib.ParseGID(gid); err == nil {
		c.guid = g.GUID()
	}
	return nil
}

// parseState reads "4: ACTIVE".
func parseState(s string) (ib.PortState, error) {
	number, _, _ := strings.Cut(s, ":")
	v, err := strconv.ParseUint(number, 10, 8)
	if err != nil || v > uint64(ib.PortActiveDefer) {
		return 0, fmt.Errorf("port state %.20q: want a number from 0 to 5 and a name", s)
	}
	return ib.PortState(v), nil
}
