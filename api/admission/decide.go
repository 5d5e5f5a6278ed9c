package admission

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"portcullis/api/fabric/records"
	"portcullis/api/hostrecord"
	"portcullis/api/inventory"
	"portcullis/api/lifecycle"
	"portcullis/api/review"
	v1 "portcullis/api/v1"
	"portcullis/fabricsm/ib"
)

// facts is everything a decision about one host rests on.
type facts struct {
	now         time.Time
	evidenceAge time.Duration
	withdraw    map[string]bool // lapses that cost a host which was admitted its memberships
	needsSeal   bool            // a host must be handed over
	keepsUnseen bool            // a host keeps its memberships while a port is not seen
	short       string          // why the store takes no new grants; empty: it does
	halted      string          // why the clock has nothing new granted; empty: it is believed
	cutOff      bool            // a host that is held loses what it had (WithdrawAdmitted)
	unseenFor   time.Duration   // after which a host that is not seen loses what it had; 0: never
	braking     braking         // which causes take nothing now
	review      *review.Mark    // the state was restored and is in review; nil: it is not
	approved    bool            // an operator has approved the host in this review
	host        inventory.Host
	rec         hostrecord.Record
	leaves      string                           // of a host in no cluster: the tenant for which it is recorded to count since its release
	uses        []ib.PKey                        // of shared clusters of which its ports are limited members
	ports       map[ib.GUID]records.Port         // what the fabric shows of the host's ports
	grants      map[records.Key]records.Standing // every grant of the host
	foreign     map[records.Key]string           // memberships it would get that another host still has, and which
}

// decision is where a host stands and which grants it shall have.
type decision struct {
	phase  v1.Phase
	life   lifecycle.Facts // from which the phase follows
	guards []v1.Guard
	want   []records.Key // sorted; empty: none

	takes map[string]string // classes of automatic causes that take standing grants, and the cause in a sentence
	keeps map[string]string // the same of those that would, and are stopped
}

// ordered is the number of guards, from the first, that operators, evidence and policy decide. If one of them is not
// met, all grants of the host are withdrawn. The guards after them depend on inventory and fabric: if one of
// those is not met, no grant is added, and the grants that stand stay.
const ordered = 3

// decide is the whole policy of admission. It is pure.
//
// Grants are added for all ports of a host together. A grant is withdrawn for one port, when the subnet manager
// reads the port's GUID at another switch port or on another node. A port that is not seen keeps its grants, unless
// the site says for how long. Another
// port at its switch port gets none of them: a grant names GUID and switch port, and the subnet manager reads the
// GUID at a link in Init before it sets the link to Active.
func decide(f *facts) decision {
	d := decision{guards: []v1.Guard{
		guard(v1.GuardAssigned, checkAssigned(f)),
		guard(v1.GuardAttested, checkAttested(f)),
		guard(v1.GuardSealed, checkSealed(f)),
		guard(v1.GuardCabled, checkCabled(f)),
		guard(v1.GuardSeen, checkSeen(f)),
		guard(v1.GuardCapacity, checkCapacity(f)),
	}}
	if f.review != nil {
		d.guards = append(d.guards, guard(v1.GuardReview, checkReview(f)))
	}
	if f.halted != "" {
		d.guards = append(d.guards, guard(v1.GuardClock, checkClock(f)))
	}
	d.automatic(f)
	switch {
	case d.takes[BrakeEvidence] != "":
	case d.met(len(d.guards)):
		d.want = f.memberships()
	case f.rec.Cluster != "" && (d.met(ordered) || d.keeps[BrakeEvidence] != "") && f.keepsUnseen:
		d.want = f.kept(d.keeps[BrakePlace] != "")
	}
	d.guards = append(d.guards, guard(v1.GuardProgrammed, checkProgrammed(f, d.want)))
	d.life = f.life(&d)
	d.phase = phaseOf(lifecycle.Of(d.life))
	return d
}

