package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"portcullis/agent"
)

// verb is a command that goes a part of the way of provision.
type verb struct {
	use, short, long string
	goal             agent.Goal
	done             string // text printed in the end, with the host
	was              string // text that status prints about it, with host and time
}

var verbs = []verb{
	{
		use: "provision", goal: agent.Admitted, done: "host %s is admitted\n",
		was:   "host %s was admitted at %s\n",
		short: "Attest this host, lock its adapters, and wait until it is admitted",
		long: `Attest this host, lock its adapters as the service orders, hand it over, and wait
until it is admitted.

The run may be interrupted and started again at any time. Under systemd
(Type=notify) it is ready when the TPM has answered and the adapters were read.`,
	},
	{
		use: "evidence", goal: agent.Attested, done: "the service accepts the evidence of host %s\n",
		was:   "the service accepted the evidence of host %s at %s; that run did not hand it over\n",
		short: "Attest this host as it is: nothing is locked, and the host is not handed over",
		long: `Attest this host as it is, to see whether the service would accept it. Nothing is locked,
and the host is not handed over: it can be provisioned afterwards in the same boot.`,
	},
	{
		use: "lock", goal: agent.Locked, done: "the adapters of host %s are locked and proven\n",
		was:   "the adapters of host %s were locked and proven at %s; that run did not hand it over\n",
		short: "Lock the adapters of this host as the service orders, and prove it",
		long: `Lock the adapters of this host as the service orders, and attest the host with it. The host
is not handed over.`,
	},
	{
		use: "unlock", goal: agent.Opened, done: "adapters of host %s are open\n",
		was:   "adapters of host %s were opened at %s; that run did not hand it over\n",
		short: "Open the adapters that leave by decision of the service",
		long: `Open the adapters that leave by decision of an operator ("portcullis lock release"). The
others are locked. This is done while the host is attested, like all operations that need keys.`,
	},
	{
		use: "handover", goal: agent.HandedOver, done: "host %s is handed over\n",
		was:   "host %s was handed over at %s; that run did not wait for its admission\n",
		short: "Do the same as provision, without waiting for the admission",
		long: `Attest this host, lock its adapters and hand it over. From then on nothing can be attested
in this boot. The fabric admits the host later.`,
	},
}

func (a *app) verbCommand(v verb) *cobra.Command {
	c := &cobra.Command{
		Use: v.use, Short: v.short, Args: noArguments, Long: v.long,
		Example: "  portcullis-agent " + v.use + " --config /etc/portcullis/agent.yaml\n" +
			"  portcullis-agent " + v.use + " --service https://portcullis.example:8443 --ca ca.pem --host compute-17",
	}
	a.settings.hostFlags(c.Flags())
	a.settings.stateFlag(c.Flags())
	a.settings.serviceFlags(c.Flags())
	c.RunE = func(cmd *cobra.Command, _ []string) error {
		config, err := a.settings.config(cmd)
		if err != nil {
			return err
		}
		if err := config.Check(); err != nil {
			return err
		}
		log := a.logger()
		err = agent.Provision(cmd.Context(), agent.Options{
			Config: config, Version: agentVersion(), Log: log, Notify: systemd{log}, Goal: v.goal,
		})
		if err != nil || a.json {
			return err
		}
		_, err = fmt.Fprintf(a.stdout, v.done, config.Host)
		return err
	}
	return c
}
