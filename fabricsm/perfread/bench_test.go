package perfread_test

import (
	"context"
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"portcullis/fabricsm/perfread"
	"portcullis/fabricsm/sim/netlist"
	"portcullis/fabricsm/transport"
)

// BenchmarkSimulator reads the counters of 10,368 hosts once, at the default pace, of a simulator in the same process: an operation
// takes half a minute of time. CPU is that of both; the share of the simulator is what the same requests cost it alone.
func BenchmarkSimulator(b *testing.B) {
	l, err := netlist.FatTree3(netlist.Shape{Hosts: 10_368})
	if err != nil {
		b.Fatal(err)
	}
	f, seen := settled(b, l)
	runtime.GC()
	for b.Loop() {
		port, err := f.Attach("sm", false)
		if err != nil {
			b.Fatal(err)
		}
		c, err := perfread.New(perfread.Options{})
		if err != nil {
			b.Fatal(err)
		}
		c.See(seen)
		kept := &keeping{Port: port}
		ctx, cancel := context.WithCancel(b.Context())
		ended := make(chan error, 1)
		before := cpu(b)
		go func() { ended <- c.Run(ctx, kept) }()
		look := time.NewTicker(100 * time.Millisecond)
		for c.Stats().Passes == 0 {
			<-look.C
		}
		look.Stop()
		both := cpu(b) - before
		s := c.Stats()
		cancel()
		if err := <-ended; err != nil {
			b.Fatal(err)
		}
		if s.Current != links(l) || s.TimedOut+s.Refused+s.Invalid+s.Strays > 0 {
			b.Errorf("%+v, want %d ports", s, links(l))
		}
		station, err := f.Station("sm", false)
		if err != nil {
			b.Fatal(err)
		}
		before = cpu(b)
		for i := 0; i < len(kept.sent); i += 14 { // as many at once as there are in a tick
			station.Exchange(kept.sent[i:min(i+14, len(kept.sent))], nil)
		}
		alone := cpu(b) - before
		station.Close()
		b.ReportMetric(s.Took.Seconds(), "s/pass")
		b.ReportMetric(float64(s.Answered), "requests")
		b.ReportMetric(float64(s.Current), "ports")
		b.ReportMetric(both.Seconds(), "s-CPU-both")
		b.ReportMetric(alone.Seconds(), "s-CPU-simulator")
	}
}

// keeping keeps what is sent.
type keeping struct {
	transport.Port
	sent []transport.Packet
}

func (k *keeping) Send(p []transport.Packet) (int, error) {
	k.sent = append(k.sent, p...)
	return k.Port.Send(p)
}

// cpu returns the CPU time of the process.
func cpu(b *testing.B) time.Duration {
	b.Helper()
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
