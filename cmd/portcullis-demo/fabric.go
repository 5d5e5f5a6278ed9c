package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"portcullis/cmd/internal/program"
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/transport/ibsim/ibsimlab"
)

// fabricKind says which simulator plays the fabric.
type fabricKind string

// Kinds of fabrics.
const (
	ownSimulator fabricKind = "portcullis-sim" // ours: needs no package, and enforces P_Keys
	ibsimFabric  fabricKind = "ibsim"          // the one of the InfiniBand community: keeps P_Keys, enforces nothing
)

// about says how much a simulator helps.
func (k fabricKind) about() string {
	if k == ibsimFabric {
		return "it checks nothing by itself"
	}
	return "its switch ports drop what their P_Key tables do not admit"
}

// lab is a running simulator.
type lab interface {
	Client() ibsimlab.Client
	Stop() error
}

// startFabric starts a simulator on a netlist in a directory.
func startFabric(ctx context.Context, kind fabricKind, programs, dir, netlist string) (lab, error) {
	if kind == ibsimFabric {
		l, err := ibsimlab.Start(ctx, ibsimlab.Options{Netlist: []byte(netlist), Dir: dir})
		if err != nil {
			return nil, err // not l: a nil *Lab is no nil lab
		}
		return l, nil
	}
	if err := os.WriteFile(dir+"/fabric.net", []byte(netlist), 0o600); err != nil {
		return nil, err
	}
	// The name of the scratch directory is unique, and so is this.
	l := &ownLab{client: ibsimlab.Client{Socket: "demo" + strings.ReplaceAll(dir, "/", "-"), Dir: dir}}
	in, commands, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("make the console of portcullis-sim: %w", err)
	}
	defer in.Close()
	l.console = commands
	p, err := program.Start(program.Options{
		Dir: dir, Name: "portcullis-sim", Path: programs + "/portcullis-sim", Stdin: in,
		Args: []string{"run", dir + "/fabric.net", "--socket", l.client.Socket},
	})
	if err != nil {
		return nil, errors.Join(err, commands.Close())
	}
	l.process = p
	ready := func() (bool, error) {
		if err := p.Ended(); err != nil {
			return false, err
		}
		return strings.HasPrefix(p.Tail(), "ready:"), nil
	}
	if err := program.Await(ctx, "portcullis-sim is ready", ready); err != nil {
		return nil, errors.Join(err, l.Stop())
	}
	return l, nil
}

// ownLab is portcullis-sim in a process of its own.
type ownLab struct {
	client  ibsimlab.Client
	process *program.Process
	console *os.File
}

func (l *ownLab) Client() ibsimlab.Client { return l.client }

func (l *ownLab) Stop() error {
	l.process.Stop()
	return l.console.Close()
}

// send has a port send a data packet, whatever its driver would say to that, and returns where and how the packet ended.
func (l *ownLab) send(ctx context.Context, from, to string, key ib.PKey) (string, error) {
	before, err := os.ReadFile(l.process.Log())
	if err != nil {
		return "", err
	}
	if _, err := fmt.Fprintf(l.console, "send %q[1] %q[1] %v\n", from, to, key); err != nil {
		return "", fmt.Errorf("console of portcullis-sim: %w", err)
	}
	var answer string
	err = program.Await(ctx, "portcullis-sim has sent a packet", func() (bool, error) {
		said, err := os.ReadFile(l.process.Log())
		if err != nil {
			return false, err
		}
		line, _, whole := strings.Cut(string(said[len(before):]), "\n")
		answer = line
		return whole, nil
	})
	return answer, err
}
