package forwarding

import (
	"slices"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sm/blocks"
)

const perBlock = mad.LIDsPerBlock

// table is the known state of the linear forwarding table of a switch. Blocks that are as wanted are not kept twice: the
// wanted row, which is never changed, stands for them.
type table struct {
	row     []ib.PortNum           // wanted when blocks were compared last
	same    blocks.Set             // blocks that are known to be as in row
	other   map[int32][]ib.PortNum // blocks that are known to be otherwise
	read    blocks.Set             // to be read
	write   blocks.Set             // to be written
	held    blocks.Set             // of which are to wait for others, see rollout
	rolling blocks.Set             // of which others wait for these
	busy    blocks.Set             // asked for
	set     map[int32][]ib.PortNum // what is being written, of rows that may no longer be wanted
	twice   blocks.Set             // written twice, still different
	refused blocks.Set             // left alone until the pause after a refusal has passed
	pending bool                   // counted in Tables.pending
	unread  bool                   // counted in Tables.unread
}

func (l *table) forget() {
	*l = table{busy: l.busy, set: l.set, rolling: l.rolling, pending: l.pending, unread: l.unread}
}

// ended takes that a block is no longer asked for. It returns what was being written.
func (l *table) ended(b int) (set []ib.PortNum) {
	l.busy.Remove(b)
	set = l.set[int32(b)]
	delete(l.set, int32(b))
	return set
}

// done reports whether no request to the switch is left to be sent.
func (l *table) done() bool { return !l.pending && l.write.IsEmpty() && l.read.IsEmpty() }

// have returns the content of a block, nil if it is not known.
func (l *table) have(b int) []ib.PortNum {
	if l.same.Has(b) {
		return blockOf(l.row, b)
	}
	return l.other[int32(b)]
}

// all returns the whole table as far as it is known, nil if nothing of it is.
func (l *table) all() []ib.PortNum {
	var row []ib.PortNum
	for b := max(l.same.Last(), l.lastOther()); b >= 0; b-- {
		content := l.have(b)
		if content == nil {
			continue
		}
		if row == nil {
			row = make([]ib.PortNum, (b+1)*perBlock)
			for i := range row {
				row[i] = ib.NoPort
			}
		}
		copy(row[b*perBlock:], content)
	}
	return row
}

func (l *table) lastOther() int {
	last := int32(-1)
	for b := range l.other {
		last = max(last, b)
	}
	return int(last)
}

// found records the content of a block. Blocks that are not as in row are copied, so content may be overwritten afterwards.
func (l *table) found(b int, content []ib.PortNum) {
	if sameEntries(content, blockOf(l.row, b)) {
		l.same.Add(b)
		delete(l.other, int32(b))
		return
	}
	l.same.Remove(b)
	if l.other == nil {
		l.other = make(map[int32][]ib.PortNum)
	}
	l.other[int32(b)] = slices.Clone(content)
}

// doubt takes that the content of a block is not known any more.
func (l *table) doubt(b int) {
	l.same.Remove(b)
	delete(l.other, int32(b))
}

// compare takes another row for the wanted one.
func (l *table) compare(want []ib.PortNum) {
	old := l.row
	if sameRow(old, want) {
		return
	}
	for b := range max(len(old), len(want)) / perBlock {
		if !l.same.Has(b) {
			continue
		}
		if was := blockOf(old, b); !sameEntries(was, blockOf(want, b)) {
			l.same.Remove(b)
			if l.other == nil {
				l.other = make(map[int32][]ib.PortNum)
			}
			l.other[int32(b)] = was
		}
	}
	l.row = want
	for b, content := range l.other {
		if sameEntries(content, blockOf(want, int(b))) {
			l.same.Add(int(b))
			delete(l.other, b)
		}
	}
}

// sameRow reports whether two rows are one, and not only alike: tables share the rows that did not change.
func sameRow(a, b []ib.PortNum) bool { return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0]) }

// sameEntries reports whether two blocks are alike. Strings are compared many bytes at a time; slices of a defined type are
// not.
func sameEntries(a, b []ib.PortNum) bool { return string(a) == string(b) }

// blockOf returns a block of a row, nil where it ends before.
func blockOf(row []ib.PortNum, b int) []ib.PortNum {
	if (b+1)*perBlock > len(row) {
		return nil
	}
	return row[b*perBlock : (b+1)*perBlock]
}
