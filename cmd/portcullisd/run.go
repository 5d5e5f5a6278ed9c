package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"time"

	"portcullis/api/store/etcd"
	"portcullis/cmd/internal/version"
	"portcullis/cmd/portcullisd/cluster"
	"portcullis/cmd/portcullisd/command"
	"portcullis/cmd/portcullisd/config"
	"portcullis/cmd/portcullisd/journal"
	"portcullis/cmd/portcullisd/lonesm"
	"portcullis/cmd/portcullisd/observe"
	"portcullis/cmd/portcullisd/restore"
	"portcullis/cmd/portcullisd/setup"
	"portcullis/cmd/portcullisd/storage"
	"portcullis/fabricsm/strictyaml/spelling"
)

const usage = `Usage:
  portcullisd [--config FILE]             run the service
  portcullisd [--config FILE] --check     check the configuration and the files it names
  portcullisd --print-config              print the reference configuration
  portcullisd --version
  portcullisd sm --port PORT [options]    run a Subnet Manager alone
  portcullisd observe --config FILE       show what taking over a fabric would change
  portcullisd init --dir DIR [options]    make CA, certificate, operator token and configuration
  portcullisd certificate renew [options] make the next TLS certificate with the CA of init
  portcullisd restore --identity FILE BACKUP  write a backup into an empty state directory
  portcullisd token --name NAME --role R  make an operator token
  portcullisd cluster ...                 keep the store on several machines

Signals: SIGHUP reads certificate, tokens and client_certificates again; SIGTERM stops.
`

// run runs a command line. wall is the clock of the machine.
func run(ctx context.Context, args []string, wall func() time.Time, stdin io.Reader, stdout, stderr io.Writer) int {
	if len(args) == 0 || strings.HasPrefix(args[0], "-") {
		return verb(stderr, func() error { return runService(ctx, args, wall, stdout, stderr) })
	}
	switch name, args := args[0], args[1:]; name {
	case "certificate":
		return verb(stderr, func() error { return setup.Certificate(args, stdout, stderr) })
	case "init":
		return verb(stderr, func() error { return setup.Init(args, stdout, stderr) })
	case "restore":
		return verb(stderr, func() error { return restore.Run(ctx, args, stdout, stderr) })
	case "cluster":
		return verb(stderr, func() error { return cluster.Run(ctx, args, stdout, stderr) })
	case "sm":
		return verb(stderr, func() error { return lonesm.Run(ctx, args, stdout, stderr) })
	case "observe":
		return verb(stderr, func() error { return observe.Run(ctx, args, stdout, stderr) })
	case "token":
		return verb(stderr, func() error { return setup.Token(args, stdout, stderr) })
	case storage.Verb:
		return verb(stderr, func() error { return etcd.ServeMember(ctx, stdin, stdout, journal.New(stderr, slog.LevelError)) })
	default:
		command.Report(stderr, command.Hint(unknownCommand(name), "portcullisd --help"))
		return command.ExitUsage
	}
}

// unknownCommand names the command that was most likely meant.
func unknownCommand(name string) error {
	for _, known := range []string{"certificate", "cluster", "init", "observe", "restore", "sm", "token"} {
		if spelling.Distance(name, known) <= 1+len(known)/4 && name[0] == known[0] {
			return fmt.Errorf("unknown command %q; did you mean %s?", name, known)
		}
	}
	return fmt.Errorf("unknown command %q: want certificate, cluster, init, observe, restore, sm or token, or options alone to run the service", name)
}

// verb runs f and turns its error into words and an exit code.
func verb(stderr io.Writer, f func() error) int {
	err := f()
	switch {
	case err == nil || errors.Is(err, flag.ErrHelp):
		return command.ExitOK
	case errors.Is(err, command.ErrUsage):
		return command.ExitUsage
	case errors.Is(err, observe.ErrNoticed): // the report says what
		return command.ExitNoticed
	default:
		command.Report(stderr, err)
		return command.ExitError
	}
}

func runService(ctx context.Context, args []string, wall func() time.Time, stdout, stderr io.Writer) error {
	fs := flag.NewFlagSet("portcullisd", flag.ContinueOnError)
	file := fs.String("config", command.DefaultConfigFile, "configuration file")
	check := fs.Bool("check", false, "check the configuration and the files it names, then stop")
	show := fs.Bool("version", false, "say which build this is")
	printConfig := fs.Bool("print-config", false, "print the reference configuration")
	if err := command.Parse(fs, usage, args, stdout, stderr); err != nil {
		return err
	}
	switch {
	case *show:
		fmt.Fprintln(stdout, "portcullisd", version.String())
		return nil
	case *printConfig:
		_, err := stdout.Write(config.Reference)
		return err
	}
	c, err := config.Load(*file)
	if err != nil {
		return err
	}
	parts, err := config.ReadFiles(c)
	if err != nil {
		return err
	}
	if *check {
		if parts.Cert != nil {
			if err := parts.Cert.Usable(time.Now()); err != nil {
				return err
			}
		}
		for _, w := range parts.Tokens.Warnings(time.Now()) {
			fmt.Fprintf(stdout, "warning: %s\n", w)
		}
		for _, w := range config.ClientWarnings(parts.Clients, time.Now()) {
			fmt.Fprintf(stdout, "warning: %s\n", w)
		}
		fmt.Fprintf(stdout, "%s: good\n", *file)
		return nil
	}
	return serve(ctx, c, parts, wall, journal.New(stderr, c.Level()))
}
