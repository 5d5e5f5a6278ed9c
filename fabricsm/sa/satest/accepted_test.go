package satest_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	"portcullis/fabricsm/mad"
)

// accepted is a way in which we answer otherwise than OpenSM.
type accepted struct {
	told  string // how its row of docs/understand/sa.md begins
	where func(d *difference) bool
}

// differences are all that there are, the particular ones first.
var differences = []accepted{
	// All requests.
	{"| methods and attributes that there are not |", func(d *difference) bool {
		return d.ours.Status == mad.StatusUnsupportedMethodAttr && !supported(d.q.Attr, d.q.Method)
	}},
	{"| untrusted requests outside a short table |", func(d *difference) bool {
		return d.q.Key.IsZero() && d.ours.Silent() && !untrusted(d)
	}},
	{"| GetMulti that fails |", func(d *difference) bool {
		return d.q.Method == mad.MethodGetMulti && d.theirs.Status != 0 && d.ours.Status != 0 && d.theirs.Segments > 0 && d.ours.Segments == 0
	}},
	{"| ClassPortInfo |", func(d *difference) bool {
		return d.q.Attr == mad.AttrClassPortInfo && d.q.Method == mad.MethodGet && d.ours.Status == 0
	}},
	{"| TraceRecord |", func(d *difference) bool {
		return of(d, mad.AttrTraceRecord) && d.q.Method == methodGetTrace && d.theirs.Silent()
	}},
	{"| InformInfo, AttributeOffset |", func(d *difference) bool {
		return of(d, mad.AttrInformInfo) && d.what == "header" && d.theirs.Offset == 4 && d.ours.Offset == 5
	}},
	{"| subscribing to who is not there |", func(d *difference) bool {
		return of(d, mad.AttrInformInfo) && !d.q.Key.IsZero() && strings.HasSuffix(d.name, "subscribe to nobody")
	}},
	{"| InformInfoRecord, Enum |", func(d *difference) bool {
		return of(d, mad.AttrInformInfoRecord) && (d.what == "records" && len(d.fields) == 0 || d.theirs.Status == mad.StatusTooManyRecords)
	}},

	// Records of the fabric.
	{"| all | by GUID of node or port |", func(d *difference) bool { return d.what == "order" }},
	{"| P_KeyTable of switch ports towards switches", func(d *difference) bool {
		return of(d, mad.AttrPKeyTableRecord) && len(d.fields) == 0 && d.more == 0
	}},
	{"What a question asks for is compared as the standard has it.", func(d *difference) bool {
		return of(d, mad.AttrGUIDInfoRecord, mad.AttrPKeyTableRecord) || d.q.Mask == bits(5) && of(d, mad.AttrPortInfoRecord)
	}},
	{"| MulticastForwarding of switches in no tree |", func(d *difference) bool {
		return of(d, mad.AttrMulticastForwardingRecord) && len(d.theirs.Records()) == 0
	}},
	{"| SMInfoRecord, Priority |", func(d *difference) bool {
		return of(d, mad.AttrSMInfoRecord) && (inFields(d, "Priority") || d.q.Mask == bits(5))
	}},
	{"| SMInfoRecord, ActCount |", func(d *difference) bool { return of(d, mad.AttrSMInfoRecord) && d.q.Mask == bits(4) }},

	// Paths.
	{"| Get with an open end |", func(d *difference) bool {
		return d.q.Method == mad.MethodGet && of(d, mad.AttrPathRecord) && (d.what == "records" && d.q.Mask&bits(pathSGID, pathSLID) == 0 ||
			d.ours.Status == mad.StatusNoRecords && d.q.Mask&bits(pathSGID, pathSLID) == 0 && d.theirs.Status == 0 ||
			d.q.Key.IsZero() && (oneEnd(d.q.Mask) || d.q.Mask&ends == 0) && d.ours.Status == mad.StatusInsufficientComponents)
	}},
	{"| all paths at once |", func(d *difference) bool {
		return of(d, mad.AttrPathRecord) && d.ours.Status == mad.StatusDenied && d.q.Mask&ends == 0
	}},
	{"| GID of another subnet, no route to it |", func(d *difference) bool {
		return of(d, mad.AttrPathRecord) && d.ours.Status == mad.StatusInvalidGID && d.theirs.Status != d.ours.Status && len(d.theirs.Records()) == 0
	}},
	{"| P_Key asked for with the other membership |", func(d *difference) bool {
		return of(d, mad.AttrPathRecord) && inFields(d, "PKey") && d.q.Mask.Has(bits(pathPKey))
	}},
	{"| rates 800 Gb/s and above |", func(d *difference) bool {
		return of(d, mad.AttrPathRecord) && d.q.Mask.Has(bits(pathRate)) && d.theirs.Status == mad.StatusInvalidRequest &&
			slices.Contains([]byte{24, 25, 26}, d.q.Record[atRate]&0x3F)
	}},
	{"| paths of less than a rate |", func(d *difference) bool {
		return of(d, mad.AttrPathRecord) && inFields(d, "Rate") && d.q.Mask.Has(bits(pathRateSel)) && d.q.Record[atRate]&0xC0 == selectLess
	}},
	{"| multicast DGID, of a source that is no member |", func(d *difference) bool {
		return of(d, mad.AttrPathRecord) && strings.Contains(d.name, "broadcast group") && len(d.theirs.Records()) == 0 && d.ours.Status == 0
	}},
	{"| RawTraffic |", func(d *difference) bool {
		return of(d, mad.AttrPathRecord) && inFields(d, "RawTraffic") && d.q.Mask.Has(bits(pathRaw))
	}},
	{"| MultiPathRecord of more than 11 GIDs |", func(d *difference) bool {
		return of(d, mad.AttrMultiPathRecord) && d.what == "records" && len(d.fields) == 0 && d.missing == 0 && d.more > 0 && len(d.q.Record) > mad.SADataSize
	}},
	{"| all | an asker sees those that it shares a partition with", func(d *difference) bool {
		if d.q.Key.IsZero() || !of(d, mad.AttrPathRecord, mad.AttrMCMemberRecord, mad.AttrServiceRecord, mad.AttrInformInfo) {
			return false
		}
		others := [...]string{"Rate", "PacketLifeTime", "Scope", "ServicePKey"} // see below, about registrations
		none := len(d.theirs.Records()) == 0 && (d.theirs.Status == mad.StatusOK || d.theirs.Status == mad.StatusNoRecords)
		refused := of(d, mad.AttrInformInfo) && d.theirs.Status == mad.StatusInvalidRequest
		return d.ours.Status == mad.StatusOK && (none || refused || d.what == "records" && d.missing == 0 && d.more > 0 && within(d.fields, others[:]))
	}},
	{"| path of a LID that is not the GID's |", func(d *difference) bool {
		return of(d, mad.AttrPathRecord) && d.q.Key.IsZero() && d.theirs.Status == mad.StatusInvalidRequest && len(d.ours.Records()) == 0
	}},

	// Registrations of hosts.
	{"| joining, or asking for, a group of another partition |", func(d *difference) bool {
		return of(d, mad.AttrMCMemberRecord) && d.q.Method == mad.MethodSet && d.theirs.Status == mad.StatusInvalidRequest && d.ours.Status == mad.StatusInsufficientComponents
	}},
	{"| deleting a service in a partition that is not one's own |", func(d *difference) bool {
		return of(d, mad.AttrServiceRecord) && d.q.Method == methodDelete && d.theirs.Status == mad.StatusInvalidRequest && d.ours.Status == mad.StatusNoRecords
	}},
	{"| lifetime, scope and rate of a new group |", func(d *difference) bool {
		return of(d, mad.AttrMCMemberRecord) && d.q.Method != methodDelete && (inFields(d, "PacketLifeTime", "Scope", "Rate") || d.q.Mask == bits(mcScope))
	}},
	{"| answers to those who leave a group |", func(d *difference) bool {
		return of(d, mad.AttrMCMemberRecord) && d.q.Method == methodDelete && inFields(d, "QKey", "MLID", "MTU", "PKey", "Rate", "PacketLifeTime", "Scope")
	}},
	{"| leaving one of several join states |", func(d *difference) bool {
		return of(d, mad.AttrMCMemberRecord) && strings.Contains(d.name, "leave the broadcast group") && (inFields(d, "QKey", "MLID", "MTU", "PKey", "Rate", "PacketLifeTime", "JoinState") || d.theirs.Status == mad.StatusInvalidRequest)
	}},
	{"| leaving a group for another |", func(d *difference) bool {
		return of(d, mad.AttrMCMemberRecord) && !d.q.Key.IsZero() && strings.Contains(d.name, "leave for another")
	}},
	{"| services without a P_Key |", func(d *difference) bool {
		return of(d, mad.AttrServiceRecord) && inFields(d, "ServicePKey", "ServiceLease") && !d.q.Mask.Has(bits(svcPKey))
	}},
	{"| services for ever |", func(d *difference) bool {
		return of(d, mad.AttrServiceRecord) && d.q.Key.IsZero() && inFields(d, "ServiceLease")
	}},
	{"| ServiceRecord with another ServiceKey |", func(d *difference) bool {
		// A record that was not deleted is found beside another.
		return of(d, mad.AttrServiceRecord) && (d.q.Method == methodDelete && d.ours.Status == mad.StatusDenied ||
			d.ours.Status == mad.StatusTooManyRecords && strings.Contains(d.name, "by name, one"))
	}},
	{"| services without what they need |", func(d *difference) bool {
		return d.q.Attr == mad.AttrServiceRecord && d.q.Method == mad.MethodSet && d.theirs.Status == mad.StatusInvalidRequest && d.ours.Status == mad.StatusInsufficientComponents
	}},
}

