package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"portcullis/api/client"
	v1 "portcullis/api/v1"
	"portcullis/attest/tpm/tpmtest"
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/sim"
	"portcullis/fabricsm/sim/netlist"
	"portcullis/fabricsm/sim/simtest"
)

const (
	strangerAddresses   = 60
	honestHosts         = 3
	honestAttestations  = 20       // of each honest host, in each phase
	mostMemoryByFlooder = 64 << 20 // that strangers may add to the service's memory
	mostDelayByFlooder  = 1.5      // of the slowest attestations with strangers to those without
)

// BenchmarkStrangers measures what 60 addresses that have no credential, each at full speed, cost others:
// attestations of honest hosts, from their TPM to the P_Key at their port; the reaction of the Subnet Manager
// to a link that comes back; and memory. The flood is a process that runs when the CPUs have nothing else to do,
// since it stands for other machines: it uses what the service, the hosts and their TPMs leave of the CPUs. Both phases are of one run, and
// ratios compare them.
func BenchmarkStrangers(b *testing.B) {
	tpmtest.Require(b)
	s := newStrangersSite(b)
	keepAwake(b)
	for b.Loop() {
		quiet := s.measure(b)
		flood := startStrangers(b, s.address)
		flooded := s.measure(b)
		b.Logf("flood: %s", flood())
		b.Logf("quiet:   %v", quiet)
		b.Logf("flooded: %v", flooded)
		b.ReportMetric(ratio(flooded.attest, quiet.attest, 0.5), "attest-p50-ratio")
		b.ReportMetric(ratio(flooded.attest, quiet.attest, 0.99), "attest-p99-ratio")
		b.ReportMetric(ratio(flooded.links, quiet.links, 0.5), "link-p50-ratio")
		b.ReportMetric(ratio(flooded.links, quiet.links, 0.99), "link-p99-ratio")
		b.ReportMetric(quiet.cpu, "quiet-CPUs")
		b.ReportMetric(flooded.cpu, "flooded-CPUs")
		more := flooded.memory - quiet.memory
		b.ReportMetric(float64(more)/(1<<20), "MiB-more")
		if r := ratio(flooded.attest, quiet.attest, 0.99); r > mostDelayByFlooder {
			b.Errorf("the slowest attestations take %.2f times as long, want at most %v", r, mostDelayByFlooder)
		}
		if more > mostMemoryByFlooder {
			b.Errorf("the service's memory grew by %d MiB, want at most %d", more>>20, mostMemoryByFlooder>>20)
		}
	}
}

// strangersSite is a service over a simulated fabric, with honest hosts and one port whose link comes and goes.
type strangersSite struct {
	address string
	service *process
	c       *client.Client
	fabric  *sim.Fabric
	hosts   []*machine
	from    atomic.Uint32 // last address of a host
}

// Hosts whose links come and go, one after the other: each less often than a port that flaps.
const (
	firstBouncing = honestHosts + 1
	bouncing      = 24
	bounceEvery   = time.Second / 3
)

func newStrangersSite(b *testing.B) *strangersSite {
	l, err := netlist.FatTree2(netlist.Shape{Hosts: 32, Radix: 8})
	if err != nil {
		b.Fatal(err)
	}
	s := &strangersSite{fabric: sim.NewWith(l, sim.Options{Device: sim.Modern()})}
	at := simtest.Serve(b, s.fabric)
	vendor := tpmtest.ShortDir(b)
	text := "hosts:\n"
	for i := range honestHosts {
		n := l.Find(fmt.Sprintf("h%d", i+1))
		m := newMachine(b, vendor, &machine{id: n.Name, nodeGUID: n.GUID, place: fmt.Sprintf("%v/%d", l.Find(n.Ports[1].Peer).GUID, n.Ports[1].PeerPort)})
		s.hosts = append(s.hosts, m)
		text += m.inventory()
	}
	var dir string
	dir, s.address = install(b, "--fabric-port", "ibsim:"+at.Socket+"/sm")
	trustVendor(b, dir, s.hosts[0])
	s.service = start(b, dir)
	s.c = operator(b, dir, s.address)
	for _, m := range s.hosts {
		m.serve(dir, s.address) // for its certificate authority; the address is of a relay
		trustBoots(b, s.c, s.c, m)
	}
	ctx := b.Context()
	_, err = s.c.Inventory().Import(ctx, []v1.InventoryFile{{Name: "hosts.yaml", Content: text}}, v1.RepairTicket{}, false)
	if err != nil {
		b.Fatal(err)
	}
	if _, err = s.c.Tenants().Create(ctx, v1.NewTenant{Name: "acme"}); err != nil {
		b.Fatal(err)
	}
	if _, err = s.c.Clusters().Create(ctx, v1.NewCluster{Name: "acme-1", Tenant: "acme"}); err != nil {
		b.Fatal(err)
	}
	for i := range bouncing {
		s.active(b, bouncingHost(i))
	}
	return s
}

