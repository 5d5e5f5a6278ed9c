package lonesm

import (
	"fmt"
	"os"

	"portcullis/cmd/portcullisd/command"
	"portcullis/fabricsm/driver"
	"portcullis/fabricsm/sm/replay"
)

// maxRecord is the largest size of a record: a bring-up of 10,000 hosts takes
// some 60 MB, a settled fabric some 20 MB a day for each 1,000 ports.
const maxRecord = 1 << 30

// openRecord has the driver record the inputs of the core, if that is wanted.
func (s *manager) openRecord() error {
	if s.o.Record == "" {
		return nil
	}
	f, err := os.OpenFile(s.o.Record, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return command.Hint(fmt.Errorf("record: %w", err), "name a file that is not there yet")
	}
	s.recorded, s.recorder = f, replay.NewWriter(f, maxRecord, func(err error) {
		s.log.Warn("the record ends here; the subnet manager goes on", "file", s.o.Record, "reason", err)
	})
	return nil
}

func (s *manager) closeRecord() {
	if s.recorded == nil {
		return
	}
	if err := s.recorded.Close(); err != nil {
		s.log.Warn("the end of the record may be lost", "file", s.o.Record, "error", err)
	}
}

// keepRecord passes the record to the driver.
func (s *manager) keepRecord(o *driver.Options) {
	if s.recorder != nil {
		o.Record = s.recorder
	}
}
