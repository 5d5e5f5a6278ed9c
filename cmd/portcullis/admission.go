package main

import (
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	v1 "portcullis/api/v1"
)

func (a *app) admissionCommand() *cobra.Command {
	return group("admission", "See and release what stops that many hosts lose memberships at once",
		group("brake", "Show and release the brake on automatic withdrawals", a.brakeShow(), a.brakeRelease()))
}

func (a *app) brakeShow() *cobra.Command {
	return &cobra.Command{
		Use: "show", Short: "Show which memberships are kept although automatic causes would take them", Args: operands(),
		Long: `Show which memberships are kept although automatic causes would take them, because they are
of many hosts. Causes are of two classes: evidence (evidence that no longer counts) and place
(ports that are seen at another place). What operators order is never stopped.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.connect()
			if err != nil {
				return err
			}
			b, err := c.Brakes(cmd.Context())
			if err != nil {
				return err
			}
			return a.print(b, func(w *columns) { showBrakes(w, b) })
		},
	}
}

func (a *app) brakeRelease() *cobra.Command {
	in := v1.BrakeRelease{}
	c := &cobra.Command{
		Use: "release --class CLASS --reason WHY", Short: "Have the memberships taken that a brake keeps", Args: operands(),
		Long: `Have the memberships taken that a brake keeps: each host that it lists loses them now, if the
cause stands. From then on hosts are counted anew. "portcullis admission brake show" lists them.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if in.Class == "" || in.Reason == "" {
				return &usageError{msg: "--class and --reason are needed", hint: "usage: " + cmd.UseLine()}
			}
			c, err := a.connect()
			if err != nil {
				return err
			}
			b, err := c.ReleaseBrake(cmd.Context(), in)
			if err != nil {
				return err
			}
			return a.print(b, func(w *columns) { showBrakes(w, b) })
		},
	}
	c.Flags().StringVar(&in.Class, "class", "", "of causes: evidence or place")
	c.Flags().StringVar(&in.Reason, "reason", "", "why, for the audit log")
	return c
}

func showBrakes(w *columns, all *v1.Brakes) {
	w.text("at most %d hosts, and at most %s %% of those that have memberships, lose them by themselves within %s",
		all.Limits.Hosts, strconv.FormatFloat(100*all.Limits.Share, 'g', -1, 64), all.Limits.Within)
	w.gap()
	w.row("CLASS", "ENGAGED", "SINCE", "HELD", "RECENT", "RELEASED", "BY", "REASON")
	for i := range all.Items {
		b := &all.Items[i]
		w.row(b.Class, yesNo(b.Engaged), stamp(b.Since), strconv.Itoa(b.Held), strconv.Itoa(b.Recent), stamp(b.Released), b.By, b.Reason)
	}
	for i := range all.Items {
		b := &all.Items[i]
		if len(b.Hosts) == 0 {
			continue
		}
		w.gap()
		w.row("HELD HOST", "SINCE", "CAUSE")
		for _, h := range b.Hosts {
			w.row(h.Host, stamp(h.Since), h.Cause)
		}
		if more := b.Held - len(b.Hosts); more > 0 {
			w.row(fmt.Sprintf("%d more", more))
		}
	}
}
