package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"portcullis/fabricsm/sim"
	"portcullis/fabricsm/sim/softhcaserver"
	"portcullis/fabricsm/transport/softhca"
)

// plugs are the nodes that are adapters of hosts, by the kernel module softhca.
type plugs struct {
	flags  []string
	stderr io.Writer

	server *softhcaserver.Server
	ctx    context.Context
	stop   func()
	work   sync.WaitGroup

	mu  sync.Mutex
	all []*plug
}

// plug is one of them.
type plug struct {
	device  string
	options softhcaserver.Options
	adapter *softhcaserver.Adapter // nil: pulled out
}

// registerLimit is how long a host may take to register an adapter before the operator is warned.
const registerLimit = 30 * time.Second

// begin plugs in all adapters.
func (p *plugs) begin(ctx context.Context, f *sim.Fabric) error {
	for _, text := range p.flags {
		one, err := parsePlug(text)
		if err != nil {
			return usageError{err}
		}
		p.all = append(p.all, one)
	}
	p.server = softhcaserver.New(f)
	p.ctx, p.stop = context.WithCancel(ctx)
	for _, one := range p.all {
		if err := p.plug(one); err != nil {
			p.close()
			return err
		}
	}
	return nil
}

// close pulls all adapters out.
func (p *plugs) close() {
	p.stop()
	p.work.Wait()
}

// parsePlug reads NODE=DEVICE[,name=NAME][,vf][,plane][,hold=DURATION].
func parsePlug(text string) (*plug, error) {
	node, rest, ok := strings.Cut(text, "=")
	words := strings.Split(rest, ",")
	if !ok || node == "" || words[0] == "" {
		return nil, fmt.Errorf("--adapter %q: want NODE=DEVICE[,name=NAME][,vf][,plane][,hold=DURATION]", text)
	}
	one := &plug{device: words[0], options: softhcaserver.Options{Node: node}}
	for _, word := range words[1:] {
		name, value, _ := strings.Cut(word, "=")
		switch {
		case name == "name" && value != "":
			one.options.Name = value
		case word == "vf":
			one.options.Flags |= softhca.Function
		case word == "plane":
			one.options.Flags |= softhca.Plane
		case name == "hold":
			d, err := time.ParseDuration(value)
			if err != nil || d < 0 {
				return nil, fmt.Errorf("--adapter %q: hold %q: want a duration such as 2s", text, value)
			}
			one.options.Hold = d
		default:
			return nil, fmt.Errorf("--adapter %q: %q: want name=NAME, vf, plane or hold=DURATION", text, word)
		}
	}
	return one, nil
}

// plug puts an adapter into its host.
func (p *plugs) plug(one *plug) error {
	conn, err := softhca.Open(p.ctx, one.device)
	if err != nil {
		return err
	}
	a, err := p.server.Plug(p.ctx, conn, one.options)
	if err != nil {
		return err
	}
	p.mu.Lock()
	one.adapter = a
	p.mu.Unlock()
	p.work.Go(func() {
		ctx, cancel := context.WithTimeout(p.ctx, registerLimit)
		defer cancel()
		if err := a.Registered(ctx); err != nil && p.ctx.Err() == nil {
			fmt.Fprintf(p.stderr, "portcullis-sim: adapter of %q: %v\n", one.options.Node, err)
		}
	})
	p.work.Go(func() {
		if err := a.Wait(); err != nil {
			fmt.Fprintf(p.stderr, "portcullis-sim: adapter of %q: %v\n", one.options.Node, err)
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		if one.adapter == a {
			one.adapter = nil
		}
	})
	return nil
}

// plugged returns what serves the adapter; nil: it is out of its host.
func (one *plug) plugged() *softhcaserver.Adapter {
	if one.adapter == nil {
		return nil
	}
	select {
	case <-one.adapter.Done():
		return nil
	default:
		return one.adapter
	}
}

// find returns the adapter of a node, and its server, which is nil if the adapter is pulled out.
func (p *plugs) find(node string) (*plug, *softhcaserver.Adapter, error) {
	if p != nil {
		p.mu.Lock()
		defer p.mu.Unlock()
		for _, one := range p.all {
			if one.options.Node == node {
				return one, one.plugged(), nil
			}
		}
	}
	return nil, nil, fmt.Errorf("%q is not the adapter of a host: start the simulator with --adapter %s=DEVICE", node, node)
}

// plugged is find for an adapter that is in its host.
func (p *plugs) plugged(node string) (*softhcaserver.Adapter, error) {
	_, a, err := p.find(node)
	if err == nil && a == nil {
		err = fmt.Errorf("the adapter of %q is pulled out: use plug", node)
	}
	return a, err
}

func (c *console) pull(args []string) error {
	a, err := c.plugs.plugged(args[0])
	if err != nil {
		return err
	}
	a.Unplug()
	return nil
}

func (c *console) plug(args []string) error {
	one, a, err := c.plugs.find(args[0])
	if err != nil {
		return err
	}
	if a != nil {
		return errors.New("it is already plugged in")
	}
	return c.plugs.plug(one)
}

func (c *console) firmware(args []string) error {
	a, err := c.plugs.plugged(args[0])
	if err != nil {
		return err
	}
	switch args[1] {
	case "ok":
		a.Behave(softhcaserver.Behavior{})
	case "silent":
		a.Behave(softhcaserver.Behavior{Silent: true})
	default:
		d, err := time.ParseDuration(args[1])
		if err != nil || d < 0 {
			return fmt.Errorf("firmware %q: want a duration such as 500ms, silent or ok", args[1])
		}
		a.Behave(softhcaserver.Behavior{Delay: d})
	}
	return nil
}

func (c *console) fatal(args []string) error {
	a, err := c.plugs.plugged(args[0])
	if err != nil {
		return err
	}
	a.Fatal()
	return nil
}
