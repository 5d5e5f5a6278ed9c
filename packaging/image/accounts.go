package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// accounts are passwd and group of the image. Numbers are fixed: systemd-sysusers would draw them on each machine.
type accounts struct {
	passwd, group bytes.Buffer
	numbers       map[string]int
	members       map[string][]string // by group
	order         []string            // of groups
}

// Numbers of systemd's accounts, and where those of our package begin.
const (
	networkID  = 980
	resolveID  = 981
	firstOurID = 990
	maxOurs    = 9
	noLogin    = "/nonexistent"
)

func newAccounts() *accounts {
	a := &accounts{numbers: map[string]int{}, members: map[string][]string{}}
	a.user("root", 0, "/root")
	a.user("systemd-network", networkID, "/")
	a.user("systemd-resolve", resolveID, "/")
	a.user("nobody", 65534, "/")
	// Groups that udev's rules name.
	for i, name := range []string{"tty", "disk", "lp", "dialout", "cdrom", "tape", "audio", "kmem", "video", "input", "kvm", "render", "sgx", "systemd-journal"} {
		a.add(name, i+5)
	}
	return a
}

func (a *accounts) add(group string, number int) {
	if _, there := a.numbers[group]; !there {
		a.numbers[group] = number
		a.order = append(a.order, group)
	}
}

// user adds an account with a group of its name.
func (a *accounts) user(name string, number int, home string) {
	a.add(name, number)
	fmt.Fprintf(&a.passwd, "%s:x:%d:%d:%s:%s:%s\n", name, a.numbers[name], a.numbers[name], name, home, noLogin)
}

// read takes what a sysusers.d(5) file of ours declares.
func (a *accounts) read(file string) error {
	b, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	next := firstOurID
	for line := range strings.Lines(string(b)) {
		f := strings.Fields(line)
		switch {
		case len(f) == 0 || strings.HasPrefix(f[0], "#"):
			continue
		case len(f) >= 3 && f[0] == "g":
			a.add(f[1], next)
		case len(f) >= 3 && f[0] == "u":
			a.user(f[1], next, f[len(f)-1])
		case len(f) == 3 && f[0] == "m":
			a.members[f[2]] = append(a.members[f[2]], f[1])
			continue
		default:
			return fmt.Errorf("%s: line %q is not understood", filepath.Base(file), strings.TrimSpace(line))
		}
		if next++; next > firstOurID+maxOurs {
			return fmt.Errorf("%s: more than %d accounts", filepath.Base(file), maxOurs)
		}
	}
	return nil
}

// put adds both files to the tree.
func (a *accounts) put(t *tree) {
	for _, name := range a.order {
		slices.Sort(a.members[name])
		fmt.Fprintf(&a.group, "%s:x:%d:%s\n", name, a.numbers[name], strings.Join(a.members[name], ","))
	}
	t.text("etc/passwd", a.passwd.String())
	t.text("etc/group", a.group.String())
}
