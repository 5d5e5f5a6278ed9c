package lonesm

import (
	"fmt"
	"os"
	"slices"

	"portcullis/cmd/portcullisd/command"
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/sm"
	"portcullis/fabricsm/topo"
	"portcullis/fabricsm/transport"
	"portcullis/fabricsm/transport/pcap"
)

// maxCapture is the largest size of a capture: a bring-up of 10,000 hosts is some
// 250 MB.
const maxCapture = 1 << 30

// openCapture makes the file for all MADs both ways, if that is wanted.
func (s *manager) openCapture() error {
	if s.o.Capture == "" {
		return nil
	}
	f, err := os.OpenFile(s.o.Capture, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return command.Hint(fmt.Errorf("capture: %w", err), "name a file that is not there yet")
	}
	s.captured, s.capture = f, pcap.NewWriter(f, maxCapture, func(err error) {
		s.log.Warn("the capture ends here; the subnet manager goes on", "file", s.o.Capture, "reason", err)
	})
	return nil
}

func (s *manager) closeCapture() {
	if s.captured == nil {
		return
	}
	for _, err := range []error{s.capture.Close(), s.captured.Close()} {
		if err != nil {
			s.log.Warn("the end of the capture may be lost", "file", s.o.Capture, "error", err)
		}
	}
}

// captures returns a port all of whose packets are captured, if that is wanted.
func (s *manager) captures(p transport.Port) transport.Port {
	if s.capture == nil {
		return p
	}
	return pcap.Capture(p, s.capture)
}

// captureEnd writes our addresses into the capture, which packets do not say.
func (s *manager) captureEnd(v *sm.View) {
	if s.capture == nil {
		return
	}
	id := v.Fabric.PortByGUID(s.wire.GUID())
	if id == topo.None {
		return
	}
	prefix := s.core.Prefix
	if prefix == 0 {
		prefix = ib.DefaultPrefix
	}
	end := pcap.End{LID: v.Fabric.Port(id).LID, PKeys: slices.Clone(v.PKeyTable(id))}
	for _, g := range append([]ib.GUID{s.wire.GUID()}, v.Aliases(id)...) {
		end.GIDs = append(end.GIDs, ib.MakeGID(prefix, g))
	}
	s.capture.SetEnd(end)
}
