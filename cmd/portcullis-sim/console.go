package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/sim"
)

// maxScripts is how deep scripts may call each other.
const maxScripts = 8

// command is one command of the console.
type command struct {
	name  string
	usage string // its arguments
	about string
	args  []int // how many there may be
	run   func(c *console, args []string) error
	says  bool // its output is the answer, without "ok"
}

// commands are all there are, in the order of the help. Those of ibsim keep their
// names and arguments.
func commands() []command {
	return []command{
		{"unlink", "NODE [PORT]", "unplug a cable, or all cables of a node", []int{1, 2}, (*console).unlink, false},
		{"relink", "NODE [PORT]", "plug the last unplugged cable in again", []int{1, 2, 4}, (*console).relink, false},
		{"link", "NODE PORT NODE PORT", "plug a cable into two free ports", []int{4}, (*console).link, false},
		{"recable", "NODE PORT NODE PORT", "the same, and unplug what is there", []int{4}, twoEnds((*sim.Fabric).Recable), false},
		{"swap", "NODE PORT NODE PORT", "exchange two cables", []int{4}, twoEnds((*sim.Fabric).Swap), false},
		{"bounce", "NODE PORT", "take a link down and up", []int{2}, onePort((*sim.Fabric).Bounce), false},
		{"reboot", "NODE", "power a node off and on", []int{1}, func(c *console, a []string) error { return c.fabric.Reboot(a[0]) }, false},
		{"clear", "NODE [PORT]", "for a node as reboot; for a port as unlink", []int{1, 2}, (*console).clear, false},
		{"insert", "switch|ca|router NODE GUID PORTS", "add a node without cables", []int{4}, (*console).insert, false},
		{"guid", "NODE GUID [SYSTEM]", "set other GUIDs on a node", []int{2, 3}, (*console).guid, false},
		{"baselid", "NODE PORT LID [LMC]", "set a LID on a port that no manager assigned", []int{3, 4}, (*console).baselid, false},
		{"rogue", "NODE PRIORITY", "let a node claim to be master SM", []int{2}, (*console).rogue, false},
		{"honest", "NODE", "end that claim", []int{1}, func(c *console, a []string) error { return c.fabric.RogueSM(a[0], nil) }, false},
		{"send", "NODE PORT NODE PORT P_KEY", "send a data packet, and report what happened to it", []int{5}, (*console).send, true},
		{"flow", "NODE PORT NODE PORT P_KEY", "start traffic, 20 packets a second", []int{5}, (*console).flow, false},
		{"flows", "", "count the packets of all traffic", []int{0}, (*console).flowCounts, true},
		{"silence", "NODE", "let the agents of a node answer nothing", []int{1}, (*console).silence, false},
		{"heal", "NODE", "end silence, loss, delay and so on", []int{1}, func(c *console, a []string) error { return c.fabric.SetFault(a[0], sim.Fault{}) }, false},
		{"loss", "NODE PERCENT", "lose packets for a node", []int{2}, (*console).loss, false},
		{"error", "NODE [PORT] PERCENT", "the same", []int{2, 3}, (*console).loss, false},
		{"duplicate", "NODE PERCENT", "deliver packets for a node twice", []int{2}, (*console).duplicate, false},
		{"delay", "NODE DURATION", "delay packets for a node, for example 5ms", []int{2}, (*console).delay, false},
		{"slow", "NODE DURATION", "set the time its agents take for each SMP", []int{2}, (*console).slow, false},
		{"pull", "NODE", "remove an adapter from its host", []int{1}, (*console).pull, false},
		{"plug", "NODE", "insert it again", []int{1}, (*console).plug, false},
		{"firmware", "NODE DURATION|silent|ok", "let an adapter's firmware answer late, or not", []int{2}, (*console).firmware, false},
		{"fatal", "NODE", "let an adapter report to its host that it failed", []int{1}, (*console).fatal, false},
		{"dump", "[NODE]", "show nodes and cabled ports", []int{0, 1}, func(c *console, a []string) error { return c.fabric.Dump(c.out, first(a)) }, true},
		{"route", "LID LID", "show the path in the forwarding tables", []int{2}, (*console).route, true},
		{"attached", "", "list the attached clients", []int{0}, (*console).attached, true},
		{"stats", "", "show counters", []int{0}, (*console).stats, true},
		{"sets", "", "count the Sets of each subnet manager", []int{0}, (*console).sets, true},
		{"wait", "SECONDS", "accept no commands for some time", []int{1}, (*console).wait, false},
		{"start", "", "nothing: the network is started", []int{0}, func(*console, []string) error { return nil }, false},
		{"help", "", "show this help", []int{0}, func(c *console, _ []string) error { _, err := fmt.Fprintln(c.out, consoleHelp()); return err }, true},
	}
}

// consoleHelp lists the commands.
func consoleHelp() string {
	var b strings.Builder
	for _, c := range commands() {
		fmt.Fprintf(&b, "  %-42s %s\n", c.name+" "+c.usage, c.about)
	}
	b.WriteString("  quit                                       end the simulator\n")
	b.WriteString("  !FILE                                      run the commands of a file\n\n")
	b.WriteString("A port may follow its node as in ibsim, \"node name\"[3]; # begins a comment.")
	return b.String()
}

