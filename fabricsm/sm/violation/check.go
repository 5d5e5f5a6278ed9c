package violation

import (
	"math"
	"time"

	"portcullis/fabricsm/keys"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/topo"
)

// The report of a wrong key by a trap is compared with the counter of the device, which is read with a Get. Any host can
// send a trap, but the counter only grows when the device refused a packet. If there are more traps than were counted, it
// stays open which of them are true. Switches need not count packets that an external port stopped, so there the comparison
// refutes nothing.

// counters are the three that PortInfo has.
type counters [3]uint32

// counted returns which of the counters grows with a kind of report.
func counted(k Kind) (int, bool) {
	switch k {
	case BadMKey, OwnMKey:
		return 0, true
	case BadPKey:
		return 1, true
	case BadQKey:
		return 2, true
	default:
		return 0, false
	}
}

var countedKinds = [3]Kind{BadMKey, BadPKey, BadQKey}

func countersOf(pi *mad.PortInfo) counters {
	return counters{uint32(pi.MKeyViolations), uint32(pi.PKeyViolations), uint32(pi.QKeyViolations)}
}

// check is the reports of a port that a Get is to prove.
type check struct {
	rows    [16]int32 // that are to be judged
	ids     [16]uint64
	n       int
	reports counters
	own     uint32 // of the first kind, about ourselves
	asked   bool
	due     bool // a timer runs
	next    time.Time
	pause   time.Duration
}

// counterCredit is the number of violations that a port has counted and no trap has reported yet.
type counterCredit struct {
	n  counters
	at time.Time
}

const (
	// CheckPause is the shortest time between two Gets of a port because of reports. It doubles up to checkPauseMax while
	// they prove to be another's.
	CheckPause, checkPauseMax = 100 * time.Millisecond, 10 * time.Second
	// creditTime is how long after it was counted a violation may be reported: traps
	// are paced by SubnetTimeOut, some seconds.
	creditTime = 20 * time.Second
)

// Check has a report proven by a Get of the counters of the port that it is about.
func (l *Log) Check(claim Claim) {
	i, p := claim.row, claim.about
	w := l.Row(i)
	at, ok := counted(w.Report.kind)
	if !ok || p == topo.None || !l.fabric.CanAsk(p) {
		return
	}
	k := l.pending[p]
	if k == nil {
		k = &check{}
		l.pending[p] = k
	}
	if k.reports[at]++; w.Report.kind == OwnMKey {
		k.own++
	}
	k.add(i, w.ID)
	if k.due || k.asked && l.fabric.Now().Before(k.next) {
		return
	}
	if l.fabric.Now().Before(k.next) || !l.MayLook() {
		k.due = true
		l.fabric.CheckLater(p, max(CheckPause, k.next.Sub(l.fabric.Now())))
		return
	}
	l.askCounters(p, k)
}

// add records a row once.
func (k *check) add(i int32, id uint64) {
	for j := range k.n {
		if k.rows[j] == i && k.ids[j] == id {
			return
		}
	}
	if k.n < len(k.rows) {
		k.rows[k.n], k.ids[k.n] = i, id
		k.n++
	}
}

// CheckDue asks a port whose turn has come.
func (l *Log) CheckDue(p topo.PortID) {
	k := l.pending[p]
	if k == nil {
		return
	}
	k.due = false
	if !l.fabric.CanAsk(p) {
		delete(l.pending, p)
		return
	}
	if !l.MayLook() {
		k.due = true
		l.fabric.CheckLater(p, CheckPause)
		return
	}
	l.askCounters(p, k)
}

func (l *Log) askCounters(p topo.PortID, k *check) {
	k.asked = true
	k.pause = max(k.pause, CheckPause)
	k.next = l.fabric.Now().Add(k.pause)
	l.fabric.ReadCounters(p)
}

