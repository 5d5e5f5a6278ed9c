package metrics

import (
	"context"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"portcullis/api/backup"
	"portcullis/api/hostrecord"
	"portcullis/api/isolation/standing"
	"portcullis/api/store"
	"portcullis/api/store/memory"
	v1 "portcullis/api/v1"
)

// gathered returns the values of a collector, by name and labels.
func gathered(t *testing.T, c prometheus.Collector) map[string]float64 {
	t.Helper()
	r := prometheus.NewPedanticRegistry()
	r.MustRegister(c)
	families, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			name := strings.TrimPrefix(f.GetName(), "portcullis_")
			for _, l := range m.GetLabel() {
				name += " " + l.GetValue()
			}
			if h := m.GetHistogram(); h != nil {
				out[name+" count"], out[name+" sum"] = float64(h.GetSampleCount()), h.GetSampleSum()
				continue
			}
			out[name] = m.GetGauge().GetValue() + m.GetCounter().GetValue()
		}
	}
	return out
}

func wantValues(t *testing.T, what string, c prometheus.Collector, want map[string]float64) {
	t.Helper()
	if d := cmp.Diff(want, gathered(t, c)); d != "" {
		t.Errorf("%s (-want +got):\n%s", what, d)
	}
}

func TestReadyParts(t *testing.T) {
	t.Parallel()
	c := NewReady(func(context.Context) []v1.Condition {
		return []v1.Condition{{Name: "api", OK: true}, {Name: "store", Detail: "no quorum"}}
	})
	wantValues(t, "ready", c, map[string]float64{"ready api": 1, "ready store": 0})
}

// A host that is released lost nothing; one that ceases to be admitted while it is assigned did.
func TestLostAdmissions(t *testing.T) {
	t.Parallel()
	h := NewHosts()
	wantValues(t, "before the records were read", h, map[string]float64{})
	phases := func(quarantined, granting, admitted, lost float64) map[string]float64 {
		return map[string]float64{
			"hosts quarantined": quarantined, "hosts awaiting": 0, "hosts verified": 0, "hosts granting": granting, "hosts admitted": admitted, "hosts releasing": 0,
			"admissions_lost_total": lost, "host_admit_seconds count": 0, "host_admit_seconds sum": 0, "host_isolate_seconds count": 0, "host_isolate_seconds sum": 0,
		}
	}
	list := func(h1, h2 hostrecord.Record) []store.Record[hostrecord.Record] {
		return []store.Record[hostrecord.Record]{{Key: "h1", Value: h1}, {Key: "h2", Value: h2}}
	}
	admitted := hostrecord.Record{Phase: v1.PhaseAdmitted, Cluster: "c"}
	h.takeAll(list(admitted, admitted))
	wantValues(t, "admitted", h, phases(0, 0, 2, 0))
	h.takeAll(list(hostrecord.Record{Phase: v1.PhaseGranting, Cluster: "c"}, hostrecord.Record{}))
	wantValues(t, "one withdrawn, one released", h, phases(1, 1, 0, 1))
	h.takeAll(list(hostrecord.Record{Phase: v1.PhaseGranting, Cluster: "c"}, admitted))
	wantValues(t, "nothing more", h, phases(0, 1, 1, 1))
}

// How long a host takes to be admitted and to be isolated is in its records. What was before the start, a second admission
// under the same evidence, and a clock that went back count for nothing.
func TestHostTimes(t *testing.T) {
	t.Parallel()
	begin := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	at := func(seconds int) time.Time { return begin.Add(time.Duration(seconds) * time.Second) }
	of := func(phase v1.Phase, since, evidence int, admitted bool) *hostrecord.Record {
		return &hostrecord.Record{Phase: phase, Since: at(since), Cluster: "c", Admitted: admitted, Evidence: &hostrecord.Evidence{Time: at(evidence)}}
	}
	released := func(phase v1.Phase, since int) *hostrecord.Record {
		return &hostrecord.Record{Phase: phase, Since: at(since)}
	}
	h := NewHosts()
	h.takeAll(nil)
	times := func(what string, admits, admit, isolates, isolate float64) {
		t.Helper()
		got := gathered(t, h)
		for name, want := range map[string]float64{
			"host_admit_seconds count": admits, "host_admit_seconds sum": admit, "host_isolate_seconds count": isolates, "host_isolate_seconds sum": isolate,
		} {
			if got[name] != want {
				t.Errorf("%s: %s is %v, want %v", what, name, got[name], want)
			}
		}
	}
	h.take("h1", of(v1.PhaseAdmitted, 5, 1, true))
	h.take("h2", released(v1.PhaseReleasing, 0))
	times("as they were at the start", 0, 0, 0, 0)
	h.take("h2", released(v1.PhaseQuarantined, 2))
	times("isolated", 0, 0, 1, 2)
	h.take("h2", of(v1.PhaseVerified, 10, 10, false))
	h.take("h2", of(v1.PhaseGranting, 11, 10, false))
	h.take("h2", of(v1.PhaseAdmitted, 13, 10, true))
	times("admitted", 1, 3, 1, 2)
	h.take("h2", of(v1.PhaseGranting, 20, 10, true))
	h.take("h2", of(v1.PhaseAdmitted, 30, 10, true))
	times("admitted again", 1, 3, 1, 2)
	h.take("h2", released(v1.PhaseReleasing, 40))
	h.take("h2", released(v1.PhaseQuarantined, 39))
	times("the clock went back", 1, 3, 1, 2)
}

