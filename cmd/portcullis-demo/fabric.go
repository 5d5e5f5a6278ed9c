package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

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

// about tells how much a simulator helps.
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
	// The name of the scratch directory is nobody else's, and so is this.
	l := &ownLab{client: ibsimlab.Client{Socket: "demo" + strings.ReplaceAll(dir, "/", "-"), Dir: dir}}
	in, commands, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("make the console of portcullis-sim: %w", err)
	}
	defer in.Close()
	l.console = commands
	p, err := spawnReading(in, dir, "portcullis-sim", programs+"/portcullis-sim", "run", dir+"/fabric.net", "--socket", l.client.Socket)
	if err != nil {
		return nil, errors.Join(err, commands.Close())
	}
	l.process = p
	ready := func() (bool, error) {
		select {
		case <-p.done:
			return false, fmt.Errorf("portcullis-sim ended: %s", p.tail())
		default:
			return strings.HasPrefix(p.tail(), "ready:"), nil
		}
	}
	if err := await(ctx, "portcullis-sim is ready", ready); err != nil {
		return nil, errors.Join(err, l.Stop())
	}
	return l, nil
}

// ownLab is portcullis-sim in a process of its own.
type ownLab struct {
	client  ibsimlab.Client
	process *process
	console *os.File
}

func (l *ownLab) Client() ibsimlab.Client { return l.client }

func (l *ownLab) Stop() error {
	l.process.stop()
	return l.console.Close()
}

// send has a port send a data packet, whatever its driver would say to that, and
// tells where it ended and how.
func (l *ownLab) send(ctx context.Context, from, to string, key ib.PKey) (string, error) {
	before, err := os.ReadFile(l.process.log)
	if err != nil {
		return "", err
	}
	if _, err := fmt.Fprintf(l.console, "send %q[1] %q[1] %v\n", from, to, key); err != nil {
		return "", fmt.Errorf("console of portcullis-sim: %w", err)
	}
	var answer string
	err = await(ctx, "portcullis-sim has sent a packet", func() (bool, error) {
		said, err := os.ReadFile(l.process.log)
		if err != nil {
			return false, err
		}
		line, _, whole := strings.Cut(string(said[len(before):]), "\n")
		answer = line
		return whole, nil
	})
	return answer, err
}
