package declared

import (
	"fmt"

	"portcullis/fabricsm/topospec"
	"portcullis/fabricsm/topospec/verify"
)

// words names a link end by its place in the world.
func (l *Law) words(e topospec.End) string {
	if e.IsZero() {
		return "nothing"
	}
	spec := l.judge.Spec()
	if spec.DeviceByGUID(e.GUID) == topospec.None {
		return fmt.Sprintf("an unknown device %v", e)
	}
	return fmt.Sprintf("%s (%v)", spec.Where(e), e)
}

// row describes a port as a transition leaves it.
func (l *Law) row(ch *verify.Change) TopologyPort {
	r := &ch.Ruling
	at := topospec.EndAt(ch.At)
	row := TopologyPort{
		Place: ch.At, State: ch.To, Verdict: r.Verdict, Action: r.Action, Would: r.Would, Fields: r.Fields,
		Seen: topospec.End{GUID: ch.Seen.GUID, Port: ch.Seen.Port}, Type: ch.Seen.Type, Expected: r.Expected, Belongs: r.Belongs,
		Pair: r.Pair, Page: r.Page, Where: l.judge.Spec().Where(at),
	}
	spec := l.judge.Spec()
	if link, peer := spec.LinkAt(spec.SlotOf(at)); link != nil {
		row.Cable = link.Cable.Serial
		if row.Expected.IsZero() {
			row.Expected = peer
		}
	}
	row.Text = l.sentence(&row, ch)
	return row
}

// sentence describes the fault at a port for people.
func (l *Law) sentence(t *TopologyPort, ch *verify.Change) string {
	where := fmt.Sprintf("%s (%v)", t.Where, t.Place)
	if t.Cable != "" {
		where += ", cable " + t.Cable
	}
	switch {
	case t.State == verify.StateReleased && ch.By != "":
		return fmt.Sprintf("%s: released by %s: %s", where, ch.By, ch.Why)
	case t.State == verify.StateReleased:
		return fmt.Sprintf("%s: released, the declared topology has it so now", where)
	case t.State == verify.StateVerified:
		return fmt.Sprintf("%s: %s is there as declared", where, l.words(t.Seen))
	case t.Verdict == verify.Missing:
		return fmt.Sprintf("%s: missing: there is no link to %s", where, l.words(t.Expected))
	}
	text := fmt.Sprintf("%s: %v: %s is seen, expected is %s", where, t.Verdict, l.words(t.Seen), l.words(t.Expected))
	if !t.Belongs.IsZero() {
		text = fmt.Sprintf("%s: %v: %s is seen, which belongs at %s; expected is %s", where, t.Verdict, l.words(t.Seen), l.words(t.Belongs), l.words(t.Expected))
	}
	if t.Verdict == verify.Spoof && t.Fields&verify.FieldPortGUID != 0 {
		text = fmt.Sprintf("%s: %v: %s is seen, as declared, but shows the port GUID %v of what belongs at %s", where, t.Verdict, l.words(t.Seen), ch.Seen.PortGUID, l.words(t.Belongs))
	}
	if !t.Pair.IsZero() {
		text += fmt.Sprintf("; it is exchanged with what is at %s", l.words(topospec.EndAt(t.Pair)))
	}
	return text + "; " + l.consequence(t)
}

// consequence says what follows.
func (l *Law) consequence(t *TopologyPort) string {
	switch {
	case t.Page:
		return "it is not switched off, since it is the way of the subnet manager or the only one to a switch: look at once"
	case t.State == verify.StateDisabled:
		return fmt.Sprintf("the port is switched off; when it is as declared: portcullis fabric health release %v", t.Place)
	case t.State == verify.StateHeld:
		return "it is held: no key, no LID, no route, no partition"
	default:
		return fmt.Sprintf("nothing is done, the mode is %v", l.judge.Mode())
	}
}
