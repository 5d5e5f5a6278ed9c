// Package ibsimserver serves a simulated fabric on ibsim's socket protocol, so
// that unchanged clients of ibsim (our own, and through the preload library
// infiniband-diags and OpenSM) attach to it.
package ibsimserver

import (
	"context"
	"sync"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sim"
	"portcullis/fabricsm/transport"
	"portcullis/fabricsm/transport/ibsim"
)

// Simulated time follows real time every tick, and every fineTick while packets
// wait for it.
const (
	tick     = 50 * time.Millisecond
	fineTick = time.Millisecond
)

// Serve answers the server's clients from the fabric until ctx ends. The
// fabric's time follows the clock meanwhile.
func Serve(ctx context.Context, s *ibsim.Server, f *sim.Fabric) error {
	ctx, cancel := context.WithCancel(ctx)
	var clock sync.WaitGroup
	clock.Go(func() { follow(ctx, f) })
	defer clock.Wait()
	defer cancel()
	return Join(ctx, s, f)
}

// Join answers the server's clients as Serve does, and leaves the fabric's time to the Serve
// of another server.
func Join(ctx context.Context, s *ibsim.Server, f *sim.Fabric) error {
	return s.Serve(ctx, network{f})
}

// follow lets simulated time follow the clock. Flows and floods send once a tick,
// however fine the steps are.
func follow(ctx context.Context, f *sim.Fabric) {
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	fine, last := false, time.Now()
	sent := last
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-ticker.C:
			if now.Sub(sent) >= tick-fineTick/2 {
				f.Advance(now.Sub(last))
				sent = now
			} else {
				f.Elapse(now.Sub(last))
			}
			last = now
		}
		if f.IsTimed() == fine {
			continue
		}
		if fine = !fine; fine {
			ticker.Reset(fineTick)
		} else {
			ticker.Reset(tick)
		}
	}
}

// network implements ibsim.Network.
type network struct{ fabric *sim.Fabric }

// Attach implements ibsim.Network.
func (n network) Attach(node string, asSM bool) (ibsim.Attachment, error) {
	station, err := n.fabric.Station(node, asSM)
	if err != nil {
		return nil, err
	}
	side, err := n.fabric.Station(node, false)
	if err != nil {
		station.Close()
		return nil, err
	}
	return &attachment{Station: station, port: station.Port(), side: side}, nil
}

// attachment implements ibsim.Attachment. Control requests go through a
// station of their own, so that their answers do not mix with the client's.
type attachment struct {
	*sim.Station
	port sim.Port

	queries sync.Mutex
	side    *sim.Station
}

// Receive implements ibsim.Attachment.
func (a *attachment) Receive(packets []transport.Packet) (int, error) { return a.port.Receive(packets) }

// Close implements ibsim.Attachment.
func (a *attachment) Close() {
	a.Station.Close()
	a.side.Close()
}

// Query implements ibsim.Attachment: it queries the agent of the node.
func (a *attachment) Query(attr mad.AttrID, mod uint32) (data [mad.DataSize]byte, ok bool) {
	a.queries.Lock()
	defer a.queries.Unlock()
	ask := transport.Packet{LID: ib.PermissiveLID}
	mad.NewSMP(&ask.MAD, mad.Header{Method: mad.MethodGet, Attr: attr, Mod: mod}, &mad.Route{}, ib.MKey{})
	answers := a.side.Exchange([]transport.Packet{ask}, nil)
	if len(answers) != 1 || answers[0].Undelivered || answers[0].MAD.Status() != mad.StatusOK {
		return data, false
	}
	copy(data[:], answers[0].MAD.Data())
	return data, true
}
