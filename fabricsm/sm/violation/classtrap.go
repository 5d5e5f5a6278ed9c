package violation

import (
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/keys"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/topo"
)

// ClassTrap is a trap of a class with keys: a GMP by which a device reports that it was shown a wrong key.
type ClassTrap struct {
	MAD   *mad.MAD
	Class mad.KeyClass
	LID   ib.LID      // source
	From  topo.PortID // end port that has this LID, None if none has
	// Managed is set where keys of the class are managed: Log.JudgeClass follows. Elsewhere a trap that shows a key is
	// forged, as the device has none of ours.
	Managed bool
}

// NoteClassTrap counts the report of such a trap. It returns false if the MAD is none, and reports whether it is forged.
func (l *Log) NoteClassTrap(t *ClassTrap) (forged, ok bool) {
	m, p := t.MAD, t.From
	what, lid, ok := l.classReport(t.Class, m, p)
	if !ok {
		return false, false
	}
	if p != topo.None && !t.Managed && !m.MKey().IsZero() {
		what = report{kind: ForgedTrap, method: mad.MethodTrap}
		l.accuse(&what, p, ByLID)
	}
	i := l.note(what, lid, m.TID())
	l.NoteStorm(t.LID, p)
	if p != topo.None && t.Managed {
		if len(l.classes) >= l.opt.Rows { // devices that are gone
			clear(l.classes)
		}
		l.classes[classReporter{what.kind, what.reporter}] = rowName{i, l.Row(i).ID}
	}
	return what.kind == ForgedTrap, true
}

// ClassJudgment is how many of the violations that its last trap reported a device has counted.
type ClassJudgment struct {
	Kind    keys.Kind // CCKey, VSKey or N2NKey
	GUID    ib.GUID   // port GUID of the device
	Counted uint32    // 0: nothing, so another device sent the trap
	Earlier bool      // it had counted it when it was asked before: the trap is late
	Unsure  bool      // traps named different sources, and nothing proves that the last one is right
}

// classReporter names the rows of a kind that a device reports.
type classReporter struct {
	kind Kind
	guid ib.GUID
}

// rowName names a row, also when its slot was reused for another one.
type rowName struct {
	at int32
	id uint64
}

// JudgeClass sets the verdict of the last row that a device reported about a class. The port is that of the device, or None.
func (l *Log) JudgeClass(p topo.PortID, in ClassJudgment) {
	if p != topo.None && in.Counted > 0 {
		l.guessed(in.Kind, p, uint64(in.Counted))
	}
	kinds := map[keys.Kind][]Kind{keys.CCKey: {BadCCKey}, keys.VSKey: {BadVSKey}, keys.N2NKey: {BadN2NKey, N2NMisconfigured}}[in.Kind]
	for n, kind := range kinds {
		if n == 0 {
			l.totals[kind].Counted += uint64(in.Counted)
			l.stale = true
		}
		who := classReporter{kind, in.GUID}
		name, ok := l.classes[who]
		if !ok {
			continue
		}
		delete(l.classes, who)
		w := l.Row(name.at)
		if w.ID != name.id || w.Report.others {
			continue
		}
		if in.Counted == 0 && !in.Earlier {
			l.totals[kind].Refuted++
			l.judgeRow(name.at, Refuted)
			continue
		}
		if in.Unsure {
			continue
		}
		l.totals[kind].Confirmed++
		w.Counted += uint64(in.Counted)
		l.judgeRow(name.at, Confirmed)
	}
	l.tick()
}

// classReport reads the notice of a class with keys from end port p, None if it is unknown.
func (l *Log) classReport(class mad.KeyClass, m *mad.MAD, p topo.PortID) (what report, source ib.LID, ok bool) {
	what.class = class.Class
	data := class.Attribute(m)
	var issuer ib.LID
	if class.Class == mad.ClassCongestionControl {
		var n mad.NoticeKeyCC
		if mad.Decode(data, &n) != nil || n.TrapNumber != mad.TrapKeyViolation {
			return what, 0, false
		}
		what.kind, what.method, what.attr, source, issuer = BadCCKey, n.Method, n.AttributeID, n.SLID, n.IssuerLID
	} else {
		var n mad.NoticeKeyVS
		if mad.Decode(data, &n) != nil {
			return what, 0, false
		}
		what.kind, what.method, what.attr, source, issuer = BadVSKey, n.Method, n.AttributeID, n.SLID, n.IssuerLID
		if class.Class == mad.ClassVendorN2N {
			what.kind = BadN2NKey
			if mad.TrapNum(n.TrapNumberInPayload) == mad.TrapKeyMisconfiguration {
				what.kind = N2NMisconfigured
			}
		}
	}
	if p != topo.None && issuer != 0 && l.fabric.ByLID(issuer) != p {
		what = report{kind: ForgedTrap, method: mad.MethodTrap}
		l.accuse(&what, p, ByLID)
		return what, source, true
	}
	l.accuseLID(&what, source)
	if p != topo.None {
		l.reported(&what, p, topo.None)
	}
	return what, source, true
}
