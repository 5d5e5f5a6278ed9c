package mst

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"portcullis/agent/hca/register"
)

// Registers carries register accesses of one adapter with mstreg in raw mode,
// one run for each. It has no commands but registers.
type Registers struct {
	suite  *Suite
	device string
	// KeysOnCommandLine allows writes of MLOCK, whose key every process of the host
	// can then read while the tool runs.
	KeysOnCommandLine bool
}

// Registers returns the registers of an adapter, if mstreg is installed.
func (s *Suite) Registers(device string) (*Registers, error) {
	if err := checkDevice(device); err != nil {
		return nil, err
	}
	if s.reg == "" {
		return nil, fmt.Errorf("mstreg: %w", ErrNone)
	}
	return &Registers{suite: s, device: device}, nil
}

// Close does nothing; there is nothing open between two runs.
func (*Registers) Close() error { return nil }

// ErrKeyOnCommandLine refuses a write that would show a key.
var ErrKeyOnCommandLine = errors.New("the tool takes the key of MLOCK as an argument only, where every process of the host can read it: use a kernel with fwctl, or have the site's policy allow it")

// maxRegister is the longest register that the tool takes, in bytes.
const maxRegister = 1024

// How often a busy adapter is asked again, and how long first. The tool has
// tried already.
const (
	busyTries = 4
	busyWait  = 250 * time.Millisecond
)

// Access reads or writes a register.
func (r *Registers) Access(ctx context.Context, id register.ID, method register.Method, data []byte) ([]byte, error) {
	if len(data) == 0 || len(data)%4 != 0 || len(data) > maxRegister {
		return nil, fmt.Errorf("%v: %d bytes, want a multiple of 4, at most %d", id, len(data), maxRegister)
	}
	if method == register.Write && id == register.IDMLOCK && !r.KeysOnCommandLine {
		return nil, ErrKeyOnCommandLine
	}
	what := register.Access{ID: id, Method: method}.String()
	for try, wait := 1, busyWait; ; try, wait = try+1, 2*wait {
		out, err := r.suite.runner.run(ctx, QueryTime, r.suite.reg, r.arguments(id, method, data)...)
		if errors.Is(err, register.ErrBusy) && try < busyTries {
			select {
			case <-time.After(wait):
				continue
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}
		if status, ok := errors.AsType[*register.Error](err); ok {
			return nil, &register.Error{What: r.device + ": " + what, Status: status.Status}
		}
		if err != nil {
			return nil, err
		}
		if method == register.Write {
			return data, nil // the tool shows what it sends, and no answer
		}
		return parseDump(out, len(data))
	}
}

// arguments say each dword as address.bit:width=value.
func (r *Registers) arguments(id register.ID, method register.Method, data []byte) []string {
	args := []string{"-d", r.device, "--reg_id", fmt.Sprintf("0x%x", uint16(id)), "--reg_len", fmt.Sprintf("0x%x", len(data))}
	var fields []string
	for at := 0; at < len(data); at += 4 {
		v := binary.BigEndian.Uint32(data[at:])
		if v != 0 || method == register.Write {
			fields = append(fields, fmt.Sprintf("0x%x.0:32=0x%x", at, v))
		}
	}
	list := strings.Join(fields, ",")
	switch {
	case method == register.Write:
		return append(args, "--set", list, "--yes")
	case list != "":
		return append(args, "--indexes", list, "--get")
	}
	return append(args, "--get")
}

// parseDump reads "0x00000004 | 0x12345678" for each dword, in order.
func parseDump(out string, length int) ([]byte, error) {
	data := make([]byte, 0, length)
	for line := range strings.Lines(out) {
		address, value, ok := strings.Cut(strings.TrimSpace(line), "|")
		address, value = strings.TrimSpace(address), strings.TrimSpace(value)
		if !ok || !strings.HasPrefix(address, "0x") {
			continue // title and rulers
		}
		at, err1 := strconv.ParseUint(address, 0, 32)
		v, err2 := strconv.ParseUint(value, 0, 32)
		if err1 != nil || err2 != nil || !strings.HasPrefix(value, "0x") || at != uint64(len(data)) || len(data) == length {
			return nil, fmt.Errorf("dump of a register of %d bytes: %q", length, clip(line))
		}
		data = binary.BigEndian.AppendUint32(data, uint32(v))
	}
	if len(data) != length {
		return nil, fmt.Errorf("dump of a register: %d bytes, want %d", len(data), length)
	}
	return data, nil
}
