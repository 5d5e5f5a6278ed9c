package sa_test

import (
	"strings"
	"testing"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sa"
	"portcullis/fabricsm/sa/alias"
	"portcullis/fabricsm/sa/group"
	"portcullis/fabricsm/sa/limiter"
	"portcullis/fabricsm/sm"
)

// TestSettingsChange: the trust model and the groups of the configuration change while the agent serves hosts, and invalid
// settings change nothing.
func TestSettingsChange(t *testing.T) {
	r := newRig(t, nil)
	cfg := sa.DefaultConfig()
	s := cfg.Settings()
	if got := r.ask("h1", ib.SAKey{}, mad.MethodGetTable, mad.AttrNodeRecord, 0, nil); len(got) != 0 {
		t.Fatalf("an untrusted table is answered with %d packets", len(got))
	}
	s.Trust.Model = false
	broadcast := group.IPoIB(ib.DefaultPKeyFull, 0)
	s.Fixed = []group.Fixed{broadcast}
	if err := r.Configure(&s); err != nil {
		t.Fatal(err)
	}
	r.settle()
	if got := r.ask("h1", ib.SAKey{}, mad.MethodGetTable, mad.AttrNodeRecord, 0, nil); len(got) == 0 {
		t.Error("without the trust model an untrusted table is not answered")
	}
	there := func() mad.Status {
		return r.one("h1", ib.SAKey{}, mad.MethodGet, mad.AttrMCMemberRecord, mad.MCMemberComponentMGID, func(b []byte) { copy(b, broadcast.MGID[:]) }).Status()
	}
	if s := there(); s != mad.StatusOK {
		t.Errorf("the broadcast group of the configuration: %v", s)
	}
	bad := s
	bad.Trust.Model, bad.Trust.Threshold, bad.Fixed = true, -1, nil
	if err := r.Configure(&bad); err == nil || !strings.Contains(err.Error(), "sa_rate_threshold") {
		t.Errorf("a threshold of -1: %v", err)
	}
	if s := there(); s != mad.StatusOK {
		t.Errorf("after a refused change the group is gone: %v", s)
	}
	s.Fixed, s.Trust.Model = nil, true
	if err := r.Configure(&s); err != nil {
		t.Fatal(err)
	}
	r.settle()
	if s := there(); s != mad.StatusNoRecords {
		t.Errorf("the broadcast group that is no longer configured: %v", s)
	}
	if got := r.ask("h1", ib.SAKey{}, mad.MethodGetTable, mad.AttrNodeRecord, 0, nil); len(got) != 0 {
		t.Errorf("an untrusted table is answered again with %d packets", len(got))
	}
}

// rename asks for alias GUIDs of a host's port, in entries 1 and 2.
func (r *rig) rename(host string, method mad.Method, guids ...ib.GUID) (rec mad.GUIDInfoRecord) {
	r.t.Helper()
	lid := r.Fabric.PortInfo(host, 1).LID
	m := r.one(host, saKey, method, mad.AttrGUIDInfoRecord, aliasMask(len(guids)), func(b []byte) {
		ask := mad.GUIDInfoRecord{LID: lid}
		copy(ask.GUID[1:], guids)
		_ = mad.Encode(b, &ask)
	})
	if err := mad.Decode(m.SAData(), &rec); err != nil || m.Status() != mad.StatusOK {
		r.t.Fatalf("%v of aliases: %v, %v", method, m.Status(), err)
	}
	return rec
}

func aliasMask(n int) mad.ComponentMask {
	mask := mad.GUIDInfoComponentLID | mad.GUIDInfoComponentBlockNum
	for i := range n {
		mask |= mad.GUIDInfoComponentGUID(i + 1)
	}
	return mask
}

// held returns the aliases in the table of a host's port.
func (r *rig) held(host string) []ib.GUID {
	r.settle()
	return r.Fabric.GUIDs(host, 1)[1:3]
}