// automatic finds what causes would take from the host although no operator ordered it.
func (d *decision) automatic(f *facts) {
	d.takes, d.keeps = map[string]string{}, map[string]string{}
	stand := f.standing()
	if f.rec.Cluster == "" || len(stand) == 0 || !f.keepsUnseen {
		return
	}
	note := func(class, cause string) bool {
		if f.braking.keeps(class) {
			d.keeps[class] = cause
			return true
		}
		d.takes[class] = cause
		return false
	}
	for i := range d.guards[:ordered] {
		if g := &d.guards[i]; !g.Met {
			if note(BrakeEvidence, g.Detail) {
				g.Detail += "; it keeps its P_Keys: " + f.braking.why(BrakeEvidence)
			}
			break
		}
	}
	if cause := f.vanished(); cause != "" && d.takes[BrakeEvidence] == "" && d.keeps[BrakeEvidence] == "" {
		note(BrakeEvidence, cause)
	}
	i := slices.IndexFunc(stand, func(k records.Key) bool { return f.misplaced(k.GUID) })
	if i >= 0 && d.takes[BrakeEvidence] == "" {
		note(BrakePlace, checkSeen(f))
	}
}

// standing returns the grants that the host has of those that inventory and operators say it is to have, sorted.
func (f *facts) standing() []records.Key {
	if f.rec.Cluster == "" {
		return nil
	}
	return slices.DeleteFunc(f.memberships(), func(k records.Key) bool { return !f.stands(k) })
}

// vanished says that no port of the host was seen for longer than the site allows, "" if not.
func (f *facts) vanished() string {
	since, gone := f.unseenSince()
	if f.unseenFor == 0 || !gone || f.now.Sub(since) < f.unseenFor {
		return ""
	}
	return fmt.Sprintf("no port of the host was seen since %s, which is longer than %v (admission.withdraw_unseen)", since.Format(time.RFC3339), f.unseenFor)
}

// unseenSince returns when a port of the host was seen last, and reports whether none is seen now.
func (f *facts) unseenSince() (since time.Time, gone bool) {
	for _, p := range f.host.Ports() {
		seen := f.ports[p.GUID]
		if !seen.Place.IsZero() || seen.Time.IsZero() {
			return time.Time{}, false
		}
		if seen.Time.After(since) {
			since = seen.Time
		}
	}
	return since, !since.IsZero()
}

func guard(name, problem string) v1.Guard {
	return v1.Guard{Name: name, Met: problem == "", Detail: problem}
}

// met reports whether the first n guards are met.
func (d *decision) met(n int) bool {
	return !slices.ContainsFunc(d.guards[:n], func(g v1.Guard) bool { return !g.Met })
}

// memberships returns the grants of a host whose guards are met: each port, bound to the place inventory names for it.
func (f *facts) memberships() []records.Key {
	var out []records.Key
	for _, p := range f.host.Ports() {
		out = append(out, records.Key{PKey: f.rec.PKey, GUID: p.GUID, Place: p.Cable})
		for _, k := range f.uses {
			out = append(out, records.Key{PKey: k, GUID: p.GUID, Place: p.Cable})
		}
	}
	slices.SortFunc(out, compareKeys)
	return out
}

// kept returns the grants that stay while a guard that depends on inventory or fabric is not met; misplaced: those of
// ports that are seen elsewhere too.
func (f *facts) kept(misplaced bool) []records.Key {
	return slices.DeleteFunc(f.memberships(), func(k records.Key) bool { return !f.stands(k) || !misplaced && f.misplaced(k.GUID) })
}

// stands reports whether the host has a grant that is not withdrawn.
func (f *facts) stands(k records.Key) bool {
	s, ours := f.grants[k]
	return ours && !s.Grant.Withdrawn
}

// misplaced reports whether a port is seen at another place or on another node than inventory names.
func (f *facts) misplaced(g ib.GUID) bool {
	return slices.ContainsFunc(f.host.HCAs, func(a inventory.HCA) bool {
		return slices.ContainsFunc(a.Ports, func(p inventory.Port) bool {
			return p.GUID == g && !f.ports[g].Place.IsZero() && notSeen(p, a.NodeGUID, f.ports[g]) != ""
		})
	})
}

// outOfSight reports whether a standing grant of an admitted host is for a port that is not seen.
func (f *facts) outOfSight(k records.Key) bool {
	return f.rec.Admitted && f.ports[k.GUID].Place.IsZero() && f.stands(k)
}

