package reader_test

import (
	"encoding/binary"
	"slices"
	"testing"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/proof"
	"portcullis/fabricsm/proof/reader"
)

// issue has alias GUIDs read: those of blue are 0xB1 and so on, and others were issued to none.
func (b *bed) issue() {
	b.options.Alias = func(guid ib.GUID, holder proof.Owner) proof.Owner {
		if guid>>4 == 0xB {
			return blue
		}
		return holder
	}
}

// alias writes an alias GUID at an index of a host's port.
func (b *bed) alias(host string, index int, guid ib.GUID) {
	b.t.Helper()
	b.write(host, mad.AttrGUIDInfo, uint32(index/mad.GUIDsPerBlock), func(data []byte) {
		binary.BigEndian.PutUint64(data[index%mad.GUIDsPerBlock*8:], uint64(guid))
	})
}

func TestAliases(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.issue()
	clean := b.read()
	if d := b.device(clean, "h1"); len(d.Ports[1].Aliases) > 0 || b.verdict(clean)[proof.Both] != proof.Isolated {
		t.Errorf("without aliases: %v", d.Ports[1].Aliases)
	}
	b.alias("h1", 3, 0xA1)
	b.alias("h1", 31, 0xB1)
	b.alias("h2", 1, 0xB2)
	found := b.read()
	want := []proof.Alias{{GUID: 0xA1, Owner: red}, {GUID: 0xB1, Owner: blue}}
	if got := b.device(found, "h1").Ports[1].Aliases; !slices.Equal(got, want) {
		t.Errorf("h1 holds %v, want %v", got, want)
	}
	if got := b.device(found, "h2").Ports[1].Aliases; !slices.Equal(got, []proof.Alias{{GUID: 0xB2, Owner: blue}}) {
		t.Errorf("h2 holds %v", got)
	}
	if v := b.verdict(found); v[proof.Both] != proof.Leaks {
		t.Errorf("red has a GUID of blue: %v", v)
	}
	b.options.Alias = nil
	if got := b.device(b.read(), "h1").Ports[1].Aliases; len(got) > 0 {
		t.Errorf("aliases that are not to be read: %v", got)
	}
}

// TestAliasesThatAreNotShown: a device that does not answer is unknown, and one that has no such table has no aliases.
func TestAliasesThatAreNotShown(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.issue()
	b.alias("h1", 1, 0xB1)
	b.change = func(_ int, m *mad.MAD) bool { return !b.to(m, "h1", mad.AttrGUIDInfo) }
	found := b.read()
	if len(found.Unknown) != 1 || found.Unknown[0].What != "alias GUIDs" || found.Unknown[0].Cause != reader.Silent || len(b.device(found, "h1").Ports[1].Aliases) > 0 {
		t.Errorf("unknown: %v", found.Unknown)
	}
	b.change = func(_ int, m *mad.MAD) bool {
		if b.to(m, "h1", mad.AttrGUIDInfo) {
			m.SetStatus(mad.StatusUnsupportedMethodAttr)
		}
		return true
	}
	if found = b.read(); len(found.Unknown) > 0 || len(b.device(found, "h1").Ports[1].Aliases) > 0 {
		t.Errorf("unknown: %v", found.Unknown)
	}
	b.change = func(round int, m *mad.MAD) bool {
		if b.to(m, "h1", mad.AttrGUIDInfo) && round == 2 {
			m.Data()[63] ^= 1
		}
		return true
	}
	if found = b.read(); len(found.Unknown) != 1 || found.Unknown[0].Cause != reader.Changed {
		t.Errorf("unknown: %v", found.Unknown)
	}
}

// TestAliasesAreTakenOver builds on readings with aliases and without.
func TestAliasesAreTakenOver(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.issue()
	b.alias("h1", 1, 0xB1)
	was := b.read()
	b.same(b.after(was), b.read())
	b.alias("h1", 2, 0xB2)
	b.alias("h3", 2, 0xB3)
	port := func(host string) reader.Value {
		return reader.Value{Node: b.guid(host), Port: 1, Attr: mad.AttrGUIDInfo}
	}
	now := b.after(was, port("h1"))
	if got := len(b.device(now, "h1").Ports[1].Aliases); got != 2 || len(b.device(now, "h3").Ports[1].Aliases) > 0 {
		t.Errorf("h1 holds %d aliases, and h3, which was not touched, %v", got, b.device(now, "h3").Ports[1].Aliases)
	}
	b.same(b.after(now, port("h3")), b.read())
	b.change = func(_ int, m *mad.MAD) bool { return !b.to(m, "h1", mad.AttrGUIDInfo) }
	was = b.read()
	b.change = nil
	b.same(b.after(was), b.read())
}
