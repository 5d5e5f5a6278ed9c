//go:build vm

// Command bridge serves an adapter of the kernel module softhca by other means than portcullis-sim on the same machine:
//
//	bridge ibsim -node NODE     makes a node behind ibsim's sockets the adapter
//	bridge relay PORT           carries the adapter's messages over a virtio-serial port,
//	                            by its name, to a fabric outside the machine
//
// Both Debian's ibsim and portcullis-sim have ibsim's sockets. These carry less than an adapter has: one port only. There
// are no P_Keys, so GMPs seem to come with the first entry of the table, and their senders are not bound to it. There are
// no service levels and no global route headers. There are no data packets, so queue pairs of programs reach no peer.
// Changes are not reported, so the bridge asks for PortInfo and P_Keys again and again. A relay loses none of these.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"os"
	"os/signal"
	"syscall"
	"time"

	"portcullis/fabricsm/transport/ibsim"
	"portcullis/fabricsm/transport/softhca"
)

func main() {
	log.SetFlags(0)
	log.SetPrefix("bridge: ")
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, args []string) error {
	const usage = "want \"ibsim -node NODE\" or \"relay PORT\""
	if len(args) == 0 {
		return fmt.Errorf("no command: %s", usage)
	}
	f := flag.NewFlagSet(args[0], flag.ContinueOnError)
	device := f.String("device", softhca.Device, "file of the module")
	socket := f.String("socket", ibsim.DefaultSocket, "base of the simulator's socket names")
	node := f.String("node", "", "node of the fabric")
	name := f.String("name", "mlx5_0", "of the adapter in this machine")
	poll := f.Duration("poll", 200*time.Millisecond, "how often the port is looked at for changes")
	if err := f.Parse(args[1:]); err != nil {
		return err
	}
	switch {
	case args[0] == "ibsim" && f.NArg() == 0:
		return serveIbsim(ctx, *device, ibsim.Options{Socket: *socket, Node: *node, AsSM: true}, *name, *poll)
	case args[0] == "relay" && f.NArg() == 1:
		return relay(ctx, *device, f.Arg(0))
	default:
		return fmt.Errorf("%q: %s", args, usage)
	}
}
