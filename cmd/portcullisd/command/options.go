package command

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"io"
	"strings"

	"portcullis/fabricsm/strictyaml/spelling"
)

// Parse reads options, of a command that takes no operands. Help that was asked
// for goes to stdout: the text of help, or where there is none the list of options.
func Parse(fs *flag.FlagSet, help string, args []string, stdout, stderr io.Writer) error {
	fs.SetOutput(io.Discard)
	fs.Usage = func() {}
	err := fs.Parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		if help == "" {
			fmt.Fprintf(stdout, "Usage:\n  %s [options]\n\nOptions:\n%s", fs.Name(), Options(fs))
		}
		fmt.Fprint(stdout, help)
		return err
	case err == nil && fs.NArg() > 0:
		err = fmt.Errorf("unexpected argument %q", fs.Arg(0))
	case err == nil:
		return nil
	default:
		err = inWords(fs, err)
	}
	Report(stderr, Hint(err, fs.Name()+" --help"))
	return ErrUsage
}

// Options lists what fs knows, a line each.
func Options(fs *flag.FlagSet) string {
	var b strings.Builder
	fs.VisitAll(func(f *flag.Flag) {
		of, text := flag.UnquoteUsage(f)
		fmt.Fprintf(&b, "  %-22s%s", strings.TrimSpace("--"+f.Name+" "+strings.ToUpper(of)), text)
		if f.DefValue != "" && f.DefValue != "false" {
			fmt.Fprintf(&b, " (%s)", f.DefValue)
		}
		b.WriteByte('\n')
	})
	return b.String()
}

// inWords says what package flag found in the form that options have here: two
// dashes, and for a name that is unknown the nearest known one.
func inWords(fs *flag.FlagSet, err error) error {
	text := err.Error()
	if name, ok := strings.CutPrefix(text, "flag provided but not defined: -"); ok {
		name = strings.TrimLeft(name, "-")
		near, least := "", max(2, len(name)/3)+1
		fs.VisitAll(func(f *flag.Flag) {
			if d := spelling.Distance(name, f.Name); d < least {
				near, least = "; did you mean --"+f.Name+"?", d
			}
		})
		return fmt.Errorf("unknown option --%s%s", name, near)
	}
	if name, ok := strings.CutPrefix(text, "flag needs an argument: -"); ok {
		return fmt.Errorf("--%s wants a value", strings.TrimLeft(name, "-"))
	}
	if rest, ok := strings.CutPrefix(text, "invalid boolean value "); ok {
		value, rest, _ := strings.Cut(rest, " for -")
		name, _, _ := strings.Cut(rest, ": ")
		return fmt.Errorf("--%s %s: want true or false", name, value)
	}
	if rest, ok := strings.CutPrefix(text, "invalid value "); ok {
		value, rest, _ := strings.Cut(rest, " for flag -")
		name, why, _ := strings.Cut(rest, ": ")
		return fmt.Errorf("--%s %s: %s", name, value, cmp.Or(why, "not a value it takes"))
	}
	return err
}