// ends are the components that name an end of a path.
var ends = bits(pathSGID, pathDGID, pathSLID, pathDLID)

// oneEnd reports whether a query names only one end of a path.
func oneEnd(m mad.ComponentMask) bool {
	return (m&bits(pathSGID, pathSLID) == 0) != (m&bits(pathDGID, pathDLID) == 0)
}

// of reports whether a difference is one of queries of an attribute, or of answers to
// them.
func of(d *difference, attrs ...mad.AttrID) bool { return slices.Contains(attrs, d.q.Attr) }

// inFields reports whether records differ, and in nothing else.
func inFields(d *difference, fields ...string) bool {
	if d.what != "records" || d.missing > 0 || d.more > 0 || len(d.fields) == 0 {
		return false
	}
	return within(d.fields, fields)
}

// within reports whether all words are among some.
func within(words, some []string) bool {
	return !slices.ContainsFunc(words, func(w string) bool { return !slices.Contains(some, w) })
}

// supported reports whether an attribute has a method (IBTA volume 1, table 192).
func supported(attr mad.AttrID, m mad.Method) bool {
	switch attr {
	case mad.AttrClassPortInfo:
		return m == mad.MethodGet
	case mad.AttrInformInfo:
		return m == mad.MethodSet
	case mad.AttrMultiPathRecord:
		return m == mad.MethodGetMulti
	case mad.AttrGUIDInfoRecord, mad.AttrServiceRecord, mad.AttrMCMemberRecord:
		return m == mad.MethodGet || m == mad.MethodGetTable || m == mad.MethodSet || m == methodDelete
	case mad.AttrRandomForwardingRecord:
		return false
	}
	for _, e := range tables {
		if e.attr == attr {
			return m == mad.MethodGet || m == mad.MethodGetTable
		}
	}
	return false
}

