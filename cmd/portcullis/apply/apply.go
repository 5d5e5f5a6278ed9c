package apply

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"portcullis/api/clustername"
	v1 "portcullis/api/v1"
	"portcullis/cmd/portcullis/cli"
)

const long = `Bring tenants, their quotas, clusters and assignments of hosts to what files declare.

-f names a file of YAML documents, a directory with files *.yaml, or "-" for standard input;
it may be given more than once. Documents are of the kinds Tenant, Cluster and Assignment; the
page docs/operate/gitops.md describes their keys. The service compares all of them with what is
there, at one moment, and returns the changes in a safe order: what takes away comes first, and a
host that moves is assigned only when it is proven that it left its last cluster.

Each change is one of the requests that other commands send, with the credential of the caller and
the version that the comparison found. So each guard of the service counts as there. A change
that is refused stops those that need it, and no others; running the command again continues.

What files omit stays as it is. With --set NAME, what the command creates has the name of this set,
and with --prune what has that name and is no longer declared is removed. What was there before, and
what others created, is never removed. --selector has only tenants and clusters removed whose labels
meet it, and taken only from such clusters. A host is moved only if it was assigned for the set, or with
--take-over. If anything is taken away, --confirm must say how many removals there are.

Exit status: 0 done, or nothing to do. With --dry-run, which changes nothing, 0 if there is no
difference, 1 if there is one, and 2 if the two could not be compared.`

const examples = `  portcullis apply -f site/ --set prod --dry-run
  portcullis apply -f site/ --set prod
  portcullis apply -f site/ --set prod --prune --confirm 3 --timeout 10m`

// options are those of the command.
type options struct {
	files    []string
	set      string
	dryRun   bool
	prune    bool
	selector string
	takeOver bool
	confirm  int
	timeout  time.Duration
}

func applyCommand(env *cli.Env) *cobra.Command {
	var o options
	cmd := &cobra.Command{
		Use: "apply -f FILE", Short: "Bring tenants, clusters and assignments to what files declare",
		Long: long, Example: examples, Args: cli.Operands(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.check(cmd); err != nil {
				return err
			}
			if !o.dryRun {
				return o.run(cmd.Context(), env)
			}
			plan, err := o.compare(cmd.Context(), env)
			if err != nil {
				return cli.NotCompared(err)
			}
			if err := printPlan(env, &o, plan); err != nil {
				return cli.NotCompared(err)
			}
			if len(plan.Changes) > 0 {
				return cli.ErrNo
			}
			return nil
		},
	}
	f := cmd.Flags()
	f.StringArrayVarP(&o.files, "filename", "f", nil, `file of YAML documents, directory with files *.yaml, or "-"; may be given more than once`)
	f.StringVar(&o.set, "set", "", "name of the set that the files are: what is created has it")
	f.BoolVar(&o.dryRun, "dry-run", false, "show the differences and change nothing; the exit code is 1 if there are any")
	f.BoolVar(&o.prune, "prune", false, "remove what was created for the set and is no longer declared")
	cli.SelectorFlag(cmd, &o.selector, "with --prune: remove only tenants and clusters whose labels meet this, and what is in those clusters")
	f.BoolVar(&o.takeOver, "take-over", false, "also move hosts that were not assigned for the set")
	f.IntVar(&o.confirm, "confirm", -1, "how many removals are meant; needed if there is any")
	f.DurationVar(&o.timeout, "timeout", 5*time.Minute, "how long to wait for hosts that move to leave their last cluster; then the exit code is 4")
	return cmd
}

func (o *options) check(cmd *cobra.Command) error {
	switch {
	case len(o.files) == 0:
		return &cli.UsageError{Msg: "-f is missing", Hint: "usage: " + cmd.UseLine()}
	case o.set != "" && !clustername.IsLabel(o.set):
		return &cli.UsageError{Msg: fmt.Sprintf("--set %q is not a name", o.set), Hint: nameHint}
	case o.prune && o.set == "":
		return &cli.UsageError{Msg: "--prune needs the name of a set", Hint: "add --set NAME: only what was created for that set is removed"}
	case o.selector != "" && !o.prune:
		return &cli.UsageError{Msg: "--selector needs --prune", Hint: "it chooses what is removed; what is declared is made so in any case"}
	}
	return nil
}

