package main

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"portcullis/cmd/portcullis-sim/drills"
	"portcullis/fabricsm/drill"
	"portcullis/fabricsm/drill/result"
	"portcullis/fabricsm/drill/threats"
)

// errNotPassed means that a drill did not pass.
var errNotPassed = errors.New("drills did not pass")

func drillCommand() *cobra.Command {
	var (
		o       drill.Options
		without []string
		asJSON  bool
		long    bool
	)
	c := &cobra.Command{
		Use:   "drill THREAT...",
		Short: "Play attacks against the Subnet Manager, and report what stopped them",
		Long: "Play threats of the threat model against the Subnet Manager, each on a simulated\n" +
			"fabric that enforces, in virtual time. THREAT is T17, a range such as T1-T16, or\n" +
			"all. One drill is shown in full, several as a table.\n\n" +
			"A drill passes if all its assertions hold, about the fabric and about what is\n" +
			"reported, and the victims lost no packet. A drill that cannot be played yet says\n" +
			"why, and has not passed. The exit code is 0 if all passed, and 1 otherwise.\n\n" +
			"The same seed produces the same results, to the packet.",
		Example: "  portcullis-sim drill T17\n" +
			"  portcullis-sim drill all\n" +
			"  portcullis-sim drill T1-T16 --json\n" +
			"  portcullis-sim drill T1 --without switch_enforcement\n" +
			"  portcullis-sim drill list",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usageError{errors.New("want threats, such as T17 or T1-T16, or all")}
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			picked, err := threats.Pick(drills.All(), args)
			if err != nil {
				return usageError{err}
			}
			for _, name := range without {
				control, err := drill.ParseControl(drills.Controls(), name)
				if err != nil {
					return usageError{err}
				}
				o.Without = append(o.Without, control)
			}
			return play(c.OutOrStdout(), picked, o, asJSON, long)
		},
	}
	f := c.Flags()
	f.Uint64Var(&o.Seed, "seed", 1, "seed of every random choice")
	f.StringSliceVar(&without, "without", nil, "switch a control off, for example m_key; drill list names them")
	f.BoolVar(&asJSON, "json", false, "write the results as JSON")
	f.BoolVar(&long, "long", false, "show each drill in full")
	c.AddCommand(drillListCommand())
	return c
}

// play runs drills and writes what became of them.
func play(w io.Writer, picked []drill.Drill, o drill.Options, asJSON, long bool) error {
	report := result.Report{Seed: o.Seed, Without: result.Names(o.Without)}
	for _, d := range picked {
		report.Add(drill.Run(d, o))
	}
	var err error
	switch {
	case asJSON:
		err = report.WriteJSON(w)
	case long || len(picked) == 1:
		err = report.WriteLong(w)
	default:
		err = report.WriteTable(w)
	}
	if err == nil && report.Passed < len(report.Drills) {
		err = fmt.Errorf("%d of %d %w", len(report.Drills)-report.Passed, len(report.Drills), errNotPassed)
	}
	return err
}

func drillListCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "List the drills, and the controls that can be switched off",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usageError{fmt.Errorf("unexpected argument %q", args[0])}
			}
			return nil
		},
		RunE: func(c *cobra.Command, _ []string) error { return listDrills(c.OutOrStdout()) },
	}
}

func listDrills(w io.Writer) error {
	var b strings.Builder
	b.WriteString("Drills:\n")
	for _, d := range drills.All() {
		fmt.Fprintf(&b, "  %-5s %s\n", d.ID, d.Threat)
		if d.Needs != "" {
			fmt.Fprintf(&b, "        cannot be played yet: %s\n", d.Needs)
		}
	}
	b.WriteString("\nControls, and the drills that fail without them:\n")
	for _, c := range drills.Controls() {
		fmt.Fprintf(&b, "  %-20s %s: %s\n", c.Name, c.What, strings.Join(c.Drills, " "))
	}
	_, err := io.WriteString(w, b.String())
	return err
}
