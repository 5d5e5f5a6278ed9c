// Package fabricport opens the port that a Subnet Manager runs on: of an adapter, of a running simulator, or of a fabric that
// is simulated in this process.
package fabricport

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"portcullis/cmd/internal/input"
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/sim"
	"portcullis/fabricsm/sim/netlist"
	"portcullis/fabricsm/transport"
	"portcullis/fabricsm/transport/ibsim"
	"portcullis/fabricsm/transport/umad"
)

// portSpec is the port a Subnet Manager runs on, as fabric.port and --port name
// it. One of the fields is set.
type portSpec struct {
	umad    *umad.Options
	ibsim   *ibsim.Options
	netlist string // file of a fabric to simulate
}

// Forms says how ports of some kinds are named.
func Forms(kinds []string) string {
	forms := []string{"umad:DEVICE[:PORT]", "ibsim:SOCKET/NODE", "sim:NETLIST"}
	forms = slices.DeleteFunc(forms, func(f string) bool {
		kind, _, _ := strings.Cut(f, ":")
		return !slices.Contains(kinds, kind)
	})
	last := len(forms) - 1
	return strings.Join(forms[:last], ", ") + " or " + forms[last]
}

// Check returns an error for what names no port of any kind.
func Check(s string) error {
	_, err := parsePort(s)
	return err
}

// parsePort reads a port of any kind.
func parsePort(s string) (p portSpec, err error) {
	kind, rest, _ := strings.Cut(s, ":")
	switch kind {
	case "umad":
		o, err := umad.ParseSpec(s)
		if err != nil {
			return portSpec{}, err
		}
		o.AsSM, p.umad = true, &o
	case "ibsim":
		p.ibsim, err = parseIbsim(s, rest)
	case "sim":
		if p.netlist = rest; rest == "" {
			err = errors.New("sim: names no file: want sim:NETLIST")
		}
	default:
		err = fmt.Errorf("%q: want %s", s, Forms([]string{"umad", "ibsim", "sim"}))
	}
	return p, err
}

func parseIbsim(s, rest string) (*ibsim.Options, error) {
	slash := strings.LastIndexByte(rest, '/')
	if slash < 0 {
		return nil, fmt.Errorf("%q: want a slash between socket and node, for example ibsim:sim/Hca1", s)
	}
	o := &ibsim.Options{Socket: rest[:slash], Node: rest[slash+1:], AsSM: true}
	if o.Socket == "" {
		return nil, fmt.Errorf("%q: the socket is empty: the simulator's default is %s", s, ibsim.DefaultSocket)
	}
	return o, nil
}

// portWait is how long a device may take to be registered whole. The kernel shows it
// before its ports, and a service that starts at boot, or after an adapter was put
// back, meets it in between.
const portWait = 5 * time.Second

// Open attaches to a port. timeout is how long an answer may take; agents are
// the classes beside subnet management that the port is to be used for.
func Open(ctx context.Context, spec string, timeout time.Duration, agents []umad.Agent) (transport.Port, error) {
	p, err := parsePort(spec)
	switch {
	case err != nil:
		return nil, err
	case p.umad != nil:
		p.umad.Timeout, p.umad.Agents, p.umad.Wait = timeout, agents, portWait
		return opened(umad.Dial(ctx, *p.umad))
	case p.ibsim != nil:
		return opened(ibsim.Dial(ctx, *p.ibsim))
	default:
		return openSim(p.netlist)
	}
}

// Attach attaches to a port beside the Subnet Manager that runs on it, for requests of SMPs and of the classes of agents, and
// their answers alone.
func Attach(ctx context.Context, spec string, timeout time.Duration, agents ...umad.Agent) (transport.Port, error) {
	p, err := parsePort(spec)
	switch {
	case err != nil:
		return nil, err
	case p.umad != nil:
		p.umad.AsSM, p.umad.Timeout, p.umad.Agents = false, timeout, agents
		return opened(umad.Dial(ctx, *p.umad))
	case p.ibsim != nil:
		p.ibsim.AsSM = false
		return opened(ibsim.Dial(ctx, *p.ibsim))
	default:
		return nil, errors.New("a fabric that is simulated in the process of the Subnet Manager has no second attachment: use portcullis-sim and ibsim:SOCKET/NODE")
	}
}

// Shared reports whether Attach can attach to a port: not to one of a fabric that is simulated in the process.
func Shared(spec string) bool {
	p, err := parsePort(spec)
	return err == nil && p.netlist == ""
}

// opened returns no port with an error; a nil of a concrete type would be one.
func opened[P transport.Port](p P, err error) (transport.Port, error) {
	if err != nil {
		return nil, err
	}
	return p, nil
}

// openSim simulates the fabric of a netlist and attaches to its first CA.
func openSim(file string) (transport.Port, error) {
	data, err := input.ReadFile(file, input.Large)
	if err != nil {
		return nil, fmt.Errorf("read netlist: %w", err)
	}
	list, err := netlist.Parse(file, data)
	if err != nil {
		return nil, err
	}
	for i := range list.Nodes {
		if list.Nodes[i].Type == ib.NodeCA {
			return sim.New(list).Attach(list.Nodes[i].Name, true)
		}
	}
	return nil, fmt.Errorf("netlist %s has no CA to attach to", file)
}