var errCommand = errors.New("unknown command, or wrong number of words; try help")

// run reads commands until the input ends; each is answered with one line, or
// more for those that show something. It reports whether quit was among them.
func (c *console) run(in io.Reader) (quit bool) {
	for lines := bufio.NewScanner(in); lines.Scan(); {
		line := strings.TrimSpace(lines.Text())
		switch {
		case line == "" || line[0] == '#':
			continue
		case line[0] == '!':
			if c.script(strings.TrimSpace(line[1:])) {
				return true
			}
			continue
		}
		words, err := split(line)
		if err == nil && strings.EqualFold(words[0], "quit") && len(words) == 1 {
			fmt.Fprintln(c.out, "ok")
			c.quit() // the last thing we do: the output may be gone after it
			return true
		}
		says := false
		if err == nil {
			says, err = c.command(words)
		}
		if err != nil {
			fmt.Fprintf(c.out, "error: %v\n", err)
		} else if !says {
			fmt.Fprintln(c.out, "ok")
		}
	}
	return false
}

// script runs the commands of a file.
func (c *console) script(name string) (quit bool) {
	if c.scripts >= maxScripts {
		fmt.Fprintf(c.out, "error: script %q: %d scripts call each other, the most is %d\n", name, c.scripts, maxScripts)
		return false
	}
	f, err := os.Open(name)
	if err != nil {
		fmt.Fprintf(c.out, "error: script: %v\n", err)
		return false
	}
	defer f.Close()
	c.scripts++
	defer func() { c.scripts-- }()
	return c.run(f)
}

// split makes words of a line: a name may stand in quotes, and a number in
// brackets right behind a word is a word of its own.
func split(line string) (words []string, err error) {
	for line = strings.TrimSpace(line); line != ""; line = strings.TrimSpace(line) {
		switch line[0] {
		case '"':
			name, rest, closed := strings.Cut(line[1:], "\"")
			if !closed {
				return nil, errors.New("a quote is not closed")
			}
			words, line = append(words, name), rest
		case '[':
			number, rest, closed := strings.Cut(line[1:], "]")
			if !closed {
				return nil, errors.New("a bracket is not closed")
			}
			words, line = append(words, number), rest
		default:
			end := strings.IndexAny(line, " \t[")
			if end < 0 {
				end = len(line)
			}
			words, line = append(words, line[:end]), line[end:]
		}
	}
	if words == nil {
		return nil, errCommand
	}
	return words, nil
}

// command runs one command; says means that it has answered.
func (c *console) command(words []string) (says bool, err error) {
	args := words[1:]
	if words[0] == "?" {
		words[0] = "help"
	}
	for _, k := range commands() {
		if strings.EqualFold(k.name, words[0]) && slices.Contains(k.args, len(args)) {
			return k.says, k.run(c, args)
		}
	}
	return false, errCommand
}

func first(args []string) string {
	if len(args) == 0 {
		return ""
	}
	return args[0]
}

// end reads a node and a port.
func end(args []string) (sim.Endpoint, error) {
	port, err := ib.ParsePortNum(args[1])
	return sim.Endpoint{Node: args[0], Port: port}, err
}

func ends(args []string) (a, b sim.Endpoint, err error) {
	a, errA := end(args)
	b, errB := end(args[2:])
	return a, b, errors.Join(errA, errB)
}

func twoEnds(do func(f *sim.Fabric, a, b sim.Endpoint) error) func(*console, []string) error {
	return func(c *console, args []string) error {
		a, b, err := ends(args)
		if err != nil {
			return err
		}
		return do(c.fabric, a, b)
	}
}

func onePort(do func(f *sim.Fabric, node string, port ib.PortNum) error) func(*console, []string) error {
	return func(c *console, args []string) error {
		at, err := end(args)
		if err != nil {
			return err
		}
		return do(c.fabric, at.Node, at.Port)
	}
}

func (c *console) unlink(args []string) error {
	if len(args) == 1 {
		return c.fabric.Unplug(args[0])
	}
	return onePort((*sim.Fabric).Unlink)(c, args)
}

func (c *console) relink(args []string) error {
	switch len(args) {
	case 1:
		return c.fabric.Restore(args[0], ib.NoPort)
	case 2:
		return onePort((*sim.Fabric).Restore)(c, args)
	default:
		return c.link(args)
	}
}

func (c *console) link(args []string) error {
	a, b, err := ends(args)
	if err != nil {
		return err
	}
	return c.fabric.Relink(a.Node, a.Port, b.Node, b.Port)
}

func (c *console) clear(args []string) error {
	if len(args) == 1 {
		return c.fabric.Reboot(args[0])
	}
	return c.unlink(args)
}

func (c *console) wait(args []string) error {
	const longest = 3600
	seconds, err := strconv.ParseUint(args[0], 10, 16)
	if err != nil || seconds > longest {
		return fmt.Errorf("wait %q: want seconds, %d at most", args[0], longest)
	}
	time.Sleep(time.Duration(seconds) * time.Second)
	return nil
}
