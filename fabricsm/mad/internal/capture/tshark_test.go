package capture

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/packaging/testenv"
)

// shown is a field of Wireshark's dissector and the value it must have.
type shown struct {
	field string // without "infiniband."
	want  any    // an ib.GID, a bool or a number
}

// ofPaths are fields that records about paths have in common.
const ofPaths = "rawtraffic flowlabel hoplimit tclass reversible numbpath p_key sl " +
	"mtuselector mtu rateselector rate packetlifetimeselector packetlifetime"

// dissected are records that saquery never asks for, or shows in part, and headers
// that it hides: a random one, and what Wireshark's dissector must find.
var dissected = []struct {
	name string
	make func(*rand.Rand, *mad.MAD) []shown
}{
	{"headers", func(r *rand.Rand, m *mad.MAD) []shown {
		m.SetAttr(mad.AttrLinkRecord)
		m.SetRMPPHeader(mad.RMPPHeader{Version: 1, Type: mad.RMPPData, RespTime: 21, Flags: mad.RMPPActive | mad.RMPPLast, Status: 77, Data1: r.Uint32(), Data2: 28})
		m.SetSAKey(ib.NewSAKey(r.Uint64()))
		m.SetAttributeOffset(uint16(r.Uint32()))
		m.SetComponentMask(mad.ComponentMask(r.Uint64()))
		return []shown{
			{"rmpp.rmppversion", m.RMPPVersion()},
			{"rmpp.rmpptype", uint8(m.RMPPType())},
			// Wireshark has these two as four bits each; they are five and three.
			{"rmpp.rresptime", uint8(m.RRespTime()) >> 1},
			{"rmpp.rmppflags", uint8(m.RRespTime())&1<<3 | uint8(m.RMPPFlags())},
			{"rmpp.rmppstatus", uint8(m.RMPPStatus())},
			{"rmpp.segmentnumber", m.SegmentNumber()},
			{"rmpp.payloadlength", m.PayloadLength()},
			{"sa.smkey", m.SAKeyBits()},
			{"sa.attributeoffset", m.AttributeOffset()},
			{"sa.componentmask", uint64(m.ComponentMask())},
		}
	}},
	{"acknowledgement", func(r *rand.Rand, m *mad.MAD) []shown {
		m.SetAttr(mad.AttrLinkRecord)
		m.SetRMPPHeader(mad.RMPPHeader{Version: 1, Type: mad.RMPPAck, Flags: mad.RMPPActive, Data1: r.Uint32(), Data2: r.Uint32()})
		return []shown{{"rmpp.segmentnumber", m.SegmentNumber()}, {"rmpp.newwindowlast", m.NewWindowLast()}}
	}},
	{"PathRecord", random(mad.AttrPathRecord, func(v *mad.PathRecord) []shown {
		return named(v, "pathrecord.", "dgid sgid dlid slid preference "+ofPaths)
	})},
	{"MCMemberRecord", random(mad.AttrMCMemberRecord, func(v *mad.MCMemberRecord) []shown {
		return named(v, "mcmemberrecord.", "mgid portgid q_key mlid mtuselector mtu tclass p_key rateselector rate packetlifetimeselector packetlifetime sl flowlabel hoplimit scope joinstate proxyjoin")
	})},
	{"MultiPathRecord", random(mad.AttrMultiPathRecord, func(v *mad.MultiPathRecord) []shown {
		return named(v, "multipathrecord.", "independenceselector sgidcount dgidcount "+ofPaths)
	})},
	{"TraceRecord", random(mad.AttrTraceRecord, func(v *mad.TraceRecord) []shown {
		return named(v, "tracerecord.", "gidprefix idgeneration nodetype nodeid chassisid entryportid exitportid entryport exitport")
	})},
	{"InformInfoRecord", random(mad.AttrInformInfoRecord, func(v *mad.InformInfoRecord) []shown {
		return append([]shown{{"informinforecord.subscribergid", v.SubscriberGID}, {"informinforecord.enum", v.Enum}}, informShown(&v.InformInfo)...)
	})},
	{"InformInfo", random(mad.AttrInformInfo, informShown)},
}

func informShown(v *mad.InformInfo) []shown {
	return under("informinfo.", []shown{
		{"gid", v.GID},
		{"lidrangebegin", v.LIDRangeBegin},
		{"lidrangeend", v.LIDRangeEnd},
		{"isgeneric", v.IsGeneric},
		{"subscribe", v.Subscribe},
		{"type", v.Type},
		{"trapnumberdeviceid", v.TrapNumber},
		{"qpn", v.QPN},
		{"resptimevalue", v.RespTimeValue},
		{"producertypevendorid", v.ProducerType},
	})
}

func under(prefix string, list []shown) []shown {
	for i := range list {
		list[i].field = prefix + list[i].field
	}
	return list
}

