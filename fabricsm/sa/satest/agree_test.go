package satest_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/sa/satest"
	"portcullis/fabricsm/sim/netlist"
	"portcullis/fabricsm/transport/ibsim/ibsimlab"
	"portcullis/fabricsm/transport/ibsim/ibsimtest"
)

const (
	trustedKey = 0x0a5a0b5b0c5c0d5d

	// openPartitions lets all ports communicate with each other, over partition 1.
	openPartitions = "Default=0x7fff, ipoib: ALL=limited, SELF=full;\neverybody=0x1, ipoib: ALL_CAS=full;\n"
)

// openSMOptions are those in which OpenSM is not run as it comes.
const openSMOptions = "sa_key 0x0a5a0b5b0c5c0d5d\n"

// file writes a file below the directory of a lab.
func file(t testing.TB, lab *ibsimlab.Lab, name, content string) string {
	t.Helper()
	path := filepath.Join(lab.Dir(), name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// while runs a function while a manager answers, and then stops the manager.
func while(t testing.TB, m *satest.Manager, err error, do func()) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := m.Stop(); err != nil {
			t.Error(err)
		}
	}()
	do()
}

// ofFabric are the questions for records that describe the fabric.
func ofFabric(t testing.TB, lab *ibsimlab.Lab, l *netlist.Netlist, host string, key ib.SAKey) (asks []ask) {
	t.Helper()
	c := dial(t, lab, host)
	p := look(t, dial(t, lab, "sm"), l, trusted)
	for _, more := range [][]ask{
		wholeTables(host, key), oneComponent(t, c, host, key), methods(host, key), nobody(host, key), p.portInfos(host, key),
	} {
		asks = append(asks, more...)
	}
	return asks
}

// ofHosts returns the queries and registrations of hosts.
func ofHosts(t testing.TB, lab *ibsimlab.Lab, l *netlist.Netlist, host string, key ib.SAKey) (asks []ask) {
	t.Helper()
	p := look(t, dial(t, lab, "sm"), l, trusted)
	for _, more := range [][]ask{
		p.groups(host, 0x8001, key), p.services(host, 0x8001, key), p.subscriptions(host, key), p.paths(host, key), p.multipaths(host, key),
	} {
		asks = append(asks, more...)
	}
	return asks
}

// apart has two hosts in partition 1 and all others but h2 in partition 2.
func apart(l *netlist.Netlist) string {
	var one, two []string
	for i := range l.Nodes {
		n := &l.Nodes[i]
		if n.Type != ib.NodeCA {
			continue
		}
		switch guid := n.PortGUID(1).String(); n.Name {
		case "sm", "h2":
		case "h1", "h7":
			one = append(one, guid+"=full")
		default:
			two = append(two, guid+"=full")
		}
	}
	return fmt.Sprintf("Default=0x7fff: ALL=limited, SELF=full;\none=0x1, ipoib: %s;\ntwo=0x2, ipoib: %s;\n", strings.Join(one, ", "), strings.Join(two, ", "))
}

// ofTenants are the questions of hosts of two partitions, and of none, about their own
// and about each other's.
func ofTenants(t testing.TB, lab *ibsimlab.Lab, l *netlist.Netlist, host string, key ib.SAKey) (asks []ask) {
	t.Helper()
	p := look(t, dial(t, lab, "sm"), l, trusted)
	asks = ofHosts(t, lab, l, host, key)
	for _, more := range [][]ask{
		p.groups("h4", 0x8002, key), p.services("h4", 0x8002, key), p.subscriptions("h4", key), p.paths("h4", key), p.multipaths("h4", key),
		p.groups("h4", 0x8001, key), p.services("h4", 0x8001, key), // of others
		p.groups("h2", 0x8001, key), p.services("h2", 0x8001, key), p.subscriptions("h2", key), p.paths("h2", key),
	} {
		asks = append(asks, more...)
	}
	return asks
}

// TestOpenSMAgreesWithItself queries OpenSM twice, in two processes: differences between these are no differences between
// Subnet Managers. On a loaded machine one of them may lose a host for one sweep, and end its memberships: a third process
// then decides.
func TestOpenSMAgreesWithItself(t *testing.T) {
	ibsimtest.Need(t, "opensm")
	l := small(t)
	lab := ibsimtest.Start(t, text(t, l))
	osm := &satest.OpenSM{Preload: preload(t), Options: openSMOptions, Partitions: file(t, lab, "partitions.conf", openPartitions)}
	var asks []ask
	answer := func() (answers []satest.Answer) {
		m, err := osm.Start(t.Context(), lab)
		while(t, m, err, func() {
			if asks == nil {
				// Requests of hosts join groups, and OpenSM writes multicast tables when it has time: the fabric is queried
				// first.
				asks = append(ofFabric(t, lab, l, "sm", trusted), ofHosts(t, lab, l, "h7", ib.SAKey{})...)
			}
			answers = interview(t, lab, asks)
		})
		return answers
	}
	first, second := answer(), answer()
	var third []satest.Answer
	for i := range asks {
		d, differ := compare(&asks[i], &first[i], &second[i])
		if !differ {
			continue
		}
		if third == nil {
			third = answer()
		}
		_, fromFirst := compare(&asks[i], &first[i], &third[i])
		if _, fromSecond := compare(&asks[i], &second[i], &third[i]); fromFirst && fromSecond {
			t.Errorf("three processes answer in three ways: %s", d.String())
		}
	}
	t.Logf("%d questions", len(asks))
}
