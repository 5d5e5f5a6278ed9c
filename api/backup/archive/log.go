package archive

import (
	"encoding/json"
	"fmt"
	"strings"

	"portcullis/api/audit/chain"
)

// Keys of the audit log in a store; a test in package backup holds them equal to those of package audit.
const (
	EntryPrefix = "audit/entries/"
	HeadKey     = "audit/head/head"
)

// Log verifies the audit log among the records of a backup.
type Log struct {
	chain chain.Chain
	check chain.Check
	head  chain.Head
}

// Add takes a record; those of other collections say nothing.
func (l *Log) Add(i *Item) error {
	digits, entry := strings.CutPrefix(i.Key, EntryPrefix)
	if !entry && i.Key != HeadKey {
		return nil
	}
	var envelope struct {
		Data json.RawMessage `json:"d"`
	}
	if err := json.Unmarshal(i.Value, &envelope); err != nil {
		return fmt.Errorf("record %s of the backup: %w", i.Key, err)
	}
	if !entry {
		if err := json.Unmarshal(envelope.Data, &l.head); err != nil {
			return fmt.Errorf("record %s of the backup: %w", i.Key, err)
		}
		return nil
	}
	var e chain.Entry
	if err := json.Unmarshal(envelope.Data, &e); err != nil {
		return fmt.Errorf("record %s of the backup: %w", i.Key, err)
	}
	if digits != fmt.Sprintf("%020d", e.Seq) {
		return fmt.Errorf("record %s of the backup is audit entry %d", i.Key, e.Seq)
	}
	if err := l.chain.Add(&e); err != nil {
		return err
	}
	l.check.Add(&e)
	return nil
}

// End verifies that the log ends where the header of the backup and its own head say. Anchors behind that are of
// the time after the backup.
func (l *Log) End(said chain.Head) error {
	if err := l.chain.End(l.head); err != nil {
		return err
	}
	if err := l.check.Differ(l.head); err != nil {
		return err
	}
	return l.chain.End(said)
}