// limited reports a membership of a partition that is not the host's own.
func (f *facts) limited(k records.Key) bool { return k.PKey.Base() != f.rec.PKey.Base() }

func compareKeys(a, b records.Key) int { return strings.Compare(a.String(), b.String()) }

// present reports whether any P_Key of the host may still be on a switch port.
func (f *facts) present() bool {
	for _, s := range f.grants {
		if !s.Absent() {
			return true
		}
	}
	return false
}

func checkAssigned(f *facts) string {
	if f.rec.Cluster == "" {
		return "not assigned to a cluster"
	}
	return ""
}

func checkAttested(f *facts) string {
	open := f.now.Before(f.rec.Window) && !f.rec.Admitted
	what := "attest again before the provisioning window closes"
	if !f.rec.Sealed.IsZero() {
		what = "reboot the host into its provisioning image and attest again before the provisioning window closes"
	}
	if !open {
		what = "the provisioning window is closed: assign the host again to open one"
		if f.rec.Granted {
			what = "the provisioning window is closed: release the host and assign it again"
		}
	}
	ev := f.rec.Evidence
	switch {
	case f.rec.Cluster == "":
		return "evidence is taken only from an assigned host"
	case f.held() && ev == nil:
		return f.rec.Conflicts[0].Explain(f.host.ID)
	case ev == nil && open:
		return "no evidence accepted yet: run the agent on the host before the provisioning window closes"
	case ev == nil:
		return "no evidence accepted; " + what
	case f.held():
		return f.rec.Conflicts[0].Explain(f.host.ID)
	case !f.rec.Admitted && f.now.Sub(ev.Time) > f.evidenceAge:
		return fmt.Sprintf("evidence is older than %v; %s", f.evidenceAge, what)
	case f.lapsed() != "":
		return f.lapsed() + "; " + what
	default:
		return ""
	}
}

// held reports a conflict that keeps the host from being a member. One that was
// admitted stays so, unless the site says otherwise.
func (f *facts) held() bool {
	return len(f.rec.Conflicts) > 0 && (!f.rec.Admitted || f.cutOff)
}

// lapsed says why the accepted evidence does not lead to a membership now: for a host
// that was admitted only causes count that the site wants memberships withdrawn for.
func (f *facts) lapsed() string {
	for _, l := range f.rec.Evidence.Lapses {
		if !f.rec.Admitted || f.withdraw[l.Cause] {
			return fmt.Sprintf("the accepted evidence no longer meets policy since %s: %s", l.Since.Format(time.RFC3339), l.Detail)
		}
	}
	return ""
}

// inPartition reports whether every port was read back with the P_Key of the host's cluster, and none was taken back since.
func (f *facts) inPartition() bool {
	return !slices.ContainsFunc(f.host.Ports(), func(p inventory.Port) bool {
		return !f.grants[records.Key{PKey: f.rec.PKey, GUID: p.GUID, Place: p.Cable}].Applied()
	})
}

// checkSealed requires that a host can attest nothing more in this boot: its next user cannot speak for it.
func checkSealed(f *facts) string {
	switch {
	case f.rec.Evidence == nil:
		return "a host is handed over after its evidence was accepted"
	case f.rec.Sealed.IsZero() && f.needsSeal:
		return "the host was not handed over yet: its agent does so once evidence was accepted; if it ended before, run it again"
	default:
		return ""
	}
}

func checkCabled(f *facts) string {
	var missing []string
	for _, p := range f.host.Ports() {
		if p.Cable.IsZero() {
			missing = append(missing, p.GUID.String())
		}
	}
	switch {
	case len(missing) > 0:
		return "inventory names no switch port for " + strings.Join(missing, ", ") + ": import the cabling"
	case len(f.host.HCAs) == 0:
		return "inventory declares no HCA"
	default:
		return ""
	}
}

func checkSeen(f *facts) string {
	var problems []string
	for _, a := range f.host.HCAs {
		for _, p := range a.Ports {
			problem := notSeen(p, a.NodeGUID, f.ports[p.GUID])
			if problem != "" && f.outOfSight(records.Key{PKey: f.rec.PKey, GUID: p.GUID, Place: p.Cable}) {
				problem += "; it keeps its P_Keys"
			}
			if problem != "" {
				problems = append(problems, problem)
			}
		}
	}
	return strings.Join(problems, "; ")
}

