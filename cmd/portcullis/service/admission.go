package service

import (
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	v1 "portcullis/api/v1"
	"portcullis/cmd/portcullis/cli"
)

func admissionCommand(env *cli.Env) *cobra.Command {
	return cli.Group("admission", "Show and release the brake on automatic withdrawals",
		cli.Group("brake", "Show and release the brake on automatic withdrawals", brakeShow(env), brakeRelease(env)))
}

func brakeShow(env *cli.Env) *cobra.Command {
	return &cobra.Command{
		Use: "show", Short: "Show which memberships a brake keeps in place", Args: cli.Operands(),
		Long: `Show the hosts whose memberships a brake keeps in place. A brake stops withdrawals with
automatic causes when they would reach too many hosts at once. There is one brake per class
of causes:
  evidence  the accepted evidence no longer counts
  place     the ports are seen at another place
  adoption  adopted memberships whose hosts did not attest before the deadline
No brake stops what an operator orders.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := env.Connect()
			if err != nil {
				return err
			}
			b, err := c.Brakes().Get(cmd.Context())
			if err != nil {
				return err
			}
			return env.Print(b, func(w *cli.Columns) { showBrakes(w, b) })
		},
	}
}

func brakeRelease(env *cli.Env) *cobra.Command {
	in := v1.BrakeRelease{}
	c := &cobra.Command{
		Use: "release --class CLASS --reason WHY", Short: "Release a brake, so that its withdrawals take place", Args: cli.Operands(),
		Long: `Release the brake of a class. Each host that "portcullis admission brake show" lists loses its
memberships now, if the cause is still there. The count of hosts starts again at zero.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if in.Class == "" || in.Reason == "" {
				return &cli.UsageError{Msg: "--class and --reason are needed", Hint: "usage: " + cmd.UseLine()}
			}
			c, err := env.Connect()
			if err != nil {
				return err
			}
			b, err := c.Brakes().Release(cmd.Context(), in)
			if err != nil {
				return err
			}
			return env.Print(b, func(w *cli.Columns) { showBrakes(w, b) })
		},
	}
	c.Flags().StringVar(&in.Class, "class", "", "class of causes: evidence, place, adoption or drift")
	c.Flags().StringVar(&in.Reason, "reason", "", "reason, for the audit log")
	return c
}

func showBrakes(w *cli.Columns, all *v1.Brakes) {
	w.Text("limit: %d hosts, and %s %% of those with memberships, lose them by automatic causes within %s",
		all.Limits.Hosts, strconv.FormatFloat(100*all.Limits.Share, 'g', -1, 64), all.Limits.Within)
	w.Gap()
	w.Row("CLASS", "ENGAGED", "SINCE", "HELD", "RECENT", "RELEASED", "BY", "REASON")
	for i := range all.Items {
		b := &all.Items[i]
		w.Row(b.Class, cli.YesNo(b.Engaged), cli.Stamp(b.Since), strconv.Itoa(b.Held), strconv.Itoa(b.Recent), cli.Stamp(b.Released), b.By, b.Reason)
	}
	for i := range all.Items {
		b := &all.Items[i]
		if len(b.Hosts) == 0 {
			continue
		}
		w.Gap()
		w.Row("HELD HOST", "SINCE", "CAUSE")
		for _, h := range b.Hosts {
			w.Row(h.Host, cli.Stamp(h.Since), h.Cause)
		}
		if more := b.Held - len(b.Hosts); more > 0 {
			w.Row(fmt.Sprintf("%d more", more))
		}
	}
}
