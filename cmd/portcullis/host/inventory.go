package host

import (
	"cmp"
	"fmt"

	"github.com/spf13/cobra"

	v1 "portcullis/api/v1"
	"portcullis/cmd/portcullis/cli"
)

func inventoryCommand(env *cli.Env) *cobra.Command {
	return cli.Group("inventory", "Import, export and show the inventory of racks, switches, hosts and cables", inventoryImport(env), inventoryExport(env), inventoryRemove(env), inventoryShow(env), inventoryCheck(env), inventoryRepair(env), inventoryDenied(env))
}

func inventoryImport(env *cli.Env) *cobra.Command {
	var dryRun, yes bool
	var in sources
	var t v1.RepairTicket
	cmd := &cobra.Command{
		Use:   "import FILE... [--form FORM] [--dry-run]",
		Short: "Import inventory and cabling files, all or nothing",
		Long: `Import inventory and cabling files, all or nothing.

A known host, whose evidence was accepted before, gets another EK only with the consent of two
persons. With --ticket and --reason its row is staged and the rest is imported; another person
then confirms the row with "inventory repair". Without a ticket nothing is imported.

With --form the files are of another form than YAML: rack manifests (manifest in JSON, csv), each
with its signature in FILE.sig, or files of other products. What they change is shown first, and
imported with --yes.`,
		Args: cli.Operands("FILE..."),
		RunE: func(cmd *cobra.Command, args []string) error {
			files, err := in.read(env, args)
			if err != nil {
				return err
			}
			c, err := env.Connect()
			if err != nil {
				return err
			}
			ask := in.form != formYAML && !yes && !dryRun
			report, err := c.Inventory().Import(cmd.Context(), files, t, dryRun || ask)
			if err != nil {
				return err
			}
			if err := env.Print(report, func(w *cli.Columns) { showImport(w, report) }); err != nil || !ask {
				return err
			}
			return env.Confirm(false, "the import would change the inventory as shown")
		},
	}
	f := cmd.Flags()
	f.BoolVar(&dryRun, "dry-run", false, "say what would change, and change nothing")
	f.BoolVar(&yes, "yes", false, "import files of another form than YAML; without this, only show what they would change")
	in.register(cmd)
	f.StringVar(&t.Ticket, "ticket", "", "ticket of the repair because of which known hosts get another EK")
	f.StringVar(&t.Reason, "reason", "", "reason for it, for the person who confirms it")
	return cmd
}

func inventoryExport(env *cli.Env) *cobra.Command {
	return &cobra.Command{
		Use: "export", Short: "Write all inventory as a file that can be imported", Args: cli.Operands(),
		Long: `Write all inventory, with its cables, as a file that "inventory import" reads. Importing this
file unchanged changes nothing.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := env.Connect()
			if err != nil {
				return err
			}
			file, err := c.Inventory().Export(cmd.Context())
			if err != nil {
				return err
			}
			_, err = env.Out.Write(file)
			return err
		},
	}
}

func showImport(w *cli.Columns, r *v1.ImportReport) {
	done := "imported"
	if r.DryRun {
		done = "would be imported (dry run, nothing was changed)"
	}
	w.Text("%d hosts new, %d changed, %d unchanged: %s", len(r.Added), len(r.Changed), r.Unchanged, done)
	if n := len(r.Staged); n > 0 {
		w.Text("%d hosts staged, not imported: another person has to confirm each", n)
	}
	if r.LeftOut > 0 {
		w.Text("%d cables left out: no host of the inventory has their ports", r.LeftOut)
	}
	for _, text := range r.Warnings {
		w.Text("warning: %s", text)
	}
	listHosts(w, "new", r.Added)
	for i := range r.Equipment {
		e := &r.Equipment[i]
		if i == mostListed {
			w.Row("and more", fmt.Sprintf("%d changes of sites, racks, switches, stock and cables; -o json lists all", len(r.Equipment)-i))
			break
		}
		w.Row(e.What, e.Kind, e.Object)
		for _, f := range e.Fields {
			w.Row("", "", f)
		}
	}
	for _, c := range r.Changed {
		for _, f := range c.Fields {
			w.Row("changed", cmp.Or(c.Where, c.Host), f)
		}
	}
	for i := range r.Staged {
		s := &r.Staged[i]
		next := "waits for a person other than " + s.By + ": portcullis inventory repair show " + s.Host
		if r.DryRun {
			next = "needs two persons: with --ticket and --reason it would be staged"
		}
		for _, f := range s.Fields {
			w.Row("staged", s.Host, f)
		}
		w.Row("staged", s.Host, next)
	}
	listHosts(w, "not in these files, unchanged", r.NotInFile)
}

// mostListed bounds a list that people read; -o json has all of it.
const mostListed = 20

func listHosts(w *cli.Columns, what string, ids []string) {
	for _, id := range ids[:min(len(ids), mostListed)] {
		w.Row(what, id)
	}
	if more := len(ids) - mostListed; more > 0 {
		w.Row(what, fmt.Sprintf("and %d more; -o json lists all", more))
	}
}
