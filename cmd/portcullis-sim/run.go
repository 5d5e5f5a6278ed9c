package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"portcullis/fabricsm/sim"
	"portcullis/fabricsm/sim/ibsimserver"
	"portcullis/fabricsm/transport/ibsim"
	"portcullis/fabricsm/transport/softhca"
)

func runCommand() *cobra.Command {
	var (
		socket   string
		modern   bool
		mute     mutes
		options  sim.Options
		adapters cards
		plugs    plugs
	)
	c := &cobra.Command{
		Use:   "run NETLIST",
		Short: "Serve a simulated fabric to the clients of ibsim",
		Long: "Serve a simulated fabric to the clients of ibsim until interrupted. NETLIST is a\n" +
			"file in ibsim's format or the output of ibnetdiscover; - means standard input.\n\n" +
			"Unless the netlist is read from standard input, standard input is a console:\n\n" + consoleHelp(),
		Example: "  portcullis-sim run fabric.net --socket lab1",
		Args:    one("one netlist"),
		RunE: func(c *cobra.Command, args []string) error {
			l, err := readNetlist(args[0], c.InOrStdin())
			if err != nil {
				return err
			}
			if modern {
				options.Device = sim.Modern()
			}
			options.Device.NoPKeyTraps = mute.all
			f := sim.NewWith(l, options)
			if err := mute.apply(l, f, options.Device); err != nil {
				return err
			}
			adapters.stderr = c.ErrOrStderr()
			if err := adapters.install(c.Context(), l, f); err != nil {
				return err
			}
			server, err := ibsim.Listen(socket)
			if err != nil {
				return errors.Join(err, adapters.close())
			}
			plugs.stderr = c.ErrOrStderr()
			if err := plugs.begin(c.Context(), f); err != nil {
				return errors.Join(err, adapters.close())
			}
			defer plugs.close()
			if _, err := fmt.Fprintf(c.OutOrStdout(), "ready: %d nodes on socket %q\n", len(l.Nodes), server.Socket()); err != nil {
				return fmt.Errorf("say that the simulator is ready: %w", err)
			}
			ctx, quit := context.WithCancel(c.Context())
			defer quit()
			if args[0] != "-" {
				// The program does not wait for this goroutine: it may be in a read of standard input that only the end of
				// the process ends.
				go (&console{fabric: f, plugs: &plugs, out: c.OutOrStdout(), quit: quit}).run(c.InOrStdin())
			}
			group, ctx := errgroup.WithContext(ctx)
			group.Go(func() error { return adapters.serve(ctx) })
			group.Go(func() error {
				defer quit() // it ends without an error when its context does
				return ibsimserver.Serve(ctx, server, f)
			})
			return group.Wait()
		},
	}
	f := c.Flags()
	f.StringVar(&socket, "socket", defaultSocket(), "base of the socket names (default from IBSIM_SOCKNAME)")
	f.Uint64Var(&options.Seed, "seed", 0, "seed of every random choice")
	f.BoolVar(&modern, "modern", false, "devices with CC, VS and N2N keys, which keep the old key while one is changed")
	f.BoolVar(&mute.all, "mute-switches", false, "switches that send no trap 259, but count the packets that they refuse")
	f.StringArrayVar(&mute.nodes, "mute-switch", nil, "NODE: such a switch (repeat for more)")
	f.DurationVar(&options.Training, "training", 0, "time that a link takes to come up, for example 2s")
	f.BoolVar(&options.LoseSilently, "lose-silently", false, "do not return undeliverable requests; clients without timeouts then wait forever")
	f.StringVar(&adapters.dir, "cards", "", "put an adapter behind each HCA, and serve its registers on a socket in this directory")
	f.StringArrayVar(&adapters.keys, "card-key", nil, "UUID=FILE: public key (PEM) that adapters trust to sign settings (repeat for more)")
	f.StringVar(&adapters.psid, "psid", cardPSID, "board id of the adapters")
	f.StringVar(&adapters.firmware, "firmware", cardFirmware, "firmware version of the adapters")
	f.StringArrayVar(&plugs.flags, "adapter", nil,
		"NODE=DEVICE[,name=NAME][,vf][,plane][,hold=DURATION]: make a node the adapter of a host, behind "+softhca.Device+" or unix:PATH (repeat for more)")
	return c
}

func defaultSocket() string {
	if s := os.Getenv("IBSIM_SOCKNAME"); s != "" {
		return s
	}
	return ibsim.DefaultSocket
}

// console changes a running fabric by commands.
type console struct {
	fabric *sim.Fabric
	plugs  *plugs // nil: there are none
	out    io.Writer
	quit   func()

	scripts int // that are running
	flows   []runningFlow
}
