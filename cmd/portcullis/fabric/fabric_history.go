package fabric

import (
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	v1 "portcullis/api/v1"
	"portcullis/cmd/portcullis/cli"
)

// maxChanges is how many changes are read.
const maxChanges = 100_000

// changeList is what "fabric history" prints.
type changeList struct {
	Known *v1.FabricHistory `json:"known"`
	Items []v1.PastChange   `json:"items"`
	More  bool              `json:"more,omitempty"` // there are later changes that are not listed
}

func fabricHistory(env *cli.Env) *cobra.Command {
	var from, until string
	var limit uint
	cmd := &cobra.Command{
		Use: "history", Short: "List what changed in the fabric, out of the last day", Args: cli.Operands(),
		Long: `List what changed in the fabric between two times, the first change first: devices,
links and ports that appeared, changed or are gone, phases of hosts, and what was proven
of ports. The instance that leads records it, for as long as history.keep says. Of times
in which it did not, nothing is known: these are listed as "not known", and what changed
in them is not.

A table has the last 50 changes, unless --limit says otherwise. -o json has all, 100,000
at most.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			q := v1.PastChangeQuery{PageQuery: v1.PageQuery{Limit: v1.MaxPage}}
			var err error
			if q.From, err = cli.Moment("from", from); err != nil {
				return err
			}
			if q.Until, err = cli.Moment("until", until); err != nil {
				return err
			}
			if !q.From.IsZero() && !q.Until.IsZero() && q.Until.Before(q.From) {
				return &cli.UsageError{Msg: "--until is before --from", Hint: "exchange them"}
			}
			c, err := env.Connect()
			if err != nil {
				return err
			}
			out := &changeList{Items: []v1.PastChange{}}
			if out.Known, err = c.Fabric().History(cmd.Context()); err != nil {
				return err
			}
			for page, err := range c.Fabric().Changes(cmd.Context(), q) {
				if err != nil {
					return err
				}
				out.Items = append(out.Items, page.Items...)
				if out.More = page.Next != ""; len(out.Items) >= maxChanges {
					break
				}
			}
			if n := len(out.Items) - int(min(limit, maxChanges)); limit > 0 && n > 0 {
				out.Items = out.Items[n:]
				q.From = out.Items[0].Time // earlier gaps belong to changes that are not listed
			}
			return env.Print(out, func(w *cli.Columns) {
				rows := int(min(limit, maxChanges))
				if limit == 0 {
					rows = maxChangeRows
				}
				showHistory(w, out, &q, rows)
			})
		},
	}
	f := cmd.Flags()
	f.StringVar(&from, "from", "", "only changes from this time on, such as 2026-03-01T12:00:00Z")
	f.StringVar(&until, "until", "", "only changes until this time")
	f.UintVar(&limit, "limit", 0, "only the last changes, this many; 0: 50 in a table, else all")
	return cmd
}

// maxChangeRows is how many changes a table lists unless it is asked for others.
const maxChangeRows = 50

// listed is a row of the table: a change, or a gap.
type listed struct {
	at    time.Time
	cells []string
}

func showHistory(w *cli.Columns, l *changeList, q *v1.PastChangeQuery, limit int) {
	items := l.Items[max(0, len(l.Items)-limit):]
	var rows []listed
	for i := range items {
		c := &items[i]
		rows = append(rows, listed{c.Time, []string{cli.Stamp(c.Time), c.Kind, changedName(c), c.What, changedFields(c)}})
	}
	begin := q.From
	if len(items) < len(l.Items) {
		begin = items[0].Time // earlier gaps belong to changes that are not listed
	}
	for _, g := range l.Known.Gaps {
		if g.Until.After(begin) && (q.Until.IsZero() || g.From.Before(q.Until)) {
			rows = append(rows, listed{g.From, []string{cli.Stamp(g.From), "", "", "not known", "until " + cli.Stamp(g.Until) + ": " + g.Why}})
		}
	}
	slices.SortStableFunc(rows, func(a, b listed) int { return a.at.Compare(b.at) })
	if len(rows) > 0 {
		w.Row("TIME", "KIND", "OBJECT", "WHAT", "HOW")
		for _, r := range rows {
			w.Row(r.cells...)
		}
		w.Gap()
	}
	knownNote(w, l)
	if n := len(l.Items) - len(items); n > 0 {
		w.Text("and %d earlier changes: --limit lists more of them, -o json all", n)
	}
	if l.More {
		w.Text("and later changes: ask for them with --from %s", l.Items[len(l.Items)-1].Time.UTC().Format(time.RFC3339))
	}
}

// knownNote says of which times changes are known at all.
func knownNote(w *cli.Columns, l *changeList) {
	k := l.Known
	if k.From.IsZero() {
		w.Text("nothing was recorded yet")
	} else {
		if len(l.Items) == 0 {
			w.Text("no change is known in that time")
		}
		w.Text("known from %s until %s", cli.Stamp(k.From), cli.Stamp(k.Until))
	}
	if k.Cut > 0 {
		w.Text("and %d earlier times of which nothing is known, before %s", k.Cut, cli.Stamp(k.Gaps[0].From))
	}
	if k.Short {
		w.Text("earlier times were removed: there is room for no more (history.size)")
	}
	if why := k.Failure; why != "" {
		w.Text("nothing is recorded now: %s", why)
	} else if k.Why != "" {
		w.Text("nothing is known since: %s", k.Why)
	}
}

// changedName names what changed: as people know it, where it has such a name.
func changedName(c *v1.PastChange) string {
	if c.Name == "" {
		return c.Object
	}
	if c.Kind == "link" {
		return c.Name
	}
	return c.Name + " (" + c.Object + ")"
}

// changedFields says what was different. Of what appeared or is gone the name says enough.
func changedFields(c *v1.PastChange) string {
	var out []string
	for _, f := range c.Fields {
		switch {
		case c.What == "changed":
			out = append(out, f.Field+": "+orNone(f.Was)+" -> "+orNone(f.Now))
		case f.Field == "state" || f.Field == "phase" || f.Field == "verdict":
			out = append(out, f.Field+": "+f.Was+f.Now)
		}
	}
	return strings.Join(out, ", ")
}

func orNone(s string) string {
	if s == "" {
		return "none"
	}
	return s
}
