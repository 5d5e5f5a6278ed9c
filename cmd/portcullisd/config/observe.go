package config

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"time"

	"portcullis/cmd/portcullisd/command"
)

// ObserveUsage is the help of "portcullisd observe".
const ObserveUsage = `Usage:
  portcullisd observe --config FILE [options]    show what taking over would change

Reads a fabric that another Subnet Manager rules, and writes nothing.

Options:
  --config FILE         configuration of the Subnet Manager that would take over, such as
                        "portcullis import" writes
  --port PORT           the port to read from, as for portcullisd sm, in place of that
                        in FILE: umad:DEVICE[:PORT] or ibsim:SOCKET/NODE
  --partitions FILE     partitions, in OpenSM's grammar
  -o FORM               text (default) or json, which has every change
  --rate N              requests a second, at most; default 1000
  --window N            requests under way at once, at most; default 4
  --silent N            devices that may be silent though the link to them is up, before
                        the run ends; default 2
  --within DURATION     how long it may take; default 10m

Exit status: 0 jobs that run would notice nothing, 1 error, 2 wrong usage, 8 jobs would
notice what is listed first, or P_Keys that nothing explains would go.
`

// ObserveOptions is the command line of "portcullisd observe".
type ObserveOptions struct {
	Config               *Config
	Partitions           string
	JSON                 bool
	Rate, Window, Silent int
	Within               time.Duration
}

// ParseObserve reads the command line, and the configuration file that it names.
func ParseObserve(args []string, stdout, stderr io.Writer) (*ObserveOptions, error) {
	o := &ObserveOptions{}
	fs := flag.NewFlagSet("portcullisd observe", flag.ContinueOnError)
	file := fs.String("config", "", "")
	port := fs.String("port", "", "")
	form := fs.String("o", "text", "")
	fs.StringVar(&o.Partitions, "partitions", "", "")
	fs.IntVar(&o.Rate, "rate", 1000, "")
	fs.IntVar(&o.Window, "window", 4, "")
	fs.IntVar(&o.Silent, "silent", 2, "")
	fs.DurationVar(&o.Within, "within", 10*time.Minute, "")
	if err := command.Parse(fs, ObserveUsage, args, stdout, stderr); err != nil {
		return nil, err
	}
	var wrong []error
	want := func(ok bool, format string, v ...any) {
		if !ok {
			wrong = append(wrong, fmt.Errorf(format, v...))
		}
	}
	want(*file != "", "--config is missing: name the configuration that would take over")
	want(*form == "text" || *form == "json", "-o %q: want text or json", *form)
	want(o.Rate >= 1 && o.Rate <= 100_000, "--rate %d: want 1 to 100000", o.Rate)
	want(o.Window >= 1 && o.Window <= 64, "--window %d: want 1 to 64", o.Window)
	want(o.Silent >= 0, "--silent %d: want 0 or more", o.Silent)
	want(o.Within > 0, "--within %v: want more than 0", o.Within)
	o.JSON = *form == "json"
	if *port != "" {
		k := &checker{}
		k.port(*port, "umad", "ibsim")
		for _, p := range k.problems {
			want(false, "--port %s", p.message)
		}
	}
	if len(wrong) > 0 {
		command.Report(stderr, command.Hint(errors.Join(wrong...), "portcullisd observe --help"))
		return nil, command.ErrUsage
	}
	return o, o.load(*file, *port)
}

// load reads the configuration, of which only the section "fabric" counts.
func (o *ObserveOptions) load(file, port string) error {
	data, err := Read(file)
	if err != nil {
		return err
	}
	o.Config = Default()
	o.Config.Fabric.Port = ""
	from, err := decode(file, data, o.Config)
	if err != nil {
		return err
	}
	if port != "" {
		o.Config.Fabric.Port = port
	}
	k := &checker{}
	if o.Config.Fabric.Port != "" {
		k.port(o.Config.Fabric.Port, "umad", "ibsim")
	}
	k.fabric(&o.Config.Fabric)
	from.add(k.problems...)
	if err := from.err(); err != nil {
		return err
	}
	if o.Config.Fabric.Port == "" {
		return command.Hint(fmt.Errorf("%s has no fabric.port", file), "name the port to read from with --port")
	}
	return nil
}