// untrusted reports whether a request needs no SA_Key under the enhanced trust model, and acts for no other port.
func untrusted(d *difference) bool {
	m := d.q.Method
	change := m == mad.MethodSet || m == methodDelete
	switch d.q.Attr {
	case mad.AttrMCMemberRecord:
		return m == mad.MethodGet || change && !strings.Contains(d.name, "for nobody") && !strings.Contains(d.name, "for another") && !strings.Contains(d.name, "for a foreign")
	case mad.AttrServiceRecord:
		return m == mad.MethodGet || change && !strings.Contains(d.name, "for nobody")
	case mad.AttrPathRecord:
		return m == mad.MethodGet || m == mad.MethodGetTable && !oneEnd(d.q.Mask) && d.q.Mask&ends != 0
	case mad.AttrClassPortInfo:
		return m == mad.MethodGet
	case mad.AttrInformInfo:
		return m == mad.MethodSet && !strings.Contains(d.name, "257")
	default:
		return false
	}
}

func acceptedAs(d *difference) string {
	for i := range differences {
		if differences[i].where(d) {
			return differences[i].told
		}
	}
	return ""
}

// TestDifferencesAreTold holds the reasons against the page for operators.
func TestDifferencesAreTold(t *testing.T) {
	page, err := os.ReadFile("../../../docs/understand/sa.md")
	if err != nil {
		t.Fatal(err)
	}
	var told []string
	for _, d := range differences {
		told = append(told, d.told)
	}
	for _, d := range said {
		told = append(told, d.told)
	}
	for _, line := range told {
		if !strings.Contains(string(page), "\n"+line) {
			t.Errorf("docs/understand/sa.md has no line that begins with %q", line)
		}
	}
}
