// Package pcap writes management datagrams into capture files that Wireshark and tshark read: link type 247, packets from
// the local route header on.
//
// The readers of a capture may not be allowed to have keys, so it contains none: M_Keys, SM_Keys, SA_Keys, ServiceKeys and
// the keys of classes are zeros. Data for which this program has no table is zeros as well (mad.Redact). P_Keys and Q_Keys
// are present. Header fields that transports do not report have the values that they must have: queue pairs, the well-known
// Q_Key, both checksums. A request that came back unanswered was no packet on the wire, and is left out.
package pcap

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"portcullis/fabricsm/transport"
)

const (
	// linkInfiniBand is LINKTYPE_INFINIBAND.
	linkInfiniBand = 247
	// magicNano begins a file whose times have nanoseconds.
	magicNano = 0xA1B23C4D

	fileHeaderSize   = 24
	packetHeaderSize = 16
	// flushEvery bounds how long a packet is only in memory while others follow it.
	flushEvery = time.Second
)

// ErrFull ends a Writer when its file has reached its maximum size.
var ErrFull = errors.New("the capture is as large as it may get")

// Writer writes one capture. Its methods may be called concurrently.
type Writer struct {
	mu      sync.Mutex
	out     *bufio.Writer
	left    int64 // bytes
	end     End
	ended   error // why nothing more is written; nil: it is
	onEnd   func(error)
	flushed time.Time
	frame   [packetHeaderSize + maxFrame]byte
}

// NewWriter begins a capture of at most the given number of bytes. onEnd, which may be nil, is called once with the reason
// if the capture ends before Close.
func NewWriter(w io.Writer, most int64, onEnd func(error)) *Writer {
	c := &Writer{out: bufio.NewWriterSize(w, 1<<16), left: most, onEnd: onEnd}
	var h [fileHeaderSize]byte
	le := binary.LittleEndian
	le.PutUint32(h[0:], magicNano)
	le.PutUint16(h[4:], 2) // version 2.4
	le.PutUint16(h[6:], 4)
	le.PutUint32(h[16:], maxFrame)
	le.PutUint32(h[20:], linkInfiniBand)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.put(h[:])
	return c
}

// SetEnd sets our addresses for the packets that follow.
func (c *Writer) SetEnd(e End) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.end = e
}

// Sent and Received write packets that went or came at a time.
func (c *Writer) Sent(at time.Time, p []transport.Packet) { c.write(at, p, true) }

// Received is like Sent.
func (c *Writer) Received(at time.Time, p []transport.Packet) { c.write(at, p, false) }

func (c *Writer) write(at time.Time, packets []transport.Packet, sent bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range packets {
		if c.ended != nil {
			return
		}
		if packets[i].Undelivered {
			continue
		}
		n := c.end.frame((*[maxFrame]byte)(c.frame[packetHeaderSize:]), &packets[i], sent)
		le := binary.LittleEndian
		le.PutUint32(c.frame[0:], uint32(at.Unix()))
		le.PutUint32(c.frame[4:], uint32(at.Nanosecond()))
		le.PutUint32(c.frame[8:], uint32(n))
		le.PutUint32(c.frame[12:], uint32(n))
		c.put(c.frame[:packetHeaderSize+n])
	}
	if at.Sub(c.flushed) >= flushEvery && c.ended == nil {
		c.flushed = at
		c.fail(c.out.Flush())
	}
}

// put writes a whole piece or ends the capture before it. Called with mu held.
func (c *Writer) put(b []byte) {
	if int64(len(b)) > c.left {
		c.fail(errors.Join(ErrFull, c.out.Flush()))
		return
	}
	c.left -= int64(len(b))
	_, err := c.out.Write(b)
	c.fail(err)
}

func (c *Writer) fail(err error) {
	if err == nil || c.ended != nil {
		return
	}
	if c.ended = err; c.onEnd != nil {
		c.onEnd(err)
	}
}

// errClosed ends a Writer that was closed.
var errClosed = errors.New("the capture is closed")

// Close writes the rest of the buffered data. It does not close the file.
func (c *Writer) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended != nil {
		return nil // the end was reported, or the writer is closed
	}
	c.ended = errClosed
	if err := c.out.Flush(); err != nil {
		return fmt.Errorf("write the end of a capture: %w", err)
	}
	return nil
}
