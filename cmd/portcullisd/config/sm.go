package config

import (
	"encoding"
	"errors"
	"flag"
	"fmt"
	"io"
	"strconv"
	"time"

	"portcullis/cmd/portcullisd/command"
)

// SMOptions is the command line of "portcullisd sm".
type SMOptions struct {
	File       string // of the configuration; empty: none
	Config     *Config
	Once, JSON bool
	Partitions string
	Record     string
	Capture    string
	StateDir   string
}

// smFlags are the options of "portcullisd sm". One that sets a key of the configuration is added with the name of that key,
// so that a fault of its value is reported under the name of the option.
type smFlags struct {
	*flag.FlagSet
	option map[string]string // by key
}

func (f *smFlags) text(name, key string, v *string) {
	f.option[key] = name
	f.StringVar(v, name, *v, "")
}

func (f *smFlags) truth(name, key string, v *bool) {
	f.option[key] = name
	f.BoolVar(v, name, *v, "")
}

func (f *smFlags) duration(name, key string, v *time.Duration) {
	f.option[key] = name
	f.DurationVar(v, name, *v, "")
}

// value adds an option whose text the type itself reads.
func (f *smFlags) value(name, key string, v encoding.TextUnmarshaler) {
	f.option[key] = name
	f.Func(name, "", func(s string) error { return v.UnmarshalText([]byte(s)) })
}

// number adds an option with a number.
func number[T ~int | ~uint8 | ~uint16](f *smFlags, name, key string, v *T) {
	f.option[key] = name
	f.Func(name, "", func(s string) error {
		n, err := strconv.ParseInt(s, 10, 64)
		if err != nil || int64(T(n)) != n {
			return errors.New("want a number")
		}
		*v = T(n)
		return nil
	})
}

// flags returns the options, which write into o.
func (o *SMOptions) flags() *smFlags {
	f := &smFlags{flag.NewFlagSet("portcullisd sm", flag.ContinueOnError), make(map[string]string)}
	f.StringVar(&o.File, "config", "", "")
	f.BoolVar(&o.Once, "once", false, "")
	f.BoolVar(&o.JSON, "json", false, "")
	f.StringVar(&o.Partitions, "partitions", "", "")
	f.StringVar(&o.Record, "record", "", "")
	f.StringVar(&o.Capture, "capture", "", "")
	f.StringVar(&o.StateDir, "state-dir", "", "")
	o.Config.Fabric.flags(f)
	return f
}

// ParseSM reads the command line, and the configuration file that it may name.
// Options override the file, so they are read again after it.
func ParseSM(args []string, stdout, stderr io.Writer) (*SMOptions, error) {
	o := &SMOptions{Config: Default()}
	o.Config.Fabric.Port = ""
	flags := o.flags()
	if err := command.Parse(flags.FlagSet, SMUsage, args, stdout, stderr); err != nil {
		return nil, err
	}
	from := &source{}
	if o.File != "" {
		data, err := Read(o.File)
		if err != nil {
			return nil, err
		}
		c := Default()
		c.Fabric.Port = ""
		if from, err = decode(o.File, data, c); err != nil {
			return nil, err
		}
		o = &SMOptions{Config: c}
		flags = o.flags()
		if err := command.Parse(flags.FlagSet, SMUsage, args, stdout, stderr); err != nil {
			return nil, err
		}
	}
	if err := o.check(flags, from, stderr); err != nil {
		return nil, err
	}
	return o, nil
}

// check reports everything that is wrong: of options by their names, of the
// file by its lines.
func (o *SMOptions) check(flags *smFlags, from *source, stderr io.Writer) error {
	given := make(map[string]bool)
	flags.Visit(func(f *flag.Flag) { given[f.Name] = true })
	k := &checker{}
	if o.Config.Fabric.Port != "" {
		k.port(o.Config.Fabric.Port, "umad", "ibsim", "sim")
	}
	k.fabric(&o.Config.Fabric)
	var usage []error
	if o.Config.Fabric.Port == "" {
		usage = append(usage, errors.New("--port is missing: name the port to run on"))
	}
	for _, p := range k.problems {
		if name := flags.option[p.key]; given[name] || o.File == "" {
			usage = append(usage, fmt.Errorf("--%s %s", name, p.message))
		} else {
			from.add(p)
		}
	}
	err := from.err()
	if len(usage) == 0 {
		return err
	}
	command.Report(stderr, command.Hint(errors.Join(append(usage, err)...), "portcullisd sm --help"))
	return command.ErrUsage
}
