package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"portcullis/api/client"
	v1 "portcullis/api/v1"
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sa/satest"
	"portcullis/fabricsm/transport/ibsim/ibsimlab"
	"portcullis/fabricsm/transport/ibsim/ibsimtest"
)

// asks dials as a host of a fabric that is up, and asks as trusted.
func asks(t *testing.T, lab *ibsimlab.Lab, host string) (*satest.Client, func(mad.Method, mad.AttrID, mad.ComponentMask, func([]byte)) *satest.Answer) {
	t.Helper()
	c, err := satest.Dial(t.Context(), lab.Socket(), host)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c, func(method mad.Method, attr mad.AttrID, mask mad.ComponentMask, fill func([]byte)) *satest.Answer {
		t.Helper()
		q := satest.Question{Method: method, Attr: attr, Mask: mask, Record: make([]byte, mad.SADataSize), Key: ib.NewSAKey(0x8f3ac91d27b6e504)}
		if fill != nil {
			fill(q.Record)
		}
		a, err := c.Answered(q)
		if err != nil {
			t.Fatal(err)
		}
		return &a
	}
}

// TestRegistrationsSurviveAKill has hosts join a group, offer a service and subscribe, and kills the Subnet Manager. The
// next one knows all of it, although no host sends it again.
func TestRegistrationsSurviveAKill(t *testing.T) {
	t.Parallel()
	lab := ibsimtest.Start(t, twoLevels(t))
	dir := t.TempDir()
	key, partitions := filepath.Join(dir, "sa.key"), filepath.Join(dir, "partitions.conf")
	for file, text := range map[string]string{key: "0x8f3ac91d27b6e504\n", partitions: "tenant=0x0001: ALL_CAS=full;\n"} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	run := func() *process {
		d := launch(t, exec.Command("portcullisd", "sm", "--port", "ibsim:"+lab.Socket()+"/sm", "--enforcement", "accepted",
			"--state-dir", filepath.Join(dir, "state"), "--socket", filepath.Join(dir, "sm.sock"), "--sa-key-file", key, "--partitions", partitions))
		eventually(t, "a settled fabric", func() (bool, string) {
			return strings.Contains(d.lines.String(), "settled with"), d.lines.String()
		})
		return d
	}
	d := run()
	c, ask := asks(t, lab, "h1")
	var node mad.NodeRecord
	eventually(t, "a record of the host's node", func() (bool, string) {
		for _, r := range ask(mad.MethodGetTable, mad.AttrNodeRecord, 0, nil).Records() {
			if mad.Decode(r, &node) == nil && node.LID == c.LID {
				return true, ""
			}
		}
		return false, d.lines.String()
	})
	gid := ib.MakeGID(ib.DefaultPrefix, node.PortGUID)
	member := mad.MCMemberRecord{MGID: ib.GID{0xFF, 0x12, 0xA0, 0x1C, 1}, PortGID: gid, JoinState: ib.FullMember, PKey: 0x8001, QKey: 7}
	service := mad.ServiceRecord{ServiceID: 0x1234, ServiceGID: gid, ServicePKey: 0x8001, ServiceLease: 0xFFFFFFFF}
	info := mad.InformInfo{LIDRangeBegin: mad.AllLIDs, IsGeneric: 1, Subscribe: 1, Type: mad.AllTypes, TrapNumber: 65, ProducerType: mad.AllProducers}
	for _, a := range []*satest.Answer{
		ask(mad.MethodSet, mad.AttrMCMemberRecord, mad.MCMemberCreate, func(b []byte) { _ = mad.Encode(b, &member) }),
		ask(mad.MethodSet, mad.AttrServiceRecord, 0x17, func(b []byte) { _ = mad.Encode(b, &service) }),
		ask(mad.MethodSet, mad.AttrInformInfo, 0, func(b []byte) { _ = mad.Encode(b, &info) }),
	} {
		if a.Status != mad.StatusOK {
			t.Fatalf("%v of 0x%04x: %v, %+v\n%s", a.Method, uint16(a.Attr), a.Status, a, d.lines.String())
		}
	}
	tables := []mad.AttrID{mad.AttrMCMemberRecord, mad.AttrServiceRecord, mad.AttrInformInfoRecord}
	before := map[mad.AttrID][]byte{}
	for _, attr := range tables {
		if before[attr] = ask(mad.MethodGetTable, attr, 0, nil).Data; len(before[attr]) == 0 {
			t.Errorf("no record of attribute 0x%04x", uint16(attr))
		}
	}
	shown(t, filepath.Join(dir, "sm.sock"), node.PortGUID)
	d.kill()
	d = run()
	for _, attr := range tables {
		eventually(t, "what was registered", func() (bool, string) {
			return bytes.Equal(ask(mad.MethodGetTable, attr, 0, nil).Data, before[attr]), d.lines.String()
		})
	}
}

// shown asks the Subnet Manager itself what a host has registered: one of each.
func shown(t *testing.T, socket string, port ib.GUID) {
	t.Helper()
	c, err := client.New(client.Options{Socket: socket})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	by := v1.RegisteredQuery{Port: port.String()}
	eventually(t, "what is registered to be shown", func() (bool, string) {
		s, err := c.Registered().SA(t.Context())
		return err == nil && s.Serving && s.Services == 1 && s.Subscriptions == 1, fmt.Sprintf("%+v, %v", s, err)
	})
	var registrants []v1.Registrant
	for page, err := range c.Registered().Groups(t.Context(), v1.GroupQuery{RegisteredQuery: by}) {
		if err != nil || len(page.Items) != 1 {
			t.Fatalf("groups: %+v, %v", page, err)
		}
		for members, err := range c.Registered().Members(t.Context(), page.Items[0].MGID.String(), by) {
			if err != nil || len(members.Items) != 1 {
				t.Fatalf("members: %+v, %v", members, err)
			}
			registrants = append(registrants, members.Items[0].Registrant)
		}
	}
	for page, err := range c.Registered().Services(t.Context(), v1.ServiceQuery{RegisteredQuery: by}) {
		if err != nil || len(page.Items) != 1 {
			t.Fatalf("services: %+v, %v", page, err)
		}
		registrants = append(registrants, page.Items[0].Registrant)
	}
	for page, err := range c.Registered().Subscriptions(t.Context(), by) {
		if err != nil || len(page.Items) != 1 {
			t.Fatalf("subscriptions: %+v, %v", page, err)
		}
		registrants = append(registrants, page.Items[0].Registrant)
	}
	for _, r := range registrants {
		if r.Port != port || r.At == "" || r.Name == "" {
			t.Errorf("registered by %+v, want port %v and where it is", r, port)
		}
	}
	if len(registrants) != 3 {
		t.Errorf("%d registrations are shown, want 3", len(registrants))
	}
}