// compare reads the files and has the service compare them with what is there.
func (o *options) compare(ctx context.Context, env *cli.Env) (*v1.Plan, error) {
	m, err := read(env, o.files)
	if err != nil {
		return nil, err
	}
	c, err := env.Connect()
	if err != nil {
		return nil, err
	}
	m.wanted.Set, m.wanted.Prune, m.wanted.Selector, m.wanted.TakeOver = o.set, o.prune, o.selector, o.takeOver
	plan, err := c.Tenants().Plan(ctx, &m.wanted)
	if err != nil {
		return nil, err
	}
	return plan, m.conflicts(plan)
}

// conflicts says what is declared and cannot be had, with its place.
func (m *model) conflicts(p *v1.Plan) error {
	var errs []error
	for _, n := range p.Conflicts {
		short := shortOf(n.Object)
		if place := cmp.Or(m.places[n.Object], m.refs[n.Object], m.places[short], m.refs[short]); place != "" {
			n.Detail = place + ": " + n.Detail
		}
		errs = append(errs, errors.New(n.Detail))
	}
	if errs == nil {
		return nil
	}
	return cli.Hint(errors.Join(errs...), "nothing was changed; a host of another set is moved only with --take-over, after its owner agreed")
}

// shortOf returns how files may call an object that the service has with its full name: "cluster/NAME" for "cluster/TENANT.NAME".
func shortOf(object string) string {
	text, is := strings.CutPrefix(object, "cluster/")
	if name, err := clustername.Parse(text); is && err == nil {
		return "cluster/" + name.Own
	}
	return object
}

// run makes the changes.
func (o *options) run(ctx context.Context, env *cli.Env) error {
	plan, err := o.compare(ctx, env)
	if err != nil {
		return err
	}
	if err := o.confirmed(env, plan); err != nil {
		return err
	}
	c, err := env.Connect()
	if err != nil {
		return err
	}
	r := &run{env: env, c: c, timeout: o.timeout, failed: map[string]string{}, made: map[string]made{}}
	report, err := r.all(ctx, plan)
	if e := env.Print(report, func(w *cli.Columns) { reportTable(w, report) }); e != nil {
		return e
	}
	return err
}

// confirmed refuses a plan that takes something away, unless the number of removals was named.
func (o *options) confirmed(env *cli.Env, p *v1.Plan) error {
	if o.confirm == p.Removals || p.Removals == 0 && o.confirm < 0 {
		return nil
	}
	for i := range p.Changes {
		if p.Changes[i].Removes {
			fmt.Fprintf(env.Err, "portcullis: %s\n", cli.Plain(p.Changes[i].Detail))
		}
	}
	what := "not done: it makes " + cli.Count(p.Removals, "removal")
	if o.confirm >= 0 {
		what += fmt.Sprintf(", not %d", o.confirm)
	}
	hint := "leave --confirm out to do it"
	if p.Removals > 0 {
		hint = fmt.Sprintf("add --confirm %d to do it", p.Removals)
	}
	return &cli.UsageError{Msg: what, Hint: hint}
}

// printPlan shows what would be done.
func printPlan(env *cli.Env, o *options, p *v1.Plan) error {
	return env.Print(p, func(w *cli.Columns) {
		if len(p.Changes) == 0 {
			w.Text("no difference")
		} else {
			w.Row("CHANGE", "OBJECT", "DETAIL")
			for i := range p.Changes {
				w.Row(p.Changes[i].Verb, p.Changes[i].Object, p.Changes[i].Detail)
			}
		}
		keptRows(w, p.Kept)
		if p.Removals > 0 && p.Removals != o.confirm {
			w.Gap()
			w.Text("%s: --confirm %d does it", cli.Count(p.Removals, "removal"), p.Removals)
		}
	})
}

func keptRows(w *cli.Columns, kept []v1.PlanNote) {
	if len(kept) == 0 {
		return
	}
	w.Gap()
	w.Row("KEPT", "WHY")
	for _, n := range kept {
		w.Row(n.Object, n.Detail)
	}
}
