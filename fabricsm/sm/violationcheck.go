package sm

import (
	"math"
	"time"

	"portcullis/fabricsm/ib"
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
func counted(k ReportKind) (int, bool) {
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

var countedKinds = [3]ReportKind{BadMKey, BadPKey, BadQKey}

func countersOf(pi *mad.PortInfo) counters {
	return counters{uint32(pi.MKeyViolations), uint32(pi.PKeyViolations), uint32(pi.QKeyViolations)}
}

// reportCheck is the reports of a port that a Get is to prove.
type reportCheck struct {
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
	// checkPause is the shortest time between two Gets of a port because of
	// reports. It doubles up to checkPauseMax while they prove to be another's.
	checkPause, checkPauseMax = 100 * time.Millisecond, 10 * time.Second
	// creditTime is how long after it was counted a violation may be reported: traps
	// are paced by SubnetTimeOut, some seconds.
	creditTime = 20 * time.Second
)

// checkReport has a report proven by a Get of the counters of a port.
func (c *Core) checkReport(i int32, p topo.PortID) {
	v := &c.reports
	w := v.Row(i)
	at, ok := counted(w.Report.kind)
	if !ok || p == topo.None || !c.ports[p].known {
		return
	}
	k := v.pending[p]
	if k == nil {
		k = &reportCheck{}
		v.pending[p] = k
	}
	if k.reports[at]++; w.Report.kind == OwnMKey {
		k.own++
	}
	k.add(i, w.ID)
	if k.due || k.asked && c.now.Before(k.next) {
		return
	}
	if c.now.Before(k.next) || !v.checks.Take(c.now, float64(c.cfg.Violations.ChecksPerSecond), float64(max(1, c.cfg.Violations.ChecksPerSecond/4))) {
		k.due = true
		c.after(max(checkPause, k.next.Sub(c.now)), timerReport, ref{clsInfo, int32(p)})
		return
	}
	c.askCounters(p, k)
}

// add records a row once.
func (k *reportCheck) add(i int32, id uint64) {
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

// reportDue asks a port whose turn has come.
func (c *Core) reportDue(p topo.PortID) {
	v := &c.reports
	k := v.pending[p]
	if k == nil {
		return
	}
	k.due = false
	if !c.nodes[c.ports[p].node].alive || !c.ports[p].known {
		delete(v.pending, p)
		return
	}
	if !v.checks.Take(c.now, float64(c.cfg.Violations.ChecksPerSecond), float64(max(1, c.cfg.Violations.ChecksPerSecond/4))) {
		k.due = true
		c.after(checkPause, timerReport, ref{clsInfo, int32(p)})
		return
	}
	c.askCounters(p, k)
}

func (c *Core) askCounters(p topo.PortID, k *reportCheck) {
	k.asked = true
	k.pause = max(k.pause, checkPause)
	k.next = c.now.Add(k.pause)
	c.background(p)
}

// readCounters takes the counters of a port as they were and as they are. Zero
// was written to those that went back.
func (c *Core) readCounters(p topo.PortID, was, is *mad.PortInfo, byGet bool) {
	old, now := countersOf(was), countersOf(is)
	v := &c.reports
	if old != now {
		for i := range now {
			grew := now[i]
			if grew >= old[i] {
				grew -= old[i]
			}
			c.counterGrew(p, i, grew)
		}
	}
	if k := v.pending[p]; k != nil && k.asked && byGet {
		c.judgeReports(p, k, now)
	}
	if byGet && was.MKeyProtectBits > 0 {
		c.findLapse(p, is)
	}
}

// findLapse reports a device on its key whose protection ended with its lease, and has the key replaced: each host could
// read it.
func (c *Core) findLapse(p topo.PortID, is *mad.PortInfo) {
	if is.MKeyProtectBits > 0 || is.MKey.IsZero() || !c.isEnd(p) || !c.cfg.MKey.on() || c.mkeys.releasing {
		return
	}
	if r := c.ring(p); r != nil && r.Settled() {
		c.event(&ProtectionLapsed{GUID: c.guidOf(p), Place: c.placeOf(p)})
		if !c.cfg.Weakness.KeepsLapsed {
			c.expose(c.guidOf(p), exposedKey)
		}
	}
}

// counterGrew takes that a port has counted more.
func (c *Core) counterGrew(p topo.PortID, i int, grew uint32) {
	if grew == 0 {
		return
	}
	v := &c.reports
	v.totals[countedKinds[i]].Counted += uint64(grew)
	k := v.credit[p]
	if k == nil {
		k = &counterCredit{}
		v.credit[p] = k
	}
	if c.now.Sub(k.at) > creditTime {
		k.n = counters{}
	}
	k.n[i], k.at = k.n[i]+grew, c.now
	v.stale = true
	c.tickReports()
	if countedKinds[i] == BadMKey && p != c.own() {
		c.guessed(keys.MKey, p, uint64(grew))
		c.readNotices(p)
	}
}

// judgeReports compares reports with the counters.
func (c *Core) judgeReports(p topo.PortID, k *reportCheck, now counters) {
	v := &c.reports
	var have counters
	if credit := v.credit[p]; credit != nil {
		if c.now.Sub(credit.at) <= creditTime {
			have = credit.n
		}
		delete(v.credit, p)
	}
	var verdict [3]Verdict
	lied := false
	for i := range have {
		switch {
		case k.reports[i] == 0 || now[i] >= math.MaxUint16:
		case have[i] >= k.reports[i]:
			verdict[i] = Confirmed
			v.totals[countedKinds[i]].Confirmed += uint64(k.others(i))
		case have[i] == 0 && c.isEnd(p):
			verdict[i] = Refuted
			v.totals[countedKinds[i]].Refuted += uint64(k.others(i))
			lied = true
		}
	}
	of := k.rowsOf(v)
	for j := range k.n {
		w := v.Row(k.rows[j])
		if w.ID != k.ids[j] || w.Report.others {
			continue
		}
		i, _ := counted(w.Report.kind)
		if of[i] == 1 && verdict[i] == Confirmed {
			w.Counted += uint64(have[i])
		}
		c.judgeRow(k.rows[j], verdict[i])
	}
	if k.pause = checkPause; lied {
		k.pause = min(2*max(checkPause, c.now.Sub(k.next)+k.pause), checkPauseMax)
	}
	*k = reportCheck{next: c.now.Add(k.pause), pause: k.pause}
}

// others counts the reports that are not about ourselves.
func (k *reportCheck) others(i int) uint32 {
	if i == 0 {
		return k.reports[0] - k.own
	}
	return k.reports[i]
}

// rowsOf counts the rows for each counter.
func (k *reportCheck) rowsOf(v *violations) (n [3]int) {
	for j := range k.n {
		if w := v.Row(k.rows[j]); w.ID == k.ids[j] {
			i, _ := counted(w.Report.kind)
			n[i]++
		}
	}
	return n
}

// judgeRow sets the verdict of a row. A confirmed row stays confirmed: a row stands for all equal reports, of which some
// were true.
func (c *Core) judgeRow(i int32, verdict Verdict) {
	v := &c.reports
	w := v.Row(i)
	if verdict == Claimed || w.More.verdict == Confirmed || w.More.verdict == verdict {
		return
	}
	if w.More.verdict = verdict; verdict == Confirmed {
		v.Prove(i)
	}
	v.stale = true
	if (verdict == Confirmed || v.mayTell(&v.Row(i).Report, c.now)) && v.MayTellNew(c.now) {
		c.tellReport(i, false)
		return
	}
	v.Row(i).Told = 0
	v.Later(i)
	c.tickReports()
}

// guessedKey is a key that an attacker may be trying to find.
type guessedKey struct {
	kind keys.Kind
	port topo.PortID
}

// guesses counts wrong keys that were shown to a device.
type guesses struct {
	since time.Time
	n     uint64
	told  uint64
}

const (
	// guessTime is the time within which wrong keys that a device is shown are counted.
	guessTime = 10 * time.Minute
	// guessLeast is how many of them are more than mistakes. Ours count too: this manager may have to try two keys.
	guessLeast = 10
)

// guessed records that a device was shown wrong keys.
func (c *Core) guessed(kind keys.Kind, p topo.PortID, n uint64) {
	name := guessedKey{kind, p}
	g := c.reports.guesses[name]
	if g == nil {
		g = &guesses{since: c.now}
		c.reports.guesses[name] = g
	}
	if c.now.Sub(g.since) > guessTime {
		*g = guesses{since: c.now}
	}
	g.n += n
	if step := stepBelow(g.n); g.n >= guessLeast && step > g.told {
		g.told = step
		c.event(&KeyGuessing{Kind: kind, GUID: c.guidOf(p), Place: c.placeOf(p), Count: g.n, Window: max(time.Second, c.now.Sub(g.since))})
	}
}

// stepBelow returns the greatest number of the sequence 1, 2, 5, 10, 20, 50, ... that is not above n.
func stepBelow(n uint64) uint64 {
	step := uint64(1)
	for step <= n/10 {
		step *= 10
	}
	switch {
	case n >= 5*step:
		return 5 * step
	case n >= 2*step:
		return 2 * step
	default:
		return min(n, step)
	}
}

// forgetReports forgets the pending reports of a port that goes.
func (c *Core) forgetReports(p topo.PortID) {
	v := &c.reports
	delete(v.pending, p)
	delete(v.credit, p)
	for _, kind := range keys.Kinds() {
		delete(v.guesses, guessedKey{kind, p})
	}
	c.guessing.Forget(p)
}

// hostCheck reports whether a trap of a host may be looked into now.
func (c *Core) hostCheck(id topo.NodeID) bool {
	if c.topo.Node(id).Type == ib.NodeSwitch {
		return true
	}
	rate := float64(c.cfg.Violations.ChecksPerSecond)
	return c.reports.checks.Take(c.now, rate, max(1, rate/4))
}
