package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"portcullis/cmd/internal/program"
)

// The network of a run: a bridge, one network namespace for each instance, and the
// namespace of this program.
const (
	bridge    = "pchaos0"
	ownAddr   = "10.66.31.1"
	prefixLen = "/24"
	// nowhere is the link address of no interface. A peer whose address it is said to be
	// gets no packet, and the sender gets no error.
	nowhere = "02:66:00:00:00:ff"
)

// namespace is the network namespace of an instance.
type namespace struct {
	name    string
	address string
	others  []string // addresses of the other instances
}

func ip(ctx context.Context, args ...string) error {
	if _, err := program.Call(ctx, "ip", args...); err != nil {
		return fmt.Errorf("ip %v: %w", args, err)
	}
	return nil
}

// network is all namespaces of a run.
type network struct {
	spaces []*namespace
}

// newNetwork makes the namespaces and connects them. It needs root.
func newNetwork(ctx context.Context, instances int) (*network, error) {
	if os.Geteuid() != 0 {
		return nil, errors.New("network namespaces need root: run portcullis-chaos as root")
	}
	n := &network{}
	n.remove(ctx, maxManagers) // of a run that was killed
	steps := [][]string{
		{"link", "add", bridge, "type", "bridge"},
		{"addr", "add", ownAddr + prefixLen, "dev", bridge},
		{"link", "set", bridge, "up"},
	}
	for i := range instances {
		s := &namespace{name: spaceName(i), address: fmt.Sprintf("10.66.31.%d", 11+i)}
		n.spaces = append(n.spaces, s)
		outside := vethName(i)
		steps = append(steps,
			[]string{"netns", "add", s.name},
			[]string{"link", "add", outside, "type", "veth", "peer", "name", "eth0", "netns", s.name},
			[]string{"link", "set", outside, "master", bridge, "up"},
			[]string{"-n", s.name, "addr", "add", s.address + prefixLen, "dev", "eth0"},
			[]string{"-n", s.name, "link", "set", "eth0", "up"},
			[]string{"-n", s.name, "link", "set", "lo", "up"})
	}
	for _, s := range n.spaces {
		for _, o := range n.spaces {
			if o != s {
				s.others = append(s.others, o.address)
			}
		}
	}
	for _, args := range steps {
		if err := ip(ctx, args...); err != nil {
			n.remove(ctx, instances)
			return nil, err
		}
	}
	return n, nil
}

func spaceName(i int) string { return fmt.Sprintf("pchaos-%d", i+1) }
func vethName(i int) string  { return fmt.Sprintf("pchaos%d", i+1) }

// remove removes the namespaces and the bridge, as far as they are there.
func (n *network) remove(ctx context.Context, instances int) {
	for i := range instances {
		_ = ip(ctx, "link", "del", vethName(i))
		_ = ip(ctx, "netns", "del", spaceName(i))
	}
	_ = ip(ctx, "link", "del", bridge)
}

// enter moves the calling thread, which must be locked, into the namespace.
func (s *namespace) enter() error {
	f, err := os.Open("/run/netns/" + s.name)
	if err != nil {
		return fmt.Errorf("open network namespace: %w", err)
	}
	defer f.Close()
	if err := unix.Setns(int(f.Fd()), unix.CLONE_NEWNET); err != nil {
		return fmt.Errorf("enter network namespace %s: %w", s.name, err)
	}
	return nil
}

// cutOut loses what an instance sends to the others, and, where clients is true, to clients
// of its API.
func (n *network) cutOut(ctx context.Context, i int, clients bool) error {
	s := n.spaces[i]
	to := s.others
	if clients {
		to = append(slices.Clone(to), ownAddr)
	}
	for _, peer := range to {
		if err := ip(ctx, "-n", s.name, "neigh", "replace", peer, "lladdr", nowhere, "dev", "eth0", "nud", "permanent"); err != nil {
			return err
		}
	}
	return nil
}

// cutIn loses what the others, and, where clients is true, clients of its API send to an
// instance.
func (n *network) cutIn(ctx context.Context, i int, clients bool) error {
	s := n.spaces[i]
	if clients {
		if err := ip(ctx, "neigh", "replace", s.address, "lladdr", nowhere, "dev", bridge, "nud", "permanent"); err != nil {
			return err
		}
	}
	for _, o := range n.spaces {
		if o == s {
			continue
		}
		if err := ip(ctx, "-n", o.name, "neigh", "replace", s.address, "lladdr", nowhere, "dev", "eth0", "nud", "permanent"); err != nil {
			return err
		}
	}
	return nil
}

// mend ends every cut of an instance, and proves it: where a cut stayed, what follows would be put down to the product.
func (n *network) mend(ctx context.Context, i int) error {
	s := n.spaces[i]
	errs := []error{
		mendOne(ctx, "neigh", "to", s.address, "dev", bridge),
		mendOne(ctx, "-n", s.name, "neigh", "dev", "eth0"),
	}
	for _, o := range n.spaces {
		if o != s {
			errs = append(errs, mendOne(ctx, "-n", o.name, "neigh", "to", s.address, "dev", "eth0"))
		}
	}
	return errors.Join(errs...)
}

// mendOne removes the permanent neighbours that "ip" lists with these arguments, of which one is "neigh".
func mendOne(ctx context.Context, args ...string) error {
	at := slices.Index(args, "neigh") + 1
	with := func(verb string) []string {
		return append(slices.Concat(args[:at], []string{verb}, args[at:]), "nud", "permanent")
	}
	var left []byte
	for range 3 {
		if err := ip(ctx, with("flush")...); err != nil {
			return err
		}
		var err error
		if left, err = program.Call(ctx, "ip", with("show")...); err != nil {
			return fmt.Errorf("ip %v: %w", with("show"), err)
		}
		if len(bytes.TrimSpace(left)) == 0 {
			return nil
		}
	}
	return fmt.Errorf("ip %v left: %s", with("flush"), bytes.TrimSpace(left))
}

// describe returns neighbours and connections of each namespace as they are now.
func (n *network) describe(ctx context.Context) string {
	var text strings.Builder
	for _, s := range n.spaces {
		for _, args := range [][]string{{"ip", "neigh"}, {"ip", "-s", "link"}, {"ss", "-tnpio"}} {
			out, err := program.Call(ctx, "ip", append([]string{"netns", "exec", s.name}, args...)...)
			if err != nil {
				out = []byte(err.Error())
			}
			fmt.Fprintf(&text, "== %s: %s\n%s\n", s.name, strings.Join(args, " "), out)
		}
	}
	return text.String()
}
