package reference

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"portcullis/api/client"
	v1 "portcullis/api/v1"
	"portcullis/attest/reference"
	"portcullis/cmd/internal/input"
	"portcullis/cmd/portcullis/cli"
)

func referenceCommand(env *cli.Env) *cobra.Command {
	c := cli.Group("reference", "Manage which measured boots of hosts are trusted",
		referenceList(env), referenceShow(env), referencePredict(env), referenceLearn(env), referenceWaive(env), referenceApprove(env), referenceExpire(env), referenceDiff(env))
	c.Long = `Manage which measured boots are trusted, by classes of hosts that boot alike. The class of a
host is that of the inventory, or default. A boot that no set in force contains makes the
evidence of the host refused, with reason reference.

A set is learned from a boot, approved by another person, and ends at a date or by command.
Several sets may be in force at once, for example during a firmware update. A waiver trusts any
boot of a class whose event log replays; it always has an end.`
	return c
}

// setName reads CLASS/VERSION.
func setName(s string) (class string, version uint64, err error) {
	class, digits, _ := strings.Cut(s, "/")
	version, e := strconv.ParseUint(digits, 10, 64)
	if class == "" || e != nil || version == 0 {
		return "", 0, &cli.UsageError{Msg: fmt.Sprintf("%q is not a set", cli.Plain(s)), Hint: "want CLASS/VERSION; portcullis reference list has them"}
	}
	return class, version, nil
}

func referenceList(env *cli.Env) *cobra.Command {
	class := ""
	cmd := &cobra.Command{
		Use: "list", Short: "List sets of reference values", Args: cli.Operands(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := env.Connect()
			if err != nil {
				return err
			}
			all, err := c.References().List(cmd.Context(), class)
			if err != nil {
				return err
			}
			return env.Print(all, func(w *cli.Columns) {
				w.Row("SET", "KIND", "STATE", "IN FORCE", "MADE BY", "APPROVED BY", "EXPIRES", "WHY")
				for i := range all.Items {
					r := &all.Items[i]
					w.Row(r.Name, setKind(r), r.State, cli.YesNo(r.InForce), r.Owner, r.Approver, cli.Stamp(r.Expires), r.Reason)
				}
			})
		},
	}
	cmd.Flags().StringVar(&class, "class", "", "only sets of this class")
	return cmd
}

func setKind(r *v1.Reference) string {
	if r.Waiver {
		return "waiver"
	}
	return "values"
}

func referenceShow(env *cli.Env) *cobra.Command {
	return &cobra.Command{
		Use: "show CLASS/VERSION", Short: "Show a set: each register, and each event that it requires", Args: cli.Operands("CLASS/VERSION"),
		RunE: onSet(env, func(ctx context.Context, c *client.Client, class string, version uint64) (*v1.Reference, error) {
			return c.References().Get(ctx, class, version)
		}),
	}
}

// onSet does something with the set that is the operand, and shows it.
func onSet(env *cli.Env, do func(ctx context.Context, c *client.Client, class string, version uint64) (*v1.Reference, error)) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		class, version, err := setName(args[0])
		if err != nil {
			return err
		}
		return showSetOf(cmd.Context(), env, func(ctx context.Context, c *client.Client) (*v1.Reference, error) {
			return do(ctx, c, class, version)
		})
	}
}

func showSetOf(ctx context.Context, env *cli.Env, do func(context.Context, *client.Client) (*v1.Reference, error)) error {
	return cli.Show(ctx, env, do, showSet)
}

func showSet(w *cli.Columns, r *v1.Reference) {
	w.Row("Set", r.Name)
	w.Row("Kind", setKind(r))
	w.Row("State", r.State)
	w.Row("In force", cli.YesNo(r.InForce))
	w.Row("Made", fmt.Sprintf("%s by %s: %s", cli.Stamp(r.Made), r.Owner, r.Reason))
	w.Row("From", r.Source)
	if r.Approver != "" {
		w.Row("Approved", fmt.Sprintf("%s by %s", cli.Stamp(r.Trusted), r.Approver))
	}
	w.Row("Expires", cli.Stamp(r.Expires))
	if len(r.Registers) == 0 {
		return
	}
	w.Gap()
	showRegisters(w, r.Registers)
}

func showRegisters(w *cli.Columns, registers []reference.Register) {
	w.Row("PCR", "EVENT", "WANT")
	for i := range registers {
		reg := &registers[i]
		pcr := strconv.Itoa(reg.PCR)
		for _, v := range reg.Values {
			w.Row(pcr, "value", v.String())
		}
		for j := range reg.Events {
			w.Row(pcr, strconv.Itoa(j+1), reg.Events[j].String())
		}
		if len(reg.Values)+len(reg.Events) == 0 {
			w.Row(pcr, "none", "")
		}
	}
}

