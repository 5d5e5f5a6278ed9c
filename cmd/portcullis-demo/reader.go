package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/transport"
	"portcullis/fabricsm/transport/ibsim"
	"portcullis/fabricsm/transport/ibsim/ibsimlab"
)

// reader reads P_Key tables from a fabric, by directed routes from the host of
// the subnet manager and without its help.
type reader interface {
	name() string
	// pkeys reads the table of an HCA's port 1 or, at a switch, of the given
	// port, under the M_Key of the device, which may be none. The route is in the
	// notation of infiniband-diags, "0,1,33".
	pkeys(ctx context.Context, route string, switchPort ib.PortNum, key ib.MKey) ([]ib.PKey, error)
}

// newReader returns the reader of that name. Without a name it returns smpquery where that is installed, because a third
// party's result counts more than ours, and otherwise our own.
func newReader(c ibsimlab.Client, name string) reader {
	switch name {
	case directReader{}.name():
		return directReader{c.Socket}
	case smpquery{}.name():
		return smpquery{c}
	}
	_, tool := ibsimlab.Find("smpquery")
	_, library := ibsimlab.Preload()
	if tool != nil || library != nil {
		return directReader{c.Socket}
	}
	return smpquery{c}
}

// smpquery is the program of infiniband-diags.
type smpquery struct{ client ibsimlab.Client }

func (smpquery) name() string { return "smpquery" }

func (r smpquery) pkeys(ctx context.Context, route string, switchPort ib.PortNum, key ib.MKey) ([]ib.PKey, error) {
	return r.client.PKeys(ctx, smNodeName, route, switchPort, key)
}

// directReader asks the devices itself: it shares the codec with the Subnet
// Manager, and nothing else.
type directReader struct{ socket string }

// answerTimeout is how long a device may take; the simulators answer at once.
const answerTimeout = 5 * time.Second

func (directReader) name() string { return "directed-route SMPs" }

func (r directReader) pkeys(ctx context.Context, route string, switchPort ib.PortNum, key ib.MKey) ([]ib.PKey, error) {
	hops, err := parseRoute(route)
	if err != nil {
		return nil, err
	}
	port, err := ibsim.Dial(ctx, ibsim.Options{Socket: r.socket, Node: smNodeName})
	if err != nil {
		return nil, err
	}
	defer port.Close()
	// Close ends a Receive that waits for an answer that does not come.
	timer := time.AfterFunc(answerTimeout, func() { _ = port.Close() })
	defer timer.Stop()
	defer context.AfterFunc(ctx, func() { _ = port.Close() })()
	entries, err := capacity(port, hops, switchPort, key)
	if err != nil {
		return nil, fmt.Errorf("read P_Keys at %s: %w", route, err)
	}
	var keys []ib.PKey
	for block := range (entries + mad.PKeysPerBlock - 1) / mad.PKeysPerBlock {
		var table mad.PKeyTable
		if err := get(port, hops, key, mad.AttrPKeyTable, uint32(switchPort)<<16|uint32(block), &table); err != nil {
			return nil, fmt.Errorf("read P_Keys at %s: %w", route, err)
		}
		for _, k := range table.PKey {
			if k.Valid() {
				keys = append(keys, k)
			}
		}
	}
	return keys, nil
}

// capacity is the size of the P_Key table of an HCA, or of the external ports of
// a switch.
func capacity(port transport.Port, hops mad.Route, switchPort ib.PortNum, key ib.MKey) (int, error) {
	if switchPort != 0 {
		var si mad.SwitchInfo
		err := get(port, hops, key, mad.AttrSwitchInfo, 0, &si)
		return int(si.PartitionEnforcementCap), err
	}
	var ni mad.NodeInfo
	err := get(port, hops, key, mad.AttrNodeInfo, 0, &ni)
	return int(ni.PartitionCap), err
}

// get sends one Get and decodes its answer.
func get[T any](port transport.Port, hops mad.Route, key ib.MKey, attr mad.AttrID, mod uint32, v *T) error {
	ask := []transport.Packet{{LID: ib.PermissiveLID}}
	mad.NewSMP(&ask[0].MAD, mad.Header{Method: mad.MethodGet, TID: 1, Attr: attr, Mod: mod}, &hops, key)
	if _, err := port.Send(ask); err != nil {
		return err
	}
	answer := make([]transport.Packet, 1)
	switch _, err := port.Receive(answer); {
	case errors.Is(err, transport.ErrClosed):
		return fmt.Errorf("no answer to %v", attr)
	case err != nil:
		return err
	}
	m := &answer[0].MAD
	switch {
	case answer[0].Undelivered:
		return fmt.Errorf("no device answers %v", attr)
	case m.Method() != mad.MethodGetResp || m.Attr() != attr || m.Mod() != mod:
		return fmt.Errorf("%v is answered by %v of %v", attr, m.Method(), m.Attr())
	case m.Status() != mad.StatusOK:
		return fmt.Errorf("%v is refused: %v", attr, m.Status())
	}
	return mad.Decode(m.Data(), v)
}

// parseRoute reads "0,1,33": the 0 is where we are, the others are ports.
func parseRoute(s string) (mad.Route, error) {
	words := strings.Split(s, ",")
	var hops []ib.PortNum
	for _, w := range words[1:] {
		p, err := ib.ParsePortNum(w)
		if err != nil {
			return mad.Route{}, fmt.Errorf("route %q: %w", s, err)
		}
		hops = append(hops, p)
	}
	if words[0] != "0" || len(hops) > mad.MaxHops {
		return mad.Route{}, fmt.Errorf("route %q: want 0 and up to %d ports, with commas between", s, mad.MaxHops)
	}
	return mad.MakeRoute(hops...), nil
}
