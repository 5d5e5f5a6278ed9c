package driver_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"portcullis/fabricsm/driver"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sim"
	"portcullis/fabricsm/sim/netlist"
	"portcullis/fabricsm/sm"
	"portcullis/fabricsm/transport"
)

// TestCounters: over a transport, counters that were reset are reported.
func TestCounters(t *testing.T) {
	for name, dial := range map[string]func(*testing.T, *sim.Fabric) transport.Port{
		"in process":      attachTo,
		"ibsim's sockets": dialTo,
	} {
		t.Run(name, func(t *testing.T) {
			l, err := netlist.FatTree2(netlist.Shape{Hosts: 4, Radix: 4})
			if err != nil {
				t.Fatal(err)
			}
			f := sim.New(l)
			port := dial(t, f)
			told := make(chan *sm.CountersReset, 64)
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan error, 1)
			go func() {
				ended <- driver.Run(ctx, driver.Options{
					Port: port, Core: sm.Config{Counters: sm.CountersConfig{Period: time.Second}},
					OnEvent: func(e sm.Event) {
						if x, ok := e.(*sm.CountersReset); ok {
							select {
							case told <- x:
							default:
							}
						}
					},
				}, nil)
			}()
			defer func() {
				cancel()
				if err := <-ended; err != nil {
					t.Error(err)
				}
			}()
			// The host has traffic for a while, which the counters are looked at in, and
			// then they are reset; and so on, for a slow machine looks late.
			ask := transport.Packet{QP: 1}
			ask.MAD.SetHeader(mad.Header{Class: mad.ClassPerf, ClassVersion: 1, Method: mad.MethodGet, Attr: 0x001D, TID: 5})
			ask.MAD[65], ask.MAD[66], ask.MAD[67] = 1, 0xFF, 0xFF
			late := time.NewTimer(30 * time.Second)
			defer late.Stop()
			tick := time.NewTicker(300 * time.Millisecond)
			defer tick.Stop()
			for turn := 0; ; turn++ {
				select {
				case e := <-told:
					if e.GUID != l.Find("h1").PortGUID(1) || e.Is >= e.Was {
						t.Errorf("told %v, want of h1", e)
					}
					return
				case <-tick.C:
					st, err := f.Station("sm", false)
					if err != nil {
						t.Fatal(err)
					}
					ask.LID = f.PortInfo("h1", 1).LID
					again := 50
					ask.MAD.SetMethod(mad.MethodGet)
					if turn%5 == 4 {
						again = 1
						ask.MAD.SetMethod(mad.MethodSet)
					}
					st.Exchange(slices.Repeat([]transport.Packet{ask}, again), nil)
					st.Close()
				case <-late.C:
					t.Fatal("nobody told of it in half a minute")
				}
			}
		})
	}
}