func notSeen(p inventory.Port, node ib.GUID, seen records.Port) string {
	switch {
	case seen.Place.IsZero() && seen.Shut != "":
		return fmt.Sprintf("port %v is not seen: %s", p.GUID, seen.Shut)
	case seen.Place.IsZero():
		return fmt.Sprintf("port %v is not seen: power on the host, or check the cable to %v", p.GUID, p.Cable)
	case seen.Place != p.Cable:
		return fmt.Sprintf("port %v is seen at %v, inventory says %v: correct the cable or the inventory", p.GUID, seen.Place, p.Cable)
	case seen.NodeGUID != node:
		return fmt.Sprintf("port %v is seen on node %v, inventory says %v: another adapter shows this GUID, or the inventory is wrong", p.GUID, seen.NodeGUID, node)
	default:
		return ""
	}
}

// checkCapacity requires room for the default partition, the cluster's P_Key and whatever has not been proven absent. A
// membership of another host, which had the port before, must be proven absent first: a grant has one owner.
func checkCapacity(f *facts) string {
	var problems []string
	for _, k := range slices.SortedFunc(maps.Keys(f.foreign), compareKeys) {
		problems = append(problems, fmt.Sprintf("P_Key %v of port %v at %v is still that of host %s: release that host and wait until the P_Key is proven absent",
			k.PKey, k.GUID, k.Place, f.foreign[k]))
	}
	for _, p := range f.host.Ports() {
		need := 2 + len(f.uses)
		for k := range f.grants {
			if k.GUID == p.GUID && f.limited(k) && !slices.Contains(f.uses, k.PKey) {
				need++
			}
		}
		seen := f.ports[p.GUID]
		if seen.SwitchCap > 0 && need > seen.SwitchCap {
			problems = append(problems, fmt.Sprintf("switch port %v can enforce %d P_Keys, %d needed", p.Cable, seen.SwitchCap, need))
		}
		if seen.HCACap > 0 && need > seen.HCACap {
			problems = append(problems, fmt.Sprintf("port %v can hold %d P_Keys, %d needed", p.GUID, seen.HCACap, need))
		}
	}
	if f.short != "" && f.lacks() {
		problems = append(problems, f.short)
	}
	return strings.Join(problems, "; ")
}

// checkClock withholds new grants from a host while the clock is not trusted. The host keeps the grants it has.
func checkClock(f *facts) string {
	if f.lacks() {
		return f.halted
	}
	return ""
}

// lacks reports whether the host would get a grant that it has not.
func (f *facts) lacks() bool {
	return f.rec.Cluster != "" && slices.ContainsFunc(f.memberships(), func(k records.Key) bool { return !f.stands(k) })
}

func checkProgrammed(f *facts, want []records.Key) string {
	if len(want) == 0 && !f.present() {
		return "nothing granted"
	}
	var waiting []string
	for _, k := range want {
		if s := f.grants[k]; !s.Applied() && !f.outOfSight(k) {
			waiting = append(waiting, notApplied(k, s))
		}
	}
	for _, k := range f.sortedGrants() {
		if s := f.grants[k]; !slices.Contains(want, k) && !s.Absent() {
			waiting = append(waiting, fmt.Sprintf("P_Key %v of port %v is not yet proven absent from %v", k.PKey, k.GUID, k.Place))
		}
	}
	if len(want) == 0 && len(waiting) == 0 {
		return "nothing granted"
	}
	return strings.Join(waiting, "; ")
}

func notApplied(k records.Key, s records.Standing) string {
	if s.Current(records.Refused) {
		return fmt.Sprintf("port %v at %v: %s", k.GUID, k.Place, s.Found.Reason)
	}
	return fmt.Sprintf("P_Key %v of port %v at %v is not yet read back", k.PKey, k.GUID, k.Place)
}

func (f *facts) sortedGrants() []records.Key {
	out := make([]records.Key, 0, len(f.grants))
	for k := range f.grants {
		out = append(out, k)
	}
	slices.SortFunc(out, compareKeys)
	return out
}
