package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/transport"
	"portcullis/fabricsm/transport/ibsim"
	"portcullis/fabricsm/transport/ibsim/ibsimlab"
)

// server is a simulator that runs.
type server struct {
	socket string
	pid    int
	stop   func() error
}

// lost is how long a simulator may be silent while requests are out.
const lost = 2 * time.Second

// simulators are measured side by side, on the same netlist and by the same client.
func simulators() []struct {
	name  string
	start func(ctx context.Context, o *options, netlist []byte, dir string) (*server, error)
} {
	return []struct {
		name  string
		start func(ctx context.Context, o *options, netlist []byte, dir string) (*server, error)
	}{{"ibsim", startIbsim}, {"portcullis-sim", startOwn}}
}

func startIbsim(ctx context.Context, _ *options, netlist []byte, dir string) (*server, error) {
	l, err := ibsimlab.Start(ctx, ibsimlab.Options{Netlist: netlist, Dir: dir})
	if err != nil {
		return nil, err
	}
	return &server{l.Socket(), l.PID(), l.Stop}, nil
}

func startOwn(ctx context.Context, o *options, netlist []byte, dir string) (*server, error) {
	file := filepath.Join(dir, "fabric.net")
	if err := os.WriteFile(file, netlist, 0o600); err != nil {
		return nil, fmt.Errorf("write netlist: %w", err)
	}
	socket := "bench" + strings.ReplaceAll(dir, "/", "-")
	cmd := exec.CommandContext(ctx, o.program, "run", file, "--socket", socket)
	said, err := cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("start portcullis-sim: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start portcullis-sim: %w", err)
	}
	s := &server{socket, cmd.Process.Pid, func() error {
		kill := cmd.Process.Kill()
		_ = cmd.Wait() // killed, as requested
		return kill
	}}
	if line, err := bufio.NewReader(said).ReadString('\n'); !strings.HasPrefix(line, "ready:") {
		return nil, errors.Join(fmt.Errorf("portcullis-sim said %q", line), err, s.stop())
	}
	return s, nil
}

// ask is what the client asks for, again and again.
type ask struct {
	name   string
	window int
	far    bool // at the other end of the fabric, or at its own node
}

var asks = []ask{
	{"own node", 1, false},
	{"own node", 16, false},
	{"own node", 256, false},
	{"six links away", 1, true},
	{"six links away", 16, true},
	{"six links away", 256, true},
}

// simSample is one turn of an ask.
type simSample struct {
	rate float64 // SMPs a second
	cpu  float64 // microseconds of the simulator for each
}

// simResult is what was measured on one fabric; the second index is that of the
// simulator.
type simResult struct {
	fabric *fabric
	start  [2][]float64 // seconds until it takes clients
	peak   [2]float64   // MiB
	load   float64
	asks   [][2][]simSample
}

// simulate measures simulators over their sockets.
func simulate(ctx context.Context, o *options, progress io.Writer) error {
	return eachSize(ctx, o, func(f *fabric, load float64) *simResult {
		return &simResult{fabric: f, load: load, asks: make([][2][]simSample, len(asks))}
	}, func(r *simResult) error { return r.once(ctx, o, progress) }, writeSim)
}

// once measures both simulators in fresh processes.
func (r *simResult) once(ctx context.Context, o *options, progress io.Writer) (err error) {
	dir, err := os.MkdirTemp("", "bench")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	var clients [2]simClient
	for k, s := range simulators() {
		if clients[k], err = r.attach(ctx, o, k, dir); err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
		defer func() { err = errors.Join(err, clients[k].close()) }()
	}
	for i := range asks {
		took, err := inTurns(func(k int) (float64, error) {
			got, err := asks[i].measure(clients[k].port, clients[k].pid, r.fabric, o.duration/turns)
			if err != nil {
				return 0, fmt.Errorf("%s, %s, %d outstanding: %w", simulators()[k].name, asks[i].name, asks[i].window, err)
			}
			r.asks[i][k] = append(r.asks[i][k], got)
			return got.rate, nil
		})
		if err != nil {
			return err
		}
		fmt.Fprintf(progress, "%d hosts, %s, %d outstanding: ibsim %.0f SMPs/s, portcullis-sim %.0f\n",
			r.fabric.hosts, asks[i].name, asks[i].window, took[0], took[1])
	}
	for k := range clients {
		r.peak[k] = max(r.peak[k], memoryOf(clients[k].pid).peak)
	}
	return nil
}