func bouncingHost(i int) string { return fmt.Sprintf("h%d", firstBouncing+i%bouncing) }

// active waits until the port of a host is Active.
func (s *strangersSite) active(b *testing.B, host string) {
	b.Helper()
	late := time.After(patience)
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for s.fabric.PortInfo(host, 1).PortState != ib.PortActive {
		select {
		case <-tick.C:
		case <-late:
			b.Fatalf("the port of %s is not Active after %v", host, patience)
		}
	}
}

// strangersPhase is what was measured in one phase.
type strangersPhase struct {
	attest []time.Duration // from the start of an agent to its host's admission, sorted
	links  []time.Duration // from a link that is up again to its port being Active, sorted
	memory int64           // of the service at most, bytes
	cpu    float64         // CPUs that the service used, which other work on the machine does not change
	load   string          // of the machine at the end of the phase, for the last minute
}

func (p strangersPhase) String() string {
	return fmt.Sprintf("%d attestations p50 %v p99 %v, %d links p50 %v p99 %v, memory %d MiB, %.2f CPUs, load %s", len(p.attest), quantile(p.attest, 0.5), quantile(p.attest, 0.99),
		len(p.links), quantile(p.links, 0.5), quantile(p.links, 0.99), p.memory>>20, p.cpu, p.load)
}

func quantile(sorted []time.Duration, q float64) time.Duration {
	return sorted[int(q*float64(len(sorted)-1))]
}

func ratio(of, to []time.Duration, q float64) float64 {
	return float64(quantile(of, q)) / float64(quantile(to, q))
}

// measure has all honest hosts attest again and again, and links come and go meanwhile.
func (s *strangersSite) measure(b *testing.B) strangersPhase {
	b.Helper()
	var out strangersPhase
	var mu sync.Mutex
	var hosts, other sync.WaitGroup
	ended := make(chan struct{})
	began, used := time.Now(), cpuTime(b, s.service.cmd.Process.Pid)
	for _, m := range s.hosts {
		hosts.Go(func() {
			for range honestAttestations {
				took, err := s.attest(b, m)
				if err != nil {
					b.Errorf("%s: %v", m.id, err)
					return
				}
				mu.Lock()
				out.attest = append(out.attest, took)
				mu.Unlock()
			}
		})
	}
	other.Go(func() {
		tick := time.NewTicker(bounceEvery)
		defer tick.Stop()
		for i := 0; ; i++ {
			host := bouncingHost(i)
			select {
			case <-ended:
				return
			case <-tick.C:
			}
			if err := s.fabric.Bounce(host, 1); err != nil {
				b.Error(err)
				return
			}
			start := time.Now()
			s.active(b, host)
			took := time.Since(start)
			out.links = append(out.links, took)
			out.memory = max(out.memory, residentMemory(b, s.service.cmd.Process.Pid))
		}
	})
	hosts.Wait()
	close(ended)
	other.Wait()
	if b.Failed() {
		b.FailNow()
	}
	out.cpu = (cpuTime(b, s.service.cmd.Process.Pid) - used).Seconds() / time.Since(began).Seconds()
	load, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		b.Fatal(err)
	}
	out.load, _, _ = strings.Cut(string(load), " ")
	slices.Sort(out.attest)
	slices.Sort(out.links)
	return out
}

