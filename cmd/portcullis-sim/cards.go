package main

import (
	"context"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sync/errgroup"

	"portcullis/agent/hca/hcasim"
	"portcullis/agent/hca/hcasim/cardsocket"
	"portcullis/cmd/internal/input"
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/sim"
	"portcullis/fabricsm/sim/hcaconf"
	"portcullis/fabricsm/sim/hosttree"
	"portcullis/fabricsm/sim/netlist"
	"portcullis/firmware/image"
	"portcullis/firmware/nvconfig"
)

// cards are the simulated adapters of a fabric, one behind each HCA.
type cards struct {
	dir      string // of the sockets; empty: no cards
	keys     []string
	psid     string
	firmware string

	stderr    io.Writer
	listeners []net.Listener // of all, in the order of the netlist
	all       []*hcasim.Card
}

// install makes the cards of a netlist, has the fabric obey them, and listens for clients.
func (c *cards) install(ctx context.Context, l *netlist.Netlist, f *sim.Fabric) error {
	if c.dir == "" {
		return nil
	}
	if err := os.MkdirAll(c.dir, 0o700); err != nil {
		return fmt.Errorf("serve adapters: %w", err)
	}
	keys, err := c.table()
	if err != nil {
		return err
	}
	for i := range l.Nodes {
		n := &l.Nodes[i]
		if n.Type != ib.NodeCA {
			continue
		}
		o, err := c.options(n, f)
		if err != nil {
			return errors.Join(err, c.close())
		}
		o.Keys = keys
		if err := c.add(ctx, n, o, f); err != nil {
			return errors.Join(err, c.close())
		}
	}
	return nil
}

// add puts one card behind its HCA.
func (c *cards) add(ctx context.Context, n *netlist.Node, o hcasim.Options, f *sim.Fabric) error {
	model := hcasim.New(o)
	if err := f.Install(n.Name, adapter{model}); err != nil {
		return err
	}
	model.OnReset(func() {
		if err := f.Reboot(n.Name); err != nil {
			fmt.Fprintf(c.stderr, "portcullis-sim: firmware of %q was reset: %v\n", n.Name, err)
		}
	})
	l, err := cardsocket.Listen(ctx, filepath.Join(c.dir, n.GUID.String()))
	if err != nil {
		return err
	}
	c.listeners, c.all = append(c.listeners, l), append(c.all, model)
	return nil
}

// options are those of the card of one HCA.
func (c *cards) options(n *netlist.Node, f *sim.Fabric) (hcasim.Options, error) {
	var ports []ib.GUID
	for num := 1; num < len(n.Ports); num++ {
		ports = append(ports, n.PortGUID(ib.PortNum(num)))
	}
	o := hcasim.ConnectX7(n.GUID, ports...)
	o.Identity.SystemGUID, o.Identity.PSID = n.SystemImageGUID, c.psid
	v, err := image.ParseVersion(c.firmware)
	if err != nil {
		return o, usageError{fmt.Errorf("--firmware: %w", err)}
	}
	o.Firmware = hcasim.Firmware{Major: uint32(v.Major), Minor: uint32(v.Minor), SubMinor: uint32(v.Sub)}
	o.Live = func(port int) hcasim.Live {
		p := f.PortInfo(n.Name, ib.PortNum(port))
		return hcasim.Live{
			State: uint8(p.PortState), Physical: uint8(p.PortPhysicalState), LID: p.LID, SMLID: p.MasterSMLID,
			CapabilityMask: uint32(p.CapabilityMask), PKeys: f.PKeyTable(n.Name, ib.PortNum(port)),
		}
	}
	return o, nil
}

// serve answers until ctx ends.
func (c *cards) serve(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	for i, l := range c.listeners {
		group.Go(func() error { return cardsocket.Serve(ctx, l, c.all[i]) })
	}
	return group.Wait()
}

func (c *cards) close() error {
	var problems []error
	for _, l := range c.listeners {
		problems = append(problems, l.Close())
	}
	return errors.Join(problems...)
}

// adapter is a card as the fabric sees it.
type adapter struct{ card *hcasim.Card }

// Boot implements hcaconf.Firmware.
func (a adapter) Boot() hcaconf.Config {
	a.card.Reset()
	return hcaconf.Config{SMPFirewall: a.card.SMPFirewall(), VFs: uint8(min(a.card.VFs(), 255))}
}

// table is the keys that the cards trust to sign settings.
func (c *cards) table() (keys []hcasim.Key, err error) {
	for _, text := range c.keys {
		id, file, ok := strings.Cut(text, "=")
		if !ok {
			return nil, usageError{fmt.Errorf("--card-key %q: want UUID=FILE", text)}
		}
		k := hcasim.Key{Signs: hcasim.SignsOEM}
		if k.UUID, err = nvconfig.ParseUUID(id); err != nil {
			return nil, usageError{fmt.Errorf("--card-key: %w", err)}
		}
		if k.Public, err = readPublicKey(file); err != nil {
			return nil, fmt.Errorf("--card-key: %w", err)
		}
		keys = append(keys, k)
	}
	return keys, nil
}

// readPublicKey reads what "openssl pkey -pubout" writes.
func readPublicKey(file string) (*rsa.PublicKey, error) {
	text, err := input.ReadFile(file, input.Small)
	if err != nil {
		return nil, err
	}
	block, _ := pem.Decode(text)
	if block == nil {
		return nil, fmt.Errorf("%s: no PEM block: want a public key", file)
	}
	k, err := x509.ParsePKIXPublicKey(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	public, ok := k.(*rsa.PublicKey)
	if !ok {
		return nil, fmt.Errorf("%s: a %T: want an RSA key", file, k)
	}
	return public, nil
}

// Defaults of the cards, as in the kernel's files of a simulated host.
const (
	cardPSID     = hosttree.DefaultPSID
	cardFirmware = hosttree.DefaultFirmware
)