// simClient is a simulator and the client attached to it.
type simClient struct {
	*server
	port *ibsim.Port
}

// attach starts a simulator and attaches to it.
func (r *simResult) attach(ctx context.Context, o *options, k int, dir string) (simClient, error) {
	own := filepath.Join(dir, simulators()[k].name)
	if err := os.Mkdir(own, 0o700); err != nil {
		return simClient{}, err
	}
	begin := time.Now()
	s, err := simulators()[k].start(ctx, o, r.fabric.file, own)
	if err != nil {
		return simClient{}, err
	}
	p, err := ibsim.Dial(ctx, ibsim.Options{Socket: s.socket, Node: "sm"})
	if err != nil {
		return simClient{}, errors.Join(err, s.stop())
	}
	r.start[k] = append(r.start[k], time.Since(begin).Seconds())
	return simClient{s, p}, nil
}

func (c *simClient) close() error { return errors.Join(c.port.Close(), c.stop()) }

// route is the way from the first host to the last, out to the top and down
// again.
func (f *fabric) route() mad.Route {
	at, last := f.list.Nodes[f.hostNodes[0]], f.list.Nodes[f.hostNodes[len(f.hostNodes)-1]]
	type step struct {
		name  string
		ports []ib.PortNum
	}
	seen := map[string]bool{at.Name: true}
	queue := []step{{at.Name, nil}}
	for ; len(queue) > 0; queue = queue[1:] {
		s := queue[0]
		if s.name == last.Name {
			break
		}
		n := f.list.Find(s.name)
		if n.Type == ib.NodeCA && s.ports != nil {
			continue
		}
		for num := 1; num < len(n.Ports); num++ {
			if far := n.Ports[num].Peer; far != "" && !seen[far] {
				seen[far] = true
				queue = append(queue, step{far, append(append([]ib.PortNum(nil), s.ports...), ib.PortNum(num))})
			}
		}
	}
	return mad.MakeRoute(queue[0].ports...)
}

// measure keeps a window of requests outstanding for so long.
func (a *ask) measure(p *ibsim.Port, pid int, f *fabric, d time.Duration) (simSample, error) {
	var route mad.Route
	if a.far {
		route = f.route()
	}
	out, in := make([]transport.Packet, a.window), make([]transport.Packet, a.window)
	for i := range out {
		out[i].LID = ib.PermissiveLID
		mad.NewSMP(&out[i].MAD, mad.Header{Method: mad.MethodGet, TID: ib.TID(i + 1), Attr: mad.AttrNodeInfo}, &route, ib.MKey{})
	}
	before, err := cpuOf(pid)
	if err != nil {
		return simSample{}, err
	}
	begin := time.Now()
	last := begin
	answered, toSend, outstanding := 0, a.window, 0
	for ending := false; outstanding > 0 || toSend > 0; {
		// Never wait for room to send: the simulator may wait for room to answer.
		sent, err := p.TrySend(out[:toSend])
		if err != nil {
			return simSample{}, err
		}
		toSend -= sent
		outstanding += sent
		n, err := p.TryReceive(in)
		if err != nil {
			return simSample{}, err
		}
		for i := range in[:n] {
			if m := &in[i].MAD; in[i].Undelivered || m.Method() != mad.MethodGetResp || m.Status() != mad.StatusOK {
				return simSample{}, fmt.Errorf("a Get was answered by %v, status %v", m.Method(), m.Status())
			}
		}
		if n > 0 {
			last = time.Now()
		}
		answered += n
		outstanding -= n
		if ending = ending || time.Since(begin) >= d; !ending {
			toSend += n
		} else {
			toSend = 0
		}
		if n == 0 && sent == 0 && outstanding > 0 {
			// As the Subnet Manager waits: in the system, not in the runtime's poller.
			if err := p.Pause(lost); err != nil {
				return simSample{}, err
			}
			if time.Since(last) >= lost {
				return simSample{}, fmt.Errorf("%d Gets unanswered for %s", outstanding, lost)
			}
		}
	}
	took := time.Since(begin).Seconds()
	after, err := cpuOf(pid)
	if err != nil {
		return simSample{}, err
	}
	return simSample{rate: float64(answered) / took, cpu: (after - before) * 1e6 / float64(answered)}, nil
}