// Changes of the store reach the metric.
func TestHostsAreFollowed(t *testing.T) {
	t.Parallel()
	st := store.New(memory.New(time.Now), "")
	put := func(r hostrecord.Record) {
		t.Helper()
		if _, err := st.Update(t.Context(), func(tx *store.Tx) error { return hostrecord.Records().Put(tx, "h1", r) }); err != nil {
			t.Fatal(err)
		}
	}
	put(hostrecord.Record{Phase: v1.PhaseAdmitted, Cluster: "c"})
	h := NewHosts()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { h.Follow(ctx, st, slog.New(slog.DiscardHandler)); close(done) }()
	await := func(name string) {
		t.Helper()
		for late := time.After(30 * time.Second); gathered(t, h)[name] != 1; {
			select {
			case <-late:
				t.Fatalf("%s: %v", name, gathered(t, h))
			case <-time.After(time.Millisecond):
			}
		}
	}
	await("hosts admitted")
	put(hostrecord.Record{Phase: v1.PhaseVerified, Cluster: "c"})
	await("admissions_lost_total")
	cancel()
	<-done
}

func TestNewestBackup(t *testing.T) {
	t.Parallel()
	log := slog.New(slog.DiscardHandler)
	wantValues(t, "no directory", NewBackups(backup.New(backup.Options{Log: log})), map[string]float64{})
	dir := t.TempDir()
	empty := NewBackups(backup.New(backup.Options{Log: log, Directory: dir}))
	wantValues(t, "no backup", empty, map[string]float64{"backup_newest_timestamp_seconds": 0})
	if err := os.Remove(dir); err != nil {
		t.Fatal(err)
	}
	wantValues(t, "a directory that is gone", empty, map[string]float64{})
}

// There are values on the instance that leads alone, and none of what was never examined.
func TestIsolationOfAllTenants(t *testing.T) {
	t.Parallel()
	var now standing.Standing
	leads := false
	var ports map[string]int
	c := NewIsolation(func() (standing.Standing, bool) { return now, leads }, func() map[string]int { return ports })
	examined := standing.Standing{
		Verdict: v1.Leaks, Examined: time.Unix(1000, 0), Proven: time.Unix(500, 0), MaxAge: 3 * time.Hour,
		Counts: standing.Counts{Pairs: v1.IsolationPairs{Isolated: 3, Leaks: 1, Unknown: 2}, Missing: 4, Ghosts: 5, Unread: 6},
	}
	now = examined
	wantValues(t, "of an instance that stands by", c, map[string]float64{})
	leads, now = true, standing.Standing{Verdict: v1.IsolationUnknown, MaxAge: 3 * time.Hour}
	wantValues(t, "before the first", c, map[string]float64{"isolation_max_age_seconds": 10800})
	now = examined
	wantValues(t, "examined", c, map[string]float64{
		"isolation_max_age_seconds": 10800, "isolation_examined_timestamp_seconds": 1000, "isolation_proven_timestamp_seconds": 500,
		"isolation_pairs isolated": 3, "isolation_pairs leaks": 1, "isolation_pairs unknown": 2,
		"isolation_verdict isolated": 0, "isolation_verdict leaks": 1, "isolation_verdict unknown": 0,
		"isolation_ports_missing": 4, "isolation_ghost_members": 5, "isolation_values_unread": 6,
		"isolation_administration_examined": 0,
	})
	now.Counts.Asked, now.Counts.Disclosed, now.Counts.Pairs, now.Counts.Ghosts = true, 7, v1.IsolationPairs{}, 0
	ports = map[string]int{v1.Isolated: 8, v1.Leaks: 0, v1.Unproven: 9}
	wantValues(t, "subnet administration discloses", c, map[string]float64{
		"isolation_max_age_seconds": 10800, "isolation_examined_timestamp_seconds": 1000, "isolation_proven_timestamp_seconds": 500,
		"isolation_pairs isolated": 0, "isolation_pairs leaks": 0, "isolation_pairs unknown": 0,
		"isolation_verdict isolated": 0, "isolation_verdict leaks": 1, "isolation_verdict unknown": 0,
		"isolation_ports_missing": 4, "isolation_ghost_members": 0, "isolation_values_unread": 6,
		"isolation_administration_examined": 1, "isolation_disclosures": 7,
		"isolation_ports isolated": 8, "isolation_ports leaks": 0, "isolation_ports unproven": 9,
	})
}