// attest assigns a host, has it attest until it is admitted, and releases it and cuts its power for the next time.
func (s *strangersSite) attest(b *testing.B, m *machine) (time.Duration, error) {
	ctx := b.Context()
	if _, err := s.c.Hosts().Assign(ctx, m.id, v1.Assignment{Cluster: "acme-1"}); err != nil {
		return 0, err
	}
	m.config.Service = "https://" + s.relay(b)
	start := time.Now()
	if err := m.run(b); err != nil {
		return 0, err
	}
	took := time.Since(start)
	if err := s.release(ctx, m.id); err != nil {
		return 0, err
	}
	if err := m.tpm.PowerCycle(ctx); err != nil {
		return 0, err
	}
	m.plant(b)
	return took, nil
}

// release releases a host and waits until it is quarantined.
func (s *strangersSite) release(ctx context.Context, host string) error {
	if _, err := s.c.Hosts().Release(client.IfMatch(ctx, client.AnyVersion), host); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for h, err := range s.c.Hosts().Watch(ctx, host) {
		if err != nil {
			return err
		}
		if h.Status.Phase == v1.PhaseQuarantined {
			return nil
		}
	}
	return ctx.Err()
}

// relay returns where to connect to the service so that it sees another address each time, as it does of as many hosts: one
// that attests again and again would meet the limit on attestations of an address.
func (s *strangersSite) relay(b *testing.B) string {
	b.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { l.Close() })
	n := s.from.Add(1)
	from := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 2, byte(n>>8), byte(n))}}
	go func() {
		for {
			host, err := l.Accept()
			if err != nil {
				return
			}
			service, err := from.DialContext(b.Context(), "tcp", s.address)
			if err != nil {
				host.Close()
				continue
			}
			for _, way := range [][2]net.Conn{{host, service}, {service, host}} {
				go func() {
					_, _ = io.Copy(way[0], way[1])
					way[0].Close()
					way[1].Close()
				}()
			}
		}
	}()
	return l.Addr().String()
}

// residentMemory returns how much memory a process has, in bytes.
func residentMemory(b testing.TB, pid int) int64 {
	b.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		b.Fatal(err)
	}
	m := regexp.MustCompile(`VmRSS:\s+(\d+) kB`).FindSubmatch(text)
	if m == nil {
		b.Fatalf("process %d has no VmRSS", pid)
	}
	n, err := strconv.ParseInt(string(m[1]), 10, 64)
	if err != nil {
		b.Fatal(err)
	}
	return n << 10
}

// cpuTime returns how much CPU time a process has used.
func cpuTime(b testing.TB, pid int) time.Duration {
	b.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		b.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), ") ") // behind the name, which may have blanks
	fields := strings.Fields(rest)
	if len(fields) < 13 {
		b.Fatalf("process %d has %q", pid, text)
	}
	var ticks int
	for _, f := range fields[11:13] { // user and system time, in hundredths of a second
		n, err := strconv.Atoi(f)
		if err != nil {
			b.Fatal(err)
		}
		ticks += n
	}
	return time.Duration(ticks) * 10 * time.Millisecond
}

// keepAwake keeps the CPUs from falling idle until the benchmark ends, in both phases alike: a CPU that was idle takes
// longer to react, and the flood leaves none idle.
func keepAwake(b *testing.B) {
	b.Helper()
	for range runtime.NumCPU() {
		cmd := exec.CommandContext(b.Context(), "chrt", "--idle", "0", "sh", "-c", "while :; do :; done")
		if err := cmd.Start(); err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { _ = cmd.Wait() }) // b.Context is over before
	}
}

// startStrangers starts the flood. The returned function ends it, and returns what the flood counted.
func startStrangers(b *testing.B, address string) (stop func() string) {
	b.Helper()
	cmd := exec.Command("chrt", "--idle", "0", "strangers", address, strconv.Itoa(strangerAddresses))
	cmd.Env = append(os.Environ(), "GOMAXPROCS=2")
	var said strings.Builder
	cmd.Stdout, cmd.Stderr = &said, os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	return func() string {
		_ = in.Close()
		if err := cmd.Wait(); err != nil {
			b.Errorf("strangers: %v", err)
		}
		return said.String()
	}
}
