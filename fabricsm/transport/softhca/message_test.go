package softhca_test

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/transport/softhca"
)

func example() softhca.Message {
	m := softhca.Message{
		Type: softhca.TypeReceive, Port: 4, Flags: softhca.FlagGRH | softhca.FlagPath, Opcode: softhca.OpRCAck, Token: 1, Status: 110, SourceQP: 0x41,
		DestQP: 0xFFFFFF, QKey: 0x80010000, DLID: 0xC001, SLID: 7, PKey: 0x8005, SL: 15, PSN: 9, Immediate: 10, Value: 11, Value2: 12,
		Payload: []byte("payload"),
	}
	m.GRH[0], m.GRH[39] = 0x60, 1
	return m
}

func TestMessageComesBack(t *testing.T) {
	want := example()
	wire := want.Append([]byte("x"))[1:]
	got, size, err := softhca.Parse(append(wire, "and more"...))
	if err != nil || size != softhca.HeadSize+len(want.Payload) {
		t.Fatalf("size %d, %v", size, err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	for cut := range wire {
		if _, size, err := softhca.Parse(wire[:cut]); size != 0 || err != nil {
			t.Fatalf("%d bytes of it: size %d, %v", cut, size, err)
		}
	}
	for _, size := range []byte{0, 95} {
		if _, _, err := softhca.Parse([]byte{size, 0, 0, 0}); !errors.Is(err, softhca.ErrSize) {
			t.Errorf("a message of %d bytes: %v", size, err)
		}
	}
}

func exampleAttach() softhca.Attach {
	return softhca.Attach{
		Name: "mlx5_0", Flags: softhca.Plane, Ports: 4, NodeType: ib.NodeCA, PKeys: 64, Hold: 1500 * time.Millisecond, Vendor: 0x2C9, Device: 4129, Revision: 0xA1,
		Firmware: [3]uint16{28, 43, 1014}, NodeGUID: 0x1122334455667788, SystemGUID: 0x99, Description: "host", HCAType: "MT4129", Board: "MT_0000000838",
		PCI: "0001:00:00.0",
	}
}

func TestAttachComesBack(t *testing.T) {
	want := exampleAttach()
	b, err := want.Payload()
	if err != nil {
		t.Fatal(err)
	}
	got, err := softhca.ParseAttach(b)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	for name, change := range map[string]func(*softhca.Attach){
		"no name":          func(a *softhca.Attach) { a.Name = "" },
		"a path as a name": func(a *softhca.Attach) { a.Name = "../x" },
		"a long name":      func(a *softhca.Attach) { a.Name = "abcdefghijklmnopqrstuvwxyzabcdef" },
		"no port":          func(a *softhca.Attach) { a.Ports = 0 },
		"five ports":       func(a *softhca.Attach) { a.Ports = 5 },
		"no P_Keys":        func(a *softhca.Attach) { a.PKeys = 0 },
		"many P_Keys":      func(a *softhca.Attach) { a.PKeys = 129 },
		"a negative hold":  func(a *softhca.Attach) { a.Hold = -1 },
	} {
		a := exampleAttach()
		change(&a)
		if _, err := a.Payload(); err == nil {
			t.Errorf("%s is taken", name)
		}
	}
	b[0]++
	if _, err := softhca.ParseAttach(b); err == nil {
		t.Error("another version is taken")
	}
}

// header is the header that the kernel module is compiled with.
const header = "../../../packaging/vm/softhca/softhca.h"

// Both sides of the protocol have the same numbers.
func TestNumbersOfTheModule(t *testing.T) {
	text, err := os.ReadFile(filepath.FromSlash(header))
	if err != nil {
		t.Fatal(err)
	}
	defined := map[string]uint64{}
	for _, m := range regexp.MustCompile(`(?m)^(?:#define\s+|\s)(SOFTHCA_\w+)(?:\s+| = )(0x[0-9a-fA-F]+|\d+)\b`).FindAllStringSubmatch(string(text), -1) {
		n, err := strconv.ParseUint(m[2], 0, 32)
		if err != nil {
			t.Fatal(err)
		}
		defined[m[1]] = n
	}
	attach := exampleAttach()
	payload, err := attach.Payload()
	if err != nil {
		t.Fatal(err)
	}
	ours := map[string]uint64{
		"SOFTHCA_VERSION": softhca.Version, "SOFTHCA_HEAD_SIZE": softhca.HeadSize, "SOFTHCA_PAYLOAD_MAX": softhca.MaxPayload,
		"SOFTHCA_PORTS_MAX": softhca.MaxPorts, "SOFTHCA_PKEYS_MAX": softhca.MaxPKeys, "SOFTHCA_ATTACH_SIZE": uint64(len(payload)),
		"SOFTHCA_ATTACH": uint64(softhca.TypeAttach), "SOFTHCA_ATTACHED": uint64(softhca.TypeAttached), "SOFTHCA_SEND": uint64(softhca.TypeSend),
		"SOFTHCA_RECEIVE": uint64(softhca.TypeReceive), "SOFTHCA_REQUEST": uint64(softhca.TypeRequest), "SOFTHCA_REPLY": uint64(softhca.TypeReply),
		"SOFTHCA_CAPABILITY": uint64(softhca.TypeCapability), "SOFTHCA_EVENT": uint64(softhca.TypeEvent), "SOFTHCA_PKEYS": uint64(softhca.TypePKeys),
		"SOFTHCA_DETACH":    uint64(softhca.TypeDetach),
		"SOFTHCA_EVENT_LID": uint64(softhca.EventLID), "SOFTHCA_EVENT_GID": uint64(softhca.EventGID), "SOFTHCA_EVENT_PKEY": uint64(softhca.EventPKey),
		"SOFTHCA_EVENT_ACTIVE": uint64(softhca.EventActive), "SOFTHCA_EVENT_ERROR": uint64(softhca.EventError), "SOFTHCA_EVENT_SM": uint64(softhca.EventSM),
		"SOFTHCA_EVENT_REREGISTER": uint64(softhca.EventReregister), "SOFTHCA_EVENT_FATAL": uint64(softhca.EventFatal),
		"SOFTHCA_GRH": uint64(softhca.FlagGRH), "SOFTHCA_HOST": uint64(softhca.FlagHost), "SOFTHCA_SOLICITED": uint64(softhca.FlagSolicited),
		"SOFTHCA_IMMEDIATE": uint64(softhca.FlagImmediate), "SOFTHCA_PATH": uint64(softhca.FlagPath),
		"SOFTHCA_DATAGRAM": uint64(softhca.OpDatagram), "SOFTHCA_RC_SEND": uint64(softhca.OpRCSend), "SOFTHCA_RC_ACK": uint64(softhca.OpRCAck),
		"SOFTHCA_ACK": uint64(softhca.AckOK), "SOFTHCA_NAK_SEQUENCE": uint64(softhca.NAKSequence), "SOFTHCA_NAK_INVALID": uint64(softhca.NAKInvalid),
		"SOFTHCA_NAK_OPERATION": uint64(softhca.NAKOperation), "SOFTHCA_NAK_NOT_READY": uint64(softhca.NAKNotReady),
		"SOFTHCA_FUNCTION": uint64(softhca.Function), "SOFTHCA_PLANE": uint64(softhca.Plane), "SOFTHCA_CALLER": uint64(softhca.Caller),
	}
	if diff := cmp.Diff(defined, ours); diff != "" {
		t.Errorf("the module's numbers (-) are not ours (+):\n%s", diff)
	}
}

func TestConnReadsMessagesFromAStream(t *testing.T) {
	ours, theirs := net.Pipe()
	defer ours.Close()
	c := softhca.NewConn(theirs, "test")
	defer c.Close()
	var stream []byte
	for i := range 5 {
		m := softhca.Message{Type: softhca.TypeSend, Token: uint32(i), Payload: bytes.Repeat([]byte{byte(i)}, i*1024)}
		stream = m.Append(stream)
	}
	go func() {
		for len(stream) > 0 { // in pieces that are no messages
			n := min(len(stream), 777)
			if _, err := ours.Write(stream[:n]); err != nil {
				return
			}
			stream = stream[n:]
		}
		ours.Close()
	}()
	for i := range 5 {
		m, err := c.Read()
		if err != nil || m.Token != uint32(i) || !bytes.Equal(m.Payload, bytes.Repeat([]byte{byte(i)}, i*1024)) {
			t.Fatalf("message %d: token %d, %d bytes, %v", i, m.Token, len(m.Payload), err)
		}
	}
	if _, err := c.Read(); !errors.Is(err, io.EOF) {
		t.Errorf("after the end: %v", err)
	}
}

func FuzzParse(f *testing.F) {
	m := example()
	f.Add(m.Append(nil))
	a := exampleAttach()
	if payload, err := a.Payload(); err == nil {
		m = softhca.Message{Type: softhca.TypeAttach, Payload: payload}
		f.Add(m.Append(nil))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		m, size, err := softhca.Parse(b)
		if err != nil || size == 0 {
			return
		}
		if size > len(b) || size != softhca.HeadSize+len(m.Payload) {
			t.Fatalf("a message of %d bytes in %d", size, len(b))
		}
		again := m.Append(nil)
		if back, _, err := softhca.Parse(again); err != nil || !cmp.Equal(m, back) {
			t.Fatalf("%+v came back as %+v, %v", m, back, err)
		}
		if a, err := softhca.ParseAttach(m.Payload); err == nil {
			payload, err := a.Payload()
			if err != nil {
				t.Fatal(err)
			}
			if back, err := softhca.ParseAttach(payload); err != nil || back != a {
				t.Fatalf("%+v came back as %+v, %v", a, back, err)
			}
		}
	})
}
