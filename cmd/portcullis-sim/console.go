package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/sim"
)

const consoleHelp = `  unlink NODE PORT             pull a cable
  relink NODE PORT NODE PORT   plug a cable in
  reboot NODE                  power a node off and on
  silence NODE                 let its agents answer nothing
  heal NODE                    take silence, loss and delay away
  loss NODE PERCENT            lose packets for a node
  delay NODE DURATION          delay packets for a node, for example 5ms
  stats                        show counters
  quit                         end the simulator`

var errCommand = errors.New("unknown command, or wrong number of words; try help")

// run reads commands until the input ends; each is answered with one line, or
// more for stats and help.
func (c console) run(in io.Reader) {
	for lines := bufio.NewScanner(in); lines.Scan(); {
		words := strings.Fields(lines.Text())
		if len(words) == 0 {
			continue
		}
		if words[0] == "quit" && len(words) == 1 {
			fmt.Fprintln(c.out, "ok")
			c.quit() // the last thing we do: the output may be gone after it
			return
		}
		if err := c.command(words); err != nil {
			fmt.Fprintf(c.out, "error: %v\n", err)
		} else if words[0] != "stats" && words[0] != "help" {
			fmt.Fprintln(c.out, "ok")
		}
	}
}

func (c console) command(words []string) error {
	args := words[1:]
	switch fmt.Sprintf("%s/%d", words[0], len(args)) {
	case "unlink/2":
		return c.unlink(args)
	case "relink/4":
		return c.relink(args)
	case "reboot/1":
		return c.fabric.Reboot(args[0])
	case "silence/1":
		return c.fabric.SetFault(args[0], sim.Fault{Silent: true})
	case "heal/1":
		return c.fabric.SetFault(args[0], sim.Fault{})
	case "loss/2":
		var percent float64
		if _, err := fmt.Sscanf(args[1], "%g", &percent); err != nil || percent < 0 || percent > 100 {
			return fmt.Errorf("loss %q: want a number from 0 to 100", args[1])
		}
		return c.fabric.SetFault(args[0], sim.Fault{Loss: percent / 100})
	case "delay/2":
		d, err := time.ParseDuration(args[1])
		if err != nil || d < 0 {
			return fmt.Errorf("delay %q: want a duration such as 5ms", args[1])
		}
		return c.fabric.SetFault(args[0], sim.Fault{Delay: d})
	case "stats/0":
		fmt.Fprintf(c.out, "%+v\n", c.fabric.Stats())
	case "help/0":
		fmt.Fprintln(c.out, consoleHelp)
	default:
		return errCommand
	}
	return nil
}

func (c console) unlink(args []string) error {
	port, err := ib.ParsePortNum(args[1])
	if err != nil {
		return err
	}
	return c.fabric.Unlink(args[0], port)
}

func (c console) relink(args []string) error {
	one, err1 := ib.ParsePortNum(args[1])
	two, err2 := ib.ParsePortNum(args[3])
	if err := errors.Join(err1, err2); err != nil {
		return err
	}
	return c.fabric.Relink(args[0], one, args[2], two)
}
