//go:build vm

package umad_test

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"portcullis/packaging/vm/inside/guest"
)

// saKey is the SA_Key that requests of these tests are trusted by.
const saKey = "0x8f3ac91d27b6e504"

// withSAKey returns the options that have our Subnet Manager take it.
func withSAKey(t *testing.T) []string {
	t.Helper()
	file := t.TempDir() + "/sa.key"
	write(t, file, saKey+"\n")
	return []string{"--sa-key-file", file}
}

// TestSubnetAdministration is items 8, 9 and 10 of step 3: hosts ask, one of them without end, and nothing else suffers.
func TestSubnetAdministration(t *testing.T) {
	newFabric(t, ourNode, tester, another)
	const metrics = "127.0.0.1:9433"
	capture := t.TempDir() + "/sm.pcap"
	m := manage(t, ours, append(withSAKey(t), "--lmc", "1", "--capture", capture, "--audit-period", "2s", "--metrics", metrics)...)
	ask := func(args ...string) string {
		return guest.Do(t, "saquery", append([]string{"-C", theirs, "--smkey", saKey}, args...)...)
	}
	t.Run("one record", func(t *testing.T) {
		if out := ask("NR", decimal(port(t, ours, "lid"))); strings.Count(out, "NodeRecord dump:") != 1 || !strings.Contains(out, "node_guid...............0x0020000000000000") {
			t.Errorf("saquery got\n%s", out)
		}
	})
	t.Run("tables of many segments", func(t *testing.T) {
		for kind, want := range map[string]int{"NR": 18, "PIR": 66, "LFTR": 6} {
			record := map[string]string{"NR": "NodeRecord dump:", "PIR": "PortInfoRecord dump:", "LFTR": "LFT Record dump:"}[kind]
			if n := strings.Count(ask(kind), record); n != want {
				t.Errorf("saquery %s got %d records, want %d", kind, n, want)
			}
		}
	})
	t.Run("LMC 1", func(t *testing.T) {
		if got := port(t, theirs, "lid_mask_count"); got != "1" {
			t.Errorf("the kernel says LMC %s, want 1", got)
		}
	})
	t.Run("global route header", func(t *testing.T) { globalRoute(t, capture) })
	t.Run("flood", func(t *testing.T) { flood(t, m, metrics) })
}

// flood has a third node ask for tables without end while the second asks for ports of switches, of which each must be answered.
func flood(t *testing.T, m *manager, metrics string) {
	stop := make(chan struct{})
	var asking sync.WaitGroup
	var asked int
	asking.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				guest.Try(t, "saquery", "-C", third, "--smkey", saKey, "-t", "100", "PIR")
				asked++
			}
		}
	})
	before := resident(t, m)
	var wrong []string
	begun := time.Now()
	count := 0
	for ; count < 20 || time.Since(begun) < 4*time.Second; count++ { // two audits of the fabric
		e := guest.Try(t, "smpquery", "-C", theirs, "-D", "nodedesc", "0,1,5,3")
		if e.Code != 0 || !strings.Contains(e.Out, "leaf2") {
			wrong = append(wrong, e.All)
		}
	}
	close(stop)
	asking.Wait()
	after := resident(t, m)
	t.Logf("%d tables asked for, %d ports; memory %d KiB, then %d KiB", asked, count, before, after)
	if len(wrong) > 0 {
		t.Errorf("%d of %d answers were wrong: %s", len(wrong), count, wrong[0])
	}
	if asked < 3 {
		t.Errorf("only %d tables were asked for", asked)
	}
	if after > before+16<<10 {
		t.Errorf("memory grew by %d KiB", after-before)
	}
	text := scrape(t, metrics)
	for _, name := range []string{"mad_dropped_total", "sa_refused_total"} {
		for _, line := range regexp.MustCompile(`(?m)^portcullis_`+name+`.*$`).FindAllString(text, -1) {
			if !strings.HasSuffix(line, " 0") {
				t.Errorf("%s, want 0", line)
			}
		}
	}
	if !strings.Contains(text, "portcullis_mad_dropped_total") {
		t.Error("the counter of malformed packets is not told")
	}
}

// resident returns the memory that a process holds, in KiB.
func resident(t testing.TB, m *manager) int {
	t.Helper()
	match := regexp.MustCompile(`VmRSS:\s+(\d+) kB`).FindStringSubmatch(guest.Read(t, fmt.Sprintf("/proc/%d/status", m.cmd.Process.Pid)))
	if match == nil {
		t.Fatal("no VmRSS")
	}
	n, err := strconv.Atoi(match[1])
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func scrape(t testing.TB, address string) string {
	t.Helper()
	c := http.Client{Timeout: patience}
	r, err := c.Get("http://" + address + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	text, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// globalRoute asks with a global route header, as saquery cannot, and looks for the answer in the capture.
func globalRoute(t *testing.T, capture string) {
	c := openUser(t, theirs)
	lid, err := strconv.ParseUint(port(t, ours, "lid"), 0, 16)
	if err != nil {
		t.Fatal(err)
	}
	gid := gidOf(t, port(t, ours, "gids/0"))
	const hops = 64
	answer := c.ask(t, question{lid: uint16(lid), gid: gid, hops: hops, attribute: 0x0001}) // ClassPortInfo
	if got := answer.method(); got != 0x81 {
		t.Fatalf("the answer has method %#x, want GetResp", got)
	}
	if !answer.global() {
		t.Error("the answer came without a global route header")
	}
	if from := answer.source(); from != gid {
		t.Errorf("the answer came from GID %x, want %x", from, gid)
	}
	mine := gidOf(t, port(t, theirs, "gids/0"))
	guest.Eventually(t, patience, "the capture has no such question and answer", func() bool {
		packets := globals(t, capture)
		return packets[route{mine, gid}] > 0 && packets[route{gid, mine}] > 0
	})
	data, err := os.ReadFile(capture)
	if err != nil || len(data) < 24 {
		t.Fatalf("capture of %d bytes: %v", len(data), err)
	}
}
