package fabric

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

	"github.com/spf13/cobra"

	v1 "portcullis/api/v1"
	"portcullis/cmd/portcullis/cli"
)

func fabricLoad(env *cli.Env) *cobra.Command {
	var q v1.LoadQuery
	var limit uint
	cmd := &cobra.Command{
		Use: "load", Short: "List how busy links are, the busiest first", Args: cli.Operands(),
		Long: `List how busy the links of switches are, the busiest first: what each carried on
average between the last two readings of its counters, as a share of what it can
carry. SENDS is from the port on the left, RECEIVES to it. A link whose load is not
known comes last, with the reason. It is not idle.

A table has the first 50 links, unless --limit says otherwise. -o json has all.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := env.Connect()
			if err != nil {
				return err
			}
			q.Limit = v1.MaxPage
			page, err := gather(c.Fabric().Load(cmd.Context(), q))
			if err != nil {
				return err
			}
			slices.SortStableFunc(page.Items, busier)
			unknown := unknownLoads(page.Items)
			all := len(page.Items)
			page.Items = busiest(page.Items, limit, uint(all))
			return env.Print(page, func(w *cli.Columns) {
				page.Items = busiest(page.Items, limit, maxLoadRows)
				showLoads(w, page, all, unknown)
			})
		},
	}
	f := cmd.Flags()
	f.StringVar(&q.Node, "node", "", "only links of this node")
	f.BoolVar(&q.Trunks, "trunks", false, "only links between switches")
	f.UintVar(&limit, "limit", 0, "only this many links; 0: 50 in a table, else all")
	return cmd
}

// maxLoadRows is how many links a table lists unless it is asked for others.
const maxLoadRows = 50

// busiest returns the first links of a list: limit of them, or, where that is 0, as many as are listed without it.
func busiest(all []v1.FabricLoad, limit, without uint) []v1.FabricLoad {
	if limit == 0 {
		limit = without
	}
	return all[:min(limit, uint(len(all)))]
}

// busier sorts links by share, then by bytes, those of which nothing is known last.
func busier(a, b v1.FabricLoad) int {
	if a.Rate != nil && b.Rate != nil && a.Rate.Share == b.Rate.Share {
		return cmp.Compare(max(b.Rate.Xmit, b.Rate.Rcv), max(a.Rate.Xmit, a.Rate.Rcv))
	}
	share := func(l *v1.FabricLoad) float64 {
		if l.Rate == nil {
			return -1
		}
		return l.Rate.Share
	}
	return cmp.Compare(share(&b), share(&a))
}

func unknownLoads(all []v1.FabricLoad) (n int) {
	for i := range all {
		if all[i].Rate == nil {
			n++
		}
	}
	return n
}

func showLoads(w *cli.Columns, page *v1.Page[v1.FabricLoad], all, unknown int) {
	if len(page.Items) == 0 {
		w.Text("no such link is seen")
		unsettledNote(w, page.Settled)
		return
	}
	w.Row("A", "B", "HOST", "SHARE", "SENDS GB/S", "RECEIVES GB/S", "OF GB/S", "WAIT TICKS/S", "OVER", "AGE", "NOT KNOWN")
	for i := range page.Items {
		w.Row(loadRow(&page.Items[i])...)
	}
	if n := all - len(page.Items); n > 0 {
		w.Gap()
		w.Text("and %d more: --limit lists more of them, -o json all", n)
	}
	if unknown > 0 {
		w.Gap()
		w.Text("the load of %s of %d is not known", cli.Count(unknown, "link"), all)
	}
	unsettledNote(w, page.Settled)
}

func loadRow(l *v1.FabricLoad) []string {
	capacity := ""
	if l.Capacity > 0 {
		capacity = strconv.FormatFloat(8*float64(l.Capacity)/1e9, 'f', -1, 64)
	}
	r := l.Rate
	if r == nil {
		return []string{l.At, l.To, l.Host, "", "", "", capacity, "", "", "", whyNoLoad(l.State)}
	}
	wait := ""
	if r.Wait != nil {
		wait = strconv.FormatUint(*r.Wait, 10)
	}
	return []string{
		l.At, l.To, l.Host, fmt.Sprintf("%.1f %%", 100*r.Share), perSecond(r.Xmit), perSecond(r.Rcv), capacity, wait,
		cli.Seconds(r.Span), cli.Seconds(r.Age), "",
	}
}

// noLoad are the states of links of which no load is known, in words.
var noLoad = map[string]string{
	"unread": "the counters were not read lately", "once": "the counters were read only once", "restarted": "a counter went back",
	"implausible": "the counters grew by more than the link carries", "full": "a counter is at its largest value",
	"apart": "the last two readings are too near to each other or too far apart", "narrow": "the switch has no counters of 64 bits",
	"no-capacity": "width or speed of the link is not known",
}

// whyNoLoad says why no load is known. A later service may have other states.
func whyNoLoad(state string) string { return cmp.Or(noLoad[state], state) }

// perSecond returns bytes as gigabits.
func perSecond(b uint64) string { return fmt.Sprintf("%.2f", 8*float64(b)/1e9) }