// learning holds the options of learn.
type learning struct {
	in     v1.NewReference
	logs   []string
	ignore []string
	// predicted is a file that predict wrote.
	predicted string
}

func referenceLearn(env *cli.Env) *cobra.Command {
	var l learning
	cmd := &cobra.Command{
		Use: "learn CLASS --reason TEXT", Short: "Learn a set from boots, as a draft", Args: cli.Operands("CLASS"),
		Long: `Learn a set from boots, as a draft that another person approves. The boots are those of hosts
(--host) whose TPM has proven a boot that no set in force contains, or event logs (--log).

In PCR 1, 3, 5 and 6, which differ between machines of one model, events that differ between
the boots may have any value. The other registers hold code and keys: they must have one of
the digests that were seen. --base extends an existing set.`,
		Example: `  portcullis reference learn gpu-node --host gpu-1 --host gpu-2 --reason "racks 1 to 8 as delivered"
  portcullis reference learn gpu-node --base 1 --host gpu-3 --reason "gpu-3 has another boot option"
  portcullis reference learn gpu-node --log binary_bios_measurements --ignore 1/3 --reason "firmware 2.20.0"`,
		RunE: func(cmd *cobra.Command, args []string) error {
			l.in.Class = args[0]
			if err := l.read(); err != nil {
				return err
			}
			return showSetOf(cmd.Context(), env, func(ctx context.Context, c *client.Client) (*v1.Reference, error) {
				return c.References().Learn(ctx, l.in)
			})
		},
	}
	f := cmd.Flags()
	f.StringArrayVar(&l.in.Hosts, "host", nil, "host to learn from; may be given more than once")
	f.StringArrayVar(&l.logs, "log", nil, "file with an event log, as the kernel has it; may be given more than once")
	f.Uint64Var(&l.in.Base, "base", 0, "version of the class to extend")
	f.StringArrayVar(&l.ignore, "ignore", nil, "PCR/EVENT, an event that may have any value; may be given more than once")
	f.StringVar(&l.predicted, "predicted", "", "file that reference predict wrote, instead of hosts, logs and base")
	cli.ReasonFlag(cmd, &l.in.Reason)
	return cmd
}

// read reads the files and positions that flags name.
func (l *learning) read() error {
	if err := cli.WantReason(l.in.Reason); err != nil {
		return err
	}
	learned := len(l.in.Hosts) + len(l.logs)
	switch {
	case l.predicted != "" && (learned > 0 || l.in.Base != 0):
		return &cli.UsageError{Msg: "--predicted excludes --host, --log and --base", Hint: "a set is either predicted or learned"}
	case l.predicted == "" && learned == 0:
		return &cli.UsageError{Msg: "nothing to learn from", Hint: "name hosts with --host, files with --log, or a prediction with --predicted"}
	}
	if l.predicted != "" {
		p, err := readPrediction(l.predicted)
		if err != nil {
			return err
		}
		l.in.Predicted = p
	}
	for _, name := range l.logs {
		b, err := input.ReadFile(name, input.Small)
		if err != nil {
			return err
		}
		l.in.Logs = append(l.in.Logs, b)
	}
	var err error
	l.in.Ignore, err = positions(l.ignore)
	return err
}

// positions reads the values of --ignore.
func positions(texts []string) ([]v1.ReferencePosition, error) {
	var out []v1.ReferencePosition
	for _, text := range texts {
		pcr, position, _ := strings.Cut(text, "/")
		p, errP := strconv.Atoi(pcr)
		n, errN := strconv.Atoi(position)
		if errP != nil || errN != nil {
			return nil, &cli.UsageError{Msg: fmt.Sprintf("--ignore %q", cli.Plain(text)), Hint: "want PCR/EVENT, as portcullis reference show numbers them: 1/3"}
		}
		out = append(out, v1.ReferencePosition{PCR: p, Position: n})
	}
	return out, nil
}