// RecordCounters takes the counters of a port as they were and as they are, from the answer to a Get or to a Set. Zero was
// written to those that went back.
func (l *Log) RecordCounters(p topo.PortID, was, is *mad.PortInfo, byGet bool) {
	old, now := countersOf(was), countersOf(is)
	if old != now {
		for i := range now {
			grew := now[i]
			if grew >= old[i] {
				grew -= old[i]
			}
			l.counterGrew(p, i, grew)
		}
	}
	if k := l.pending[p]; k != nil && k.asked && byGet {
		l.judgeReports(p, k, now)
	}
}

// counterGrew takes that a port has counted more.
func (l *Log) counterGrew(p topo.PortID, i int, grew uint32) {
	if grew == 0 {
		return
	}
	l.totals[countedKinds[i]].Counted += uint64(grew)
	k := l.credit[p]
	if k == nil {
		k = &counterCredit{}
		l.credit[p] = k
	}
	if l.fabric.Now().Sub(k.at) > creditTime {
		k.n = counters{}
	}
	k.n[i], k.at = k.n[i]+grew, l.fabric.Now()
	l.stale = true
	l.tick()
	if countedKinds[i] == BadMKey && p != l.fabric.Own() {
		l.guessed(keys.MKey, p, uint64(grew))
		l.fabric.ReadNotices(p)
	}
}

// judgeReports compares reports with the counters.
func (l *Log) judgeReports(p topo.PortID, k *check, now counters) {
	var have counters
	if credit := l.credit[p]; credit != nil {
		if l.fabric.Now().Sub(credit.at) <= creditTime {
			have = credit.n
		}
		delete(l.credit, p)
	}
	var verdict [3]Verdict
	lied := false
	for i := range have {
		switch {
		case k.reports[i] == 0 || now[i] >= math.MaxUint16:
		case have[i] >= k.reports[i]:
			verdict[i] = Confirmed
			l.totals[countedKinds[i]].Confirmed += uint64(k.others(i))
		case have[i] == 0 && l.isEnd(p):
			verdict[i] = Refuted
			l.totals[countedKinds[i]].Refuted += uint64(k.others(i))
			lied = true
		}
	}
	of := k.rowsOf(l)
	for j := range k.n {
		w := l.Row(k.rows[j])
		if w.ID != k.ids[j] || w.Report.others {
			continue
		}
		i, _ := counted(w.Report.kind)
		if of[i] == 1 && verdict[i] == Confirmed {
			w.Counted += uint64(have[i])
		}
		l.judgeRow(k.rows[j], verdict[i])
	}
	if k.pause = CheckPause; lied {
		k.pause = min(2*max(CheckPause, l.fabric.Now().Sub(k.next)+k.pause), checkPauseMax)
	}
	*k = check{next: l.fabric.Now().Add(k.pause), pause: k.pause}
}

// others counts the reports that are not about ourselves.
func (k *check) others(i int) uint32 {
	if i == 0 {
		return k.reports[0] - k.own
	}
	return k.reports[i]
}

// rowsOf counts the rows for each counter.
func (k *check) rowsOf(l *Log) (n [3]int) {
	for j := range k.n {
		if w := l.Row(k.rows[j]); w.ID == k.ids[j] {
			i, _ := counted(w.Report.kind)
			n[i]++
		}
	}
	return n
}

// judgeRow sets the verdict of a row. A confirmed row stays confirmed: a row stands for all equal reports, of which some
// were true.
func (l *Log) judgeRow(i int32, verdict Verdict) {
	w := l.Row(i)
	if verdict == Claimed || w.More.verdict == Confirmed || w.More.verdict == verdict {
		return
	}
	if w.More.verdict = verdict; verdict == Confirmed {
		l.Prove(i)
	}
	l.stale = true
	if (verdict == Confirmed || l.mayLog(&l.Row(i).Report)) && l.MayTellNew(l.fabric.Now()) {
		l.send(i, false)
		return
	}
	l.Row(i).Told = 0
	l.Later(i)
	l.tick()
}

// MayLook reports whether a report, or a trap of a host, may cause a request now. All of them share one allowance.
func (l *Log) MayLook() bool {
	rate := float64(l.opt.ChecksPerSecond)
	return l.checks.Take(l.fabric.Now(), rate, max(1, rate/4))
}
