package owed

import (
	"errors"
	"fmt"
	"path/filepath"
	"time"
)

const (
	// journalSize is the size of each of the two files. Its space is taken when they are
	// made, so that a full disk does not keep anything from being written.
	journalSize = 4 << 20
	// kept is the room that facts and notes leave to removals.
	kept = 1 << 20
	// maxRecord bounds the body of one record.
	maxRecord = 256 << 10
	// writeTime bounds how long a write may take before the disk counts as one that hangs.
	writeTime = time.Second
)

// journal keeps records durable in one of two files. When the file in use is full, when all
// that it has is settled, and after a write that failed, the other one is begun with what is
// still owed.
type journal struct {
	dir    string
	busy   chan struct{} // holds a token while a write is under way, which may take for ever
	file   int           // in use, 0 or 1
	number uint64        // generation of the file in use
	begun  uint64        // highest generation that may be on the disk
	end    int64         // where the next record goes
	unsure bool          // a write failed: what is on the disk is not known, so nothing is added to it
	write  func(path string, at int64, data []byte) error
}

// Files returns the paths of the journal's files in a directory.
func Files(dir string) []string {
	return []string{filepath.Join(dir, "owed.0"), filepath.Join(dir, "owed.1")}
}

func (j *journal) path(file int) string { return Files(j.dir)[file] }

// openJournal makes the files if they are not there, and returns what is in them, also when
// it returns an error because it cannot make a file.
func openJournal(dir string) (*journal, content, error) {
	j := &journal{dir: dir, busy: make(chan struct{}, 1), end: headerSize, write: writeAt}
	var newest []byte
	var missing []int
	unreadable := func(file int, err error) (*journal, content, error) {
		return nil, content{}, &UnreadableError{j.path(file), err}
	}
	for file := range 2 {
		data, err := readFile(j.path(file))
		if err != nil {
			return unreadable(file, err)
		}
		number, used, err := generation(data)
		switch {
		case err != nil:
			return unreadable(file, err)
		case used && len(data) != journalSize:
			return unreadable(file, fmt.Errorf("it has %d bytes, want %d", len(data), journalSize))
		case len(data) != journalSize:
			missing = append(missing, file)
		case used && number > j.number:
			j.file, j.number, newest = file, number, data
		}
	}
	was, err := records(newest, j.number)
	if err != nil {
		return unreadable(j.file, err)
	}
	for _, file := range missing {
		if err := takeSpace(j.path(file)); err != nil {
			return nil, was, fmt.Errorf("keep what the store is owed: %w", err)
		}
	}
	j.begun, j.end = j.number, was.end
	// A record that was not written whole is not written over: its rest would follow the next one.
	j.unsure = was.torn
	if newest == nil {
		j.file = 1
		if _, err := j.rewrite(nil); err != nil {
			return nil, was, err
		}
	}
	return j, was, nil
}

// UnreadableError says that a journal is there and cannot be read.
type UnreadableError struct {
	File string
	Err  error
}

func (e *UnreadableError) Error() string {
	return fmt.Sprintf("read what the store is owed: %s: %v; it may hold removals that operators ordered, so nothing is started: order the removals that are known again once the service runs, after %s was moved away",
		e.File, e.Err, filepath.Join(filepath.Dir(e.File), "owed.*"))
}

// Unwrap returns the cause.
func (e *UnreadableError) Unwrap() error { return e.Err }

// errNoRoom says that the journal has no room for what it was to keep.
var errNoRoom = errors.New("the journal of what the store is owed is full")

// add makes an entry durable. all returns everything that is owed, this entry included, for
// a new file when the one in use has no room or is in doubt; left is how much of it has no
// room there.
func (j *journal) add(e *Entry, all func() []Entry) (left int, err error) {
	r, err := record(e, j.number)
	if err != nil {
		return 0, err
	}
	if j.unsure || j.end+int64(len(r)) > room(e) {
		if left, err = j.rewrite(all()); err == nil && left > 0 && e.Removal == nil {
			err = errNoRoom // it may be one of these
		}
		return left, err
	}
	file, at := j.path(j.file), j.end
	// Zeros after it end the file, whatever an earlier generation left there.
	err = j.within(func() error { return j.write(file, at, append(r, make([]byte, recordHead)...)) })
	if err != nil {
		j.unsure = true
		return 0, err
	}
	j.end += int64(len(r))
	return 0, nil
}

// room returns where an entry has to end.
func room(e *Entry) int64 {
	if e.Removal == nil {
		return journalSize - recordHead - kept
	}
	return journalSize - recordHead
}

// rewrite begins the other file with what is owed, as far as there is room, and returns how
// many entries were left out. A removal that has no room is an error.
func (j *journal) rewrite(all []Entry) (left int, err error) {
	file, number := 1-j.file, j.begun+1
	var body []byte
	for i := range all {
		r, err := record(&all[i], number)
		if err != nil {
			return 0, err
		}
		switch {
		case headerSize+int64(len(body)+len(r)) <= room(&all[i]):
			body = append(body, r...)
		case all[i].Removal != nil:
			return 0, errNoRoom
		default:
			left++
		}
	}
	path, end := j.path(file), headerSize+int64(len(body))
	err = j.within(func() error {
		// Until the header is there the other file counts; so an older one goes first.
		if err := j.write(path, 0, make([]byte, headerSize)); err != nil {
			return err
		}
		if err := j.write(path, headerSize, append(body, make([]byte, recordHead)...)); err != nil {
			return err
		}
		return j.write(path, 0, header(number))
	})
	j.begun = number
	if err != nil {
		j.unsure = true
		return 0, err
	}
	j.file, j.number, j.end, j.unsure = file, number, end, false
	return left, nil
}

// within bounds how long a write is waited for. One that hangs keeps others from being
// tried until it has ended.
func (j *journal) within(do func() error) error {
	select {
	case j.busy <- struct{}{}:
	default:
		return errors.New("keep what the store is owed: the disk hangs")
	}
	done := make(chan error, 1)
	go func() {
		err := do()
		<-j.busy // first, so that the write after this one finds the disk free
		done <- err
	}()
	select {
	case err := <-done:
		return err
	case <-time.After(writeTime):
		return fmt.Errorf("keep what the store is owed: the disk did not write it within %v", writeTime)
	}
}
