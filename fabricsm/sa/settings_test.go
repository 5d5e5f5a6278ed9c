package sa_test

import (
	"strings"
	"testing"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sa"
	"portcullis/fabricsm/sa/group"
)

// TestSettingsChange: the trust model and the groups of the configuration change while
// hosts are answered, and what makes no sense changes nothing.
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
