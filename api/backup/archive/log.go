package archive

import (
	"encoding/json"
	"fmt"
	"strconv"
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
	log   chain.Log
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
	if err := json.Unmarshal(i.Value, &envelope); err != nil && !entry {
		return fmt.Errorf("record %s of the backup: %w", i.Key, err)
	}
	if !entry {
		if err := json.Unmarshal(envelope.Data, &l.head); err != nil {
			return fmt.Errorf("record %s of the backup: %w", i.Key, err)
		}
		return nil
	}
	place, err := strconv.ParseUint(digits, 10, 64)
	if err != nil || digits != fmt.Sprintf("%020d", place) {
		return fmt.Errorf("record %s of the backup is no audit entry", i.Key)
	}
	var e chain.Entry
	if json.Unmarshal(envelope.Data, &e) != nil {
		_, err = l.log.Add(place, nil)
		return err
	}
	fits, err := l.log.Add(place, &e)
	if fits {
		l.check.Add(&e)
	}
	return err
}

// End verifies that the log ends where the header of the backup and its own head say, and that operators accepted each break of
// it. Anchors behind that are of the time after the backup.
func (l *Log) End(said chain.Head) error {
	l.log.End(l.head)
	if open := l.log.Open(); open != nil {
		return open
	}
	if err := l.check.Differ(l.head); err != nil {
		return err
	}
	if l.head != said {
		return fmt.Errorf("the audit log in the backup ends at entry %d with hash %.12s, and its head says %d and %.12s", l.head.Seq, l.head.Hash, said.Seq, said.Hash)
	}
	return nil
}