func referenceWaive(env *cli.Env) *cobra.Command {
	var in v1.NewWaiver
	until := ""
	cmd := &cobra.Command{
		Use: "waive CLASS --until DATE --reason TEXT", Short: "Draft a waiver, which trusts any boot of a class for some time", Args: cli.Operands("CLASS"),
		Long: `Draft a waiver, which another person approves. Until it ends, a boot of the class that no set
contains is trusted if its event log replays. It lasts 30 days at most, and you are its owner.
The verdict of each host that it admits names it, and so does the audit log.`,
		Example: `  portcullis reference waive gpu-node --until 2027-03-31 --reason "INC-42: vendor fixes its firmware"`,
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if err := cli.WantReason(in.Reason); err != nil {
				return err
			}
			if until == "" {
				return &cli.UsageError{Msg: "no --until is given", Hint: "a waiver must have an end: --until 2027-03-31"}
			}
			in.Class = args[0]
			if in.Expires, err = cli.Moment("until", until); err != nil {
				return err
			}
			return showSetOf(cmd.Context(), env, func(ctx context.Context, c *client.Client) (*v1.Reference, error) {
				return c.References().Waive(ctx, in)
			})
		},
	}
	cmd.Flags().StringVar(&until, "until", "", "when it ends, at most 30 days from now; it must be given")
	cli.ReasonFlag(cmd, &in.Reason)
	return cmd
}

func referenceApprove(env *cli.Env) *cobra.Command {
	expires, reason := "", ""
	cmd := &cobra.Command{
		Use: "approve CLASS/VERSION", Short: "Approve a draft and put it into force", Args: cli.Operands("CLASS/VERSION"),
		Long: `Approve a draft and put it into force. Its author may not approve it, unless
admission.two_persons is false. Look at it first: portcullis reference show.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			at, err := cli.Moment("expires", expires)
			if err != nil {
				return err
			}
			return onSet(env, func(ctx context.Context, c *client.Client, class string, version uint64) (*v1.Reference, error) {
				return c.References().Approve(ctx, class, version, v1.ReferenceApprove{Reason: reason, Expires: at})
			})(cmd, args)
		},
	}
	cmd.Flags().StringVar(&expires, "expires", "", "when the set ends automatically")
	cli.WordFlag(cmd, &reason)
	return cmd
}

func referenceExpire(env *cli.Env) *cobra.Command {
	at, in := "", v1.ReferenceExpire{}
	cmd := &cobra.Command{
		Use: "expire CLASS/VERSION --reason TEXT", Short: "End a set, now or at a date", Args: cli.Operands("CLASS/VERSION"),
		Long: `End a set, now or at a date; a draft is deleted. Admitted hosts stay admitted until they attest
again. An end can be moved to an earlier date, not to a later one.`,
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if err := cli.WantReason(in.Reason); err != nil {
				return err
			}
			if in.At, err = cli.Moment("at", at); err != nil {
				return err
			}
			return onSet(env, func(ctx context.Context, c *client.Client, class string, version uint64) (*v1.Reference, error) {
				return c.References().Expire(ctx, class, version, in)
			})(cmd, args)
		},
	}
	cmd.Flags().StringVar(&at, "at", "", "when it ends (default: now)")
	cli.ReasonFlag(cmd, &in.Reason)
	return cmd
}

func referenceDiff(env *cli.Env) *cobra.Command {
	return &cobra.Command{
		Use: "diff CLASS/VERSION HOST | CLASS/VERSION", Short: "Show how a host's boot, or another set, differs from a set", Args: cli.Operands("CLASS/VERSION", "HOST"),
		Long: `Show how the last proven boot of a host, or another set of the class, differs from a set. The
exit status is 1 if it differs. The boot of a host is kept while no set in force contains it.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			class, version, err := setName(args[0])
			if err != nil {
				return err
			}
			c, err := env.Connect()
			if err != nil {
				return err
			}
			d, err := compareSet(cmd.Context(), c, class, version, args[1])
			if err != nil {
				return err
			}
			if err := env.Print(d, func(w *cli.Columns) { showDiff(w, d) }); err != nil || len(d.Differences) == 0 {
				return err
			}
			return cli.ErrNo
		},
	}
}

func compareSet(ctx context.Context, c *client.Client, class string, version uint64, other string) (*v1.ReferenceDiff, error) {
	if !strings.Contains(other, "/") {
		return c.References().DiffHost(ctx, class, version, other)
	}
	of, with, err := setName(other)
	if err != nil {
		return nil, err
	}
	if of != class {
		return nil, &cli.UsageError{Msg: fmt.Sprintf("%s is of another class than %s", cli.Plain(other), class), Hint: "compare sets of one class"}
	}
	return c.References().Diff(ctx, class, version, with)
}

func showDiff(w *cli.Columns, d *v1.ReferenceDiff) {
	if len(d.Differences) == 0 {
		w.Text("%s is as %s has it", d.Other, d.Reference)
		return
	}
	w.Row("PCR", "EVENT", "IS", "WANT")
	for _, x := range d.Differences {
		event := ""
		if x.Position > 0 {
			event = strconv.Itoa(x.Position)
		}
		w.Row(strconv.Itoa(x.PCR), event, x.Got, x.Want)
	}
}