// TestAliasesFollowTheInventory: a port gets only aliases that the inventory allows, and keeps them over a restart. It
// loses an alias that the inventory no longer allows, also if the inventory changed while the agent did not serve.
func TestAliasesFollowTheInventory(t *testing.T) {
	r := newRig(t, func(c *sa.Config) { c.Aliases.Inventory = alias.List{1: {2}} })
	allow := func(l alias.Inventory) {
		t.Helper()
		s := r.SA.Settings()
		s.Aliases = l
		if err := r.Configure(&s); err != nil {
			t.Fatal(err)
		}
		r.settle()
	}
	h1, h2 := r.GUID("h1", 1), r.GUID("h2", 1)
	if got := r.rename("h1", mad.MethodSet, 0xA1, 0); got.GUID[1] != 0 || got.GUID[2] != 0 {
		t.Errorf("given before the inventory allows any: %v", got.GUID)
	}
	allow(alias.List{h1: {0xA1, 0xA2}, h2: {0xB1}})
	if got := r.rename("h1", mad.MethodSet, 0xB1, 0); got.GUID[1] != 0 || got.GUID[2] != 0xA1 {
		t.Errorf("another port's alias is asked for, and one is to be chosen: %v", got.GUID)
	}
	if got := r.held("h1"); got[0] != 0 || got[1] != 0xA1 {
		t.Errorf("the port holds %v", got)
	}
	r.SA.Aliases.Inventory = alias.List{h1: {0xA1}}
	r.Start()
	r.Want(sm.Intent{Revision: 9})
	if got := r.held("h1"); got[1] != 0xA1 {
		t.Errorf("after a restart the port holds %v", got)
	}
	allow(alias.List{h1: {0xA2}})
	if got := r.held("h1"); got[1] != 0 {
		t.Errorf("what the inventory does not allow any longer is held: %v", got)
	}
	if got := r.rename("h1", mad.MethodSet, 0xA2); got.GUID[1] != 0xA2 {
		t.Errorf("given: %v", got.GUID)
	}
	r.SA.Aliases.Inventory = nil
	r.Start()
	r.Want(sm.Intent{Revision: 10})
	if got := r.held("h1"); got[0] != 0 {
		t.Errorf("after a restart without an inventory the port holds %v", got)
	}
	allow(alias.List{h1: {0xA2}})
	r.rename("h1", mad.MethodSet, 0xA2)
	if got := r.rename("h1", mad.MethodDelete, 0); got.GUID[1] != 0 {
		t.Errorf("after Delete: %v", got.GUID)
	}
	if got := r.held("h1"); got[0] != 0 {
		t.Errorf("after Delete the port holds %v", got)
	}
}

// TestLimitsChange: new limits are in force for all classes at once, and counters stay.
func TestLimitsChange(t *testing.T) {
	r := newRig(t, nil)
	s := r.SA.Settings()
	s.Limiter.Administration.Node = limiter.Allowance{Rate: 1, Burst: 3}
	s.Limiter.Other.Node = limiter.Allowance{Rate: 1, Burst: 2}
	if err := r.Configure(&s); err != nil {
		t.Fatal(err)
	}
	r.settle()
	answers := 0
	for range 10 {
		answers += len(r.ask("h1", ib.SAKey{}, mad.MethodGet, mad.AttrClassPortInfo, 0, nil))
	}
	if answers != 3 && answers != 4 { // half a second goes by for each
		t.Errorf("%d questions of 10 in a second are answered", answers)
	}
	f, now, passed := r.Administration().Front(), r.now(), 0
	for range 10 {
		if f.Admit(now, packetOf(mad.ClassPerf, mad.MethodGet, r.lid("h1"))) {
			passed++
		}
	}
	if passed != 2 || f.Dropped() != 8 {
		t.Errorf("%d of 10 packets of another class pass, %d are counted as dropped", passed, f.Dropped())
	}
	was := r.Administration().Stats().Limited
	s.Limiter = limiter.DefaultConfig()
	if err := r.Configure(&s); err != nil {
		t.Fatal(err)
	}
	r.settle()
	for i := range 10 {
		if got := r.ask("h1", ib.SAKey{}, mad.MethodGet, mad.AttrClassPortInfo, 0, nil); len(got) != 1 {
			t.Errorf("question %d is not answered", i)
		}
	}
	if n := r.Administration().Stats().Limited; n != was || f.Dropped() != 8 {
		t.Errorf("%d dropped, then %d; of other classes %d", was, n, f.Dropped())
	}
	bad := s
	bad.Limiter.Changes = limiter.Allowance{Rate: -1}
	if err := r.Configure(&bad); err == nil || !strings.Contains(err.Error(), "changes of a node") {
		t.Errorf("a rate of -1: %v", err)
	}
}