// named returns the fields of a record by their names in Wireshark, separated by blanks. These are our names in lower case,
// with or without an underscore in P_Key and Q_Key.
func named(record any, prefix, names string) (list []shown) {
	v := reflect.ValueOf(record).Elem()
	for name := range strings.FieldsSeq(names) {
		ours := strings.ReplaceAll(name, "_", "")
		f := v.FieldByNameFunc(func(n string) bool { return strings.EqualFold(n, ours) })
		list = append(list, shown{prefix + name, f.Interface()})
	}
	return list
}

// random puts a random record into a MAD.
func random[T any](a mad.AttrID, find func(*T) []shown) func(*rand.Rand, *mad.MAD) []shown {
	return func(r *rand.Rand, m *mad.MAD) []shown {
		var v T
		mad.Fill(&v, r.Uint64)
		m.SetAttr(a)
		if err := mad.Encode(m.SAData(), &v); err != nil {
			panic(err)
		}
		return find(&v)
	}
}

// TestWireshark: Wireshark's dissector finds the values in our headers and records.
func TestWireshark(t *testing.T) {
	var mads []mad.MAD
	var lists [][]shown
	var names []string
	for _, c := range dissected {
		for i := range perAltered {
			var m mad.MAD
			m.SetHeader(mad.Header{Class: mad.ClassSubnAdm, ClassVersion: mad.SAClassVersion, Method: mad.MethodGetResp, TID: 1})
			lists = append(lists, c.make(rand.New(rand.NewPCG(uint64(i), 4)), &m))
			mads = append(mads, m)
		}
		for _, s := range lists[len(lists)-1] {
			names = append(names, s.field)
		}
	}
	found := tshark(t, mads, names)
	for i, list := range lists {
		var got, want []string
		for _, s := range list {
			got, want = append(got, s.field+" "+found[i][s.field]), append(want, s.field+" "+shownWord(s.want))
		}
		if d := cmp.Diff(got, want); d != "" {
			t.Errorf("%s %d (-tshark +ours):\n%s", dissected[i/perAltered].name, i%perAltered, d)
		}
	}
}

func shownWord(v any) string {
	switch v := v.(type) {
	case ib.GID:
		return v.String()
	case bool:
		return strconv.FormatUint(bit(v), 10)
	default:
		return fmt.Sprintf("%d", v)
	}
}

// tshark returns fields of MADs by name, numbers in decimal. Its input has a link type for private use, since it does not
// know that of InfiniBand.
func tshark(t *testing.T, mads []mad.MAD, names []string) (found []map[string]string) {
	t.Helper()
	const private = 147
	le := binary.LittleEndian
	b := le.AppendUint32(nil, 0xA1B2C3D4)
	b = le.AppendUint32(le.AppendUint16(le.AppendUint16(b, 2), 4), 0)
	b = le.AppendUint32(le.AppendUint32(le.AppendUint32(b, 0), 1<<16), private)
	for i := range mads {
		// Local route header to LID 5, base transport header to QP 1, datagram header.
		p := []byte{0, 2, 0, 5, 0, 72, 0, 1, 0x64, 0, 0xFF, 0xFF, 0, 0, 0, 1, 0, 0, 0, 0, 0x80, 1, 0, 0, 0, 0, 0, 1}
		p = append(append(p, mads[i][:]...), 0, 0, 0, 0, 0, 0)
		b = le.AppendUint32(le.AppendUint32(append(b, make([]byte, 8)...), uint32(len(p))), uint32(len(p)))
		b = append(b, p...)
	}
	dir := t.TempDir()
	file := filepath.Join(dir, "mads.pcap")
	if err := os.WriteFile(file, b, 0o600); err != nil {
		t.Fatal(err)
	}
	args := []string{"-r", file, "-n", "-o", `uat:user_dlts:"User 0 (DLT=147)","infiniband","0","","0",""`, "-T", "fields", "-E", "separator=|"}
	for _, n := range names {
		args = append(args, "-e", "infiniband."+n)
	}
	cmd := exec.CommandContext(t.Context(), testenv.Program(t, "tshark"), args...)
	cmd.Env = append(os.Environ(), "HOME="+dir, "LC_ALL=C")
	var complaints bytes.Buffer
	cmd.Stderr = &complaints
	text, err := cmd.Output()
	if err != nil {
		t.Fatalf("tshark: %v\n%s", err, complaints.String())
	}
	for line := range strings.Lines(string(text)) {
		words := strings.Split(strings.TrimSuffix(line, "\n"), "|")
		if len(words) != len(names) {
			t.Fatalf("tshark says %q to %d fields", line, len(names))
		}
		fields := map[string]string{}
		for i, w := range words {
			if n, err := strconv.ParseUint(w, 0, 64); err == nil {
				w = strconv.FormatUint(n, 10)
			}
			fields[names[i]] = w
		}
		found = append(found, fields)
	}
	if len(found) != len(mads) {
		t.Fatalf("tshark found %d packets, want %d", len(found), len(mads))
	}
	return found
}
