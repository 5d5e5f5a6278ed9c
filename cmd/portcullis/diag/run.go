package diag

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	v1 "portcullis/api/v1"
	"portcullis/cmd/internal/terminal"
	"portcullis/cmd/portcullis/cli"
	"portcullis/fabricsm/transport/ibsim"
)

// preloads are where packages have the library that connects programs of libibumad to a socket of ibsim.
var preloads = []string{"/usr/lib/*/umad2sim/libumad2sim.so*", "/usr/lib*/umad2sim/libumad2sim.so*"}

const (
	// endTimeout is how long the end of an inquiry waits for the service.
	endTimeout = 10 * time.Second
	// killAfter is how long a tool may take to end that was interrupted.
	killAfter = 3 * time.Second
	// maxTool bounds the command in the audit log, in bytes.
	maxTool = 256
)

func runCommand(env *cli.Env) *cobra.Command {
	var reason, preload string
	var period time.Duration
	c := &cobra.Command{
		Use: "run --reason WHY -- TOOL [ARGUMENT...]", Short: "Run a tool of infiniband-diags, whose requests the service sends",
		Long: `Run an unchanged tool of infiniband-diags, such as smpquery, ibnetdiscover or iblinkinfo, on this
machine, which needs neither an adapter nor a key. The service that leads sends its requests with
the keys of the devices, by its own port, where the tool seems to be. Answers show no key.

A tool may only read: Sets, such as perfquery -R sends, and what is neither subnet management nor
performance management, such as saquery, are refused. The tool gets no answer to what is refused,
and the reason is on standard error.
The audit log has the command, the reason and how much was asked.

The tool is connected by libumad2sim, of the package libumad2sim0 (ibsim elsewhere), which writes
a directory sys-PID into the current directory and removes it. While the tool runs, other users of
this machine can have the service answer them in the same way.

The exit status is that of the tool, or one of portcullis if the tool was not started.`,
		Example: "  portcullis diag run --reason 'h7 is slow' -- smpquery portinfo 12\n" +
			"  portcullis diag run --reason audit --for 5m -- ibnetdiscover",
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case len(args) == 0:
				return &cli.UsageError{Msg: "TOOL is missing", Hint: "usage: " + cmd.UseLine()}
			case reason == "":
				return &cli.UsageError{Msg: "--reason is missing", Hint: "say why, for the audit log"}
			case period < time.Second || period > v1.MaxInquirySeconds*time.Second:
				return &cli.UsageError{Msg: fmt.Sprintf("--for %v: want 1s to %v", period, v1.MaxInquirySeconds*time.Second), Hint: "run the tool again when more time is needed"}
			}
			library, err := library(preload)
			if err != nil {
				return err
			}
			tool, err := find(args[0])
			if err != nil {
				return cli.Hint(err, "install it: Debian has it in infiniband-diags")
			}
			return run(cmd.Context(), env, &job{reason: reason, period: period, library: library, tool: tool, args: args})
		},
	}
	f := c.Flags()
	f.SetInterspersed(false)
	f.StringVar(&reason, "reason", "", "why, for the audit log")
	f.DurationVar(&period, "for", 10*time.Minute, "how long the tool may ask, at most 1h")
	f.StringVar(&preload, "preload", "", "file of libumad2sim, where it is not found")
	return c
}

// job is one run of a tool.
type job struct {
	reason        string
	period        time.Duration
	library, tool string
	args          []string // with the tool as it was named
}

// library returns the file of libumad2sim.
func library(named string) (string, error) {
	if named != "" {
		if _, err := os.Stat(named); err != nil {
			return "", fmt.Errorf("--preload: %w", err)
		}
		return named, nil
	}
	for _, pattern := range preloads {
		if found := glob(pattern); found != "" {
			return found, nil
		}
	}
	return "", cli.Hint(errors.New("libumad2sim.so is not installed"), "install the package libumad2sim0 (ibsim in distributions of Red Hat), or name the file with --preload")
}

func run(ctx context.Context, env *cli.Env, j *job) error {
	c, err := env.Connect()
	if err != nil {
		return err
	}
	said := strings.Join(j.args, " ")
	in, err := c.BeginInquiry(ctx, v1.NewInquiry{Reason: j.reason, Tool: strings.ToValidUTF8(said[:min(len(said), maxTool)], ""), Seconds: int(j.period / time.Second)})
	if err != nil {
		return err
	}
	code, err := attached(ctx, env, j, &network{client: c, id: in.ID, say: func(text string) { fmt.Fprintf(env.Err, "portcullis: %s\n", terminal.Plain(text)) }})
	late, cancel := context.WithTimeout(context.WithoutCancel(ctx), endTimeout)
	defer cancel()
	if e := c.EndInquiry(late, in.ID); e != nil && err == nil && time.Now().Before(in.Until) {
		fmt.Fprintf(env.Err, "portcullis: the inquiry was not ended, and ends at %s: %v\n", cli.Stamp(in.Until), e)
	}
	switch {
	case err != nil:
		return err
	case code != 0:
		return cli.ExitWith(code)
	}
	return nil
}

// attached runs the tool with a socket of the network, and returns its exit status.
func attached(ctx context.Context, env *cli.Env, j *job, n *network) (code int, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var random [8]byte
	_, _ = rand.Read(random[:]) // it never fails
	server, err := ibsim.Listen("portcullis-" + hex.EncodeToString(random[:]))
	if err != nil {
		return 0, err
	}
	n.ctx = ctx
	var serving errgroup.Group
	serving.Go(func() error { return server.Serve(ctx, n) })
	defer func() {
		cancel()
		err = errors.Join(err, serving.Wait())
	}()
	cmd := exec.CommandContext(ctx, j.tool, j.args[1:]...)
	cmd.Env = append(os.Environ(), "LD_PRELOAD="+j.library, "SIM_HOST="+nodeName, "IBSIM_SOCKNAME="+server.Socket())
	cmd.Stdin, cmd.Stdout, cmd.Stderr = env.In, env.Out, env.Err
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = killAfter
	err = cmd.Run()
	if exited, ok := errors.AsType[*exec.ExitError](err); ok && ctx.Err() == nil && exited.ExitCode() >= 0 {
		return exited.ExitCode(), nil
	}
	return 0, err
}
