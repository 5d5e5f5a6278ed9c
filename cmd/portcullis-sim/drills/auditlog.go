package drills

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"

	"portcullis/api/audit"
	"portcullis/api/audit/chain"
	"portcullis/api/audit/verifier"
	"portcullis/api/events"
	"portcullis/api/store"
	v1 "portcullis/api/v1"
	"portcullis/fabricsm/drill"
)

// alteredLog is T134: an attacker with the files of the store changes what the audit log says.
func alteredLog(s *drill.Scene) {
	for _, a := range []struct {
		what, cause string
		do          func(l *auditSite)
	}{
		{"puts another name into the entry of a release", chain.Altered, func(l *auditSite) { l.rename(false) }},
		{"puts another name into it, and computes all hashes again from there on", chain.RolledBack, func(l *auditSite) { l.rename(true) }},
		{"takes the entry out", chain.Cut, func(l *auditSite) { l.remove(l.release) }},
		{"takes out the entry and all behind it, and has the log end before", chain.RolledBack, (*auditSite).rollBack},
	} {
		l := newAuditSite(s)
		s.Tried("mallory released h4, and %s", a.what)
		l.mark()
		a.do(l)
		l.verify()
		found := l.verifier.State().Broken
		if s.Check(found != nil && found.Cause == a.cause, "after an intruder %s the log counts as whole: %v", a.what, found) {
			s.Stopped("the service finds at its next verification that the log is %s", found.Cause)
		} else {
			return
		}
		list, err := events.Book{Store: l.store}.List(l.ctx(), v1.EventQuery{Type: events.AuditBroken})
		s.Must(err)
		l.Counted(len(list.Items) == 1 && list.Items[0].Cause == a.cause, "event %s, %s", events.AuditBroken, a.cause)
		l.accept()
	}
}

// auditSite is a site whose audit log is verified.
type auditSite struct {
	*site
	verifier *verifier.Verifier
	release  uint64 // entry that the attacker wants gone
}

func newAuditSite(s *drill.Scene) *auditSite {
	v := newSite(s, options{credentials: []account{{name: "ann"}, {name: "mallory"}}})
	red := v.cluster("ann", "red", "h1", "h5", "h4")
	v.VictimOf("h1", "h5", red)
	v.must("mallory", "POST", "/v1/hosts/h4/release", "")
	v.sync()
	l := &auditSite{site: v, verifier: verifier.New(verifier.Options{Store: v.store, Service: "drill", Log: slog.New(slog.DiscardHandler), Now: v.clock})}
	for _, e := range l.entries() {
		if e.Actor == "mallory" && e.Action == "host.release" {
			l.release = e.Seq
		}
	}
	s.Check(l.release > 0, "the release of h4 is not in the audit log")
	l.verify()
	s.Check(l.verifier.State().Broken == nil, "the log is not whole at the beginning")
	return l
}

// verify is what the service does hourly.
func (l *auditSite) verify() {
	if !l.scene.Off(AuditChain) {
		l.scene.Check(l.verifier.Verify(l.ctx()), "the log is not verified: %v", l.verifier.State().Err)
	}
}

func (l *auditSite) entries() (out []chain.Entry) {
	list, _, err := audit.Entries().List(l.ctx(), l.store, "")
	l.scene.Must(err)
	for _, r := range list {
		out = append(out, r.Value)
	}
	return out
}

func entryKey(seq uint64) string { return fmt.Sprintf("%020d", seq) }

// write puts entries into the store, and an end of the log, behind the back of the service.
func (l *auditSite) write(head *chain.Head, list ...chain.Entry) {
	var items []store.Item
	put := func(key string, record any) {
		data, err := json.Marshal(map[string]any{"v": 1, "d": record})
		l.scene.Must(err)
		items = append(items, store.Item{Key: key, Value: data})
	}
	for i := range list {
		put(audit.Entries().Name()+entryKey(list[i].Seq), list[i])
	}
	if head != nil {
		put("audit/head/head", head)
	}
	l.scene.Must(l.store.Load(l.ctx(), items))
}

// rename makes another person the actor of the release. With rechain the hashes of the following entries fit the change.
func (l *auditSite) rename(rechain bool) {
	var head chain.Head
	var changed []chain.Entry
	for _, e := range l.entries() {
		if e.Seq == l.release {
			e.Actor = "ann"
		}
		if rechain && e.Seq >= l.release {
			var err error
			e.Prev = head.Hash
			e.Hash, err = e.Sum()
			l.scene.Must(err)
		}
		if e.Seq >= l.release {
			changed = append(changed, e)
		}
		head = head.After(&e)
	}
	l.write(&head, changed...)
}

// remove takes entries out.
func (l *auditSite) remove(list ...uint64) {
	_, err := l.store.Update(l.ctx(), func(tx *store.Tx) error {
		for _, seq := range list {
			audit.Entries().Delete(tx, entryKey(seq))
		}
		return nil
	})
	l.scene.Must(err)
}

// rollBack has the log end before the release.
func (l *auditSite) rollBack() {
	var head chain.Head
	for _, e := range l.entries() {
		if e.Seq < l.release {
			head = head.After(&e)
		} else {
			l.remove(e.Seq)
		}
	}
	l.write(&head)
}

// accept has an operator accept what was found.
func (l *auditSite) accept() {
	s := l.scene
	known, err := l.verifier.Breaks(l.ctx())
	s.Must(err)
	if !s.Check(len(known.Open) == 1, "%d breaks are listed", len(known.Open)) {
		return
	}
	_, err = l.verifier.AcceptBreak(l.ctx(), "ann", v1.AuditAccept{Seq: known.Open[0].Seq, Hash: known.Open[0].To.Hash, Reason: "the disk was in other hands"})
	s.Must(err)
	l.verify()
	known, err = l.verifier.Breaks(l.ctx())
	s.Must(err)
	s.Check(len(known.Open) == 0 && len(known.Accepted) == 1, "after it was accepted %d breaks are open, %d accepted", len(known.Open), len(known.Accepted))
	last := l.entries()
	found := false
	for i := range last {
		found = found || last[i].Action == chain.AcceptAction && strings.Contains(last[i].Detail, "other hands")
	}
	l.Counted(found, "audit log: ann, %s", chain.AcceptAction)
}
