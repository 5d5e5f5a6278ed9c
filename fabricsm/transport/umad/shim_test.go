package umad

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"portcullis/fabricsm/transport/ibsim/ibsimlab"
	"portcullis/packaging/testenv"
)

// buildShim compiles testdata/shim.c, which makes libc calls for us: this
// program has none. Without a C compiler the test is skipped, or fails where
// real parts are required.
func buildShim(t *testing.T) string {
	t.Helper()
	compiler := testenv.Program(t, "gcc")
	path := filepath.Join(t.TempDir(), "shim")
	// Fortified calls have other names, which the preload library lacks.
	cmd := exec.CommandContext(t.Context(), compiler, "-O0", "-U_FORTIFY_SOURCE", "-o", path, "testdata/shim.c", "-ldl")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("compile testdata/shim.c: %v\n%s", err, out)
	}
	return path
}

// op is a libc call that the shim makes.
type op uint32

const (
	opOpen op = iota + 1
	opClose
	opIoctl
	opRead
	opWrite
	opPoll
	opLongHeader
)

// shim is a running testdata/shim.c under the preload library.
type shim struct {
	cmd *exec.Cmd
	dir string

	mu  sync.Mutex
	in  io.WriteCloser
	out io.Reader
}

// startShim attaches a shim to a node of a simulated fabric.
func startShim(t *testing.T, lab *ibsimlab.Lab, node string) *shim {
	t.Helper()
	s := &shim{dir: t.TempDir()}
	client := ibsimlab.Client{Socket: lab.Socket(), Dir: s.dir}
	var complaints bytes.Buffer
	var err error
	// It ends when its input does, which is after the test's context.
	if s.cmd, err = client.Command(context.WithoutCancel(t.Context()), node, buildShim(t)); err != nil {
		t.Fatal(err)
	}
	s.cmd.Stderr = &complaints
	if s.in, err = s.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if s.out, err = s.cmd.StdoutPipe(); err != nil {
		t.Fatal(err)
	}
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		s.in.Close()
		if err := s.cmd.Wait(); err != nil {
			t.Errorf("caller of libc: %v\n%s", err, complaints.String())
		}
	})
	return s
}

// call makes one call. Bytes that the call wrote replace data.
func (s *shim) call(what op, fd int, arg uint64, data []byte) (int, []byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	req := binary.NativeEndian.AppendUint32(nil, uint32(what))
	req = binary.NativeEndian.AppendUint32(req, uint32(fd))
	req = binary.NativeEndian.AppendUint64(req, arg)
	req = binary.NativeEndian.AppendUint32(req, uint32(len(data)))
	req = append(binary.NativeEndian.AppendUint32(req, 0), data...)
	if _, err := s.in.Write(req); err != nil {
		return 0, nil, fmt.Errorf("ask the caller of libc: %w", err)
	}
	var head [16]byte
	if _, err := io.ReadFull(s.out, head[:]); err != nil {
		return 0, nil, fmt.Errorf("hear the caller of libc: %w", err)
	}
	out := make([]byte, binary.NativeEndian.Uint32(head[8:]))
	if _, err := io.ReadFull(s.out, out); err != nil {
		return 0, nil, fmt.Errorf("hear the caller of libc: %w", err)
	}
	if errno := unix.Errno(binary.NativeEndian.Uint32(head[4:])); errno != 0 {
		return 0, out, errno
	}
	return int(int32(binary.NativeEndian.Uint32(head[:]))), out, nil
}

// openFile opens a file as libc sees it.
func (s *shim) openFile(path string, flags int) (int, error) {
	fd, _, err := s.call(opOpen, 0, uint64(flags), []byte(path+"\x00"))
	return fd, err
}

// sysfs is where the preload library has put its sysfs.
func (s *shim) sysfs(t *testing.T) string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(s.dir, "sys-*"))
	if err != nil || len(found) != 1 {
		t.Fatalf("sysfs of the preload library: %v, %v", found, err)
	}
	return filepath.Join(found[0], "sys")
}

// TestLayout compares our constants of the interface with the kernel's header.
func TestLayout(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), buildShim(t), "layout").Output()
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]uint32{
		"IB_USER_MAD_ABI_VERSION":     abiVersion,
		"IB_USER_MAD_REGISTER_AGENT":  ioctlRegister,
		"IB_USER_MAD_ENABLE_PKEY":     ioctlEnablePKey,
		"IB_USER_MAD_REGISTER_AGENT2": ioctlRegister2,
		"IB_USER_MAD_USER_RMPP":       flagUserRMPP,

		"ib_user_mad_hdr_old":        uint32(form56),
		"ib_user_mad_hdr":            uint32(form64),
		"ib_user_mad_hdr.id":         offAgent,
		"ib_user_mad_hdr.status":     offStatus,
		"ib_user_mad_hdr.timeout_ms": offTimeout,
		"ib_user_mad_hdr.qpn":        offQP,
		"ib_user_mad_hdr.qkey":       offQKey,
		"ib_user_mad_hdr.lid":        offLID,

		"ib_user_mad_hdr.sl":            offSL,
		"ib_user_mad_hdr.path_bits":     offBits,
		"ib_user_mad_hdr.grh_present":   offGRH,
		"ib_user_mad_hdr.gid_index":     offGIDIdx,
		"ib_user_mad_hdr.hop_limit":     offHops,
		"ib_user_mad_hdr.traffic_class": offTC,
		"ib_user_mad_hdr.gid":           offGID,
		"ib_user_mad_hdr.flow_label":    offFlow,
		"ib_user_mad_hdr.pkey_index":    offPKeyIdx,

		"ib_user_mad_reg_req":                    registrationSize,
		"ib_user_mad_reg_req.id":                 0,
		"ib_user_mad_reg_req.method_mask":        4,
		"ib_user_mad_reg_req.qpn":                20,
		"ib_user_mad_reg_req.mgmt_class":         21,
		"ib_user_mad_reg_req.mgmt_class_version": 22,
		"ib_user_mad_reg_req.rmpp_version":       26,

		"ib_user_mad_reg_req2":                    registration2Size,
		"ib_user_mad_reg_req2.id":                 0,
		"ib_user_mad_reg_req2.qpn":                4,
		"ib_user_mad_reg_req2.mgmt_class":         8,
		"ib_user_mad_reg_req2.mgmt_class_version": 9,
		"ib_user_mad_reg_req2.flags":              12,
		"ib_user_mad_reg_req2.method_mask":        16,
		"ib_user_mad_reg_req2.rmpp_version":       36,
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	if len(lines) != len(want) {
		t.Errorf("the kernel's header gave %d values, want %d", len(lines), len(want))
	}
	for _, line := range lines {
		var name string
		var value uint32
		if _, err := fmt.Sscanf(line, "%s %v", &name, &value); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		if w, ok := want[name]; !ok || w != value {
			t.Errorf("%s is %#x in the kernel's header, ours %#x (%v)", name, value, w, ok)
		}
	}
}
