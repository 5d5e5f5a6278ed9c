package register

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// Scope is what a caller of fwctl asks to be allowed (fwctl.h,
// FWCTL_RPC_*). The driver checks it against the command's opcode.
type Scope uint32

// Scopes.
const (
	Configuration  Scope = 0
	DebugReadOnly  Scope = 1
	DebugWrite     Scope = 2
	DebugWriteFull Scope = 3
)

// MaxRPC bounds a command, and an answer, in bytes.
const MaxRPC = 16 << 10

// RPC is one FWCTL_RPC: a command, and how much room its caller has for the
// answer. On a kernel it goes by ioctl. To a simulated adapter it goes through a
// stream: three dwords (scope, length of the command, room for the answer), then
// the command.
type RPC struct {
	Scope Scope
	In    []byte
	Room  int // bytes
}

const (
	rpcHead   = 12
	replyHead = 8
)

// WriteTo writes r to a stream.
func (r RPC) WriteTo(w io.Writer) (int64, error) {
	p := make([]byte, rpcHead, rpcHead+len(r.In))
	binary.BigEndian.PutUint32(p, uint32(r.Scope))
	binary.BigEndian.PutUint32(p[4:], uint32(len(r.In)))
	binary.BigEndian.PutUint32(p[8:], uint32(r.Room))
	n, err := w.Write(append(p, r.In...))
	if err != nil {
		return int64(n), fmt.Errorf("send an RPC: %w", err)
	}
	return int64(n), nil
}

// ReadRPC reads an RPC from a stream. Between two of them the stream may end,
// with io.EOF.
func ReadRPC(r io.Reader) (RPC, error) {
	var head [rpcHead]byte
	if _, err := io.ReadFull(r, head[:1]); err != nil {
		return RPC{}, err
	}
	if err := fill(r, head[1:]); err != nil {
		return RPC{}, fmt.Errorf("receive an RPC: %w", err)
	}
	room := binary.BigEndian.Uint32(head[8:])
	if room > MaxRPC {
		return RPC{}, fmt.Errorf("receive an RPC: it has room for %d bytes, at most %d are allowed", room, MaxRPC)
	}
	in, err := readBody(r, binary.BigEndian.Uint32(head[4:]))
	if err != nil {
		return RPC{}, fmt.Errorf("receive an RPC: %w", err)
	}
	return RPC{Scope: Scope(binary.BigEndian.Uint32(head[:])), In: in, Room: int(room)}, nil
}

// Reply is what comes back: an error number of Linux, or the answer. In a
// stream it is two dwords (error number, length), then the answer.
type Reply struct {
	Errno uint32 // 0: none
	Out   []byte
}

// WriteTo writes r to a stream.
func (r Reply) WriteTo(w io.Writer) (int64, error) {
	p := make([]byte, replyHead, replyHead+len(r.Out))
	binary.BigEndian.PutUint32(p, r.Errno)
	binary.BigEndian.PutUint32(p[4:], uint32(len(r.Out)))
	n, err := w.Write(append(p, r.Out...))
	if err != nil {
		return int64(n), fmt.Errorf("send a reply: %w", err)
	}
	return int64(n), nil
}

// ReadReply reads a reply from a stream.
func ReadReply(r io.Reader) (Reply, error) {
	var head [replyHead]byte
	if err := fill(r, head[:]); err != nil {
		return Reply{}, fmt.Errorf("receive a reply: %w", err)
	}
	out, err := readBody(r, binary.BigEndian.Uint32(head[4:]))
	if err != nil {
		return Reply{}, fmt.Errorf("receive a reply: %w", err)
	}
	return Reply{Errno: binary.BigEndian.Uint32(head[:]), Out: out}, nil
}

func readBody(r io.Reader, length uint32) ([]byte, error) {
	if length > MaxRPC {
		return nil, fmt.Errorf("it has %d bytes, at most %d are allowed", length, MaxRPC)
	}
	p := make([]byte, length)
	if err := fill(r, p); err != nil {
		return nil, err
	}
	return p, nil
}

// fill reads what must be there: the end of the stream is io.ErrUnexpectedEOF.
func fill(r io.Reader, p []byte) error {
	_, err := io.ReadFull(r, p)
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}
