package fabric

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"portcullis/api/client"
	v1 "portcullis/api/v1"
	"portcullis/cmd/portcullis/cli"
)

func verifyCommand(env *cli.Env) *cobra.Command {
	var in v1.IsolationQuery
	var last bool
	c := &cobra.Command{
		Use: "verify [--tenant TENANT] [--assume-membership] [--last]", Short: "Prove from the tables of devices that tenants are isolated, or show a packet that passes", Args: cli.Operands(),
		Long: `Have the service read the tables of all devices, past the Subnet Manager, and prove that no packet
passes from a port of one tenant to a port of another. Where a packet passes, it is shown hop by
hop, with the smallest change that stops it. What was not read counts as letting every packet pass.
Subnet administration is asked, too, as a sample of ports may ask it without a key. Where it names
to one party a port of another one with which it shares no P_Key, or shows a key, that is shown, and
the two are not proven to be isolated.
With --last nothing is read: shown is what was found when all tenants were examined last, at
request or by the service itself. What is older than its bound, which is shown, is not proven.

Exit status: 0 everything is isolated, 1 a packet passes, 2 nothing was examined, 7 something is
not proven: tables were not read, or ports of tenants are missing.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if last && in != (v1.IsolationQuery{}) {
				return &cli.UsageError{
					Msg: "--last shows what was found of all tenants, under the assumption of the service", Hint: "leave --tenant and --assume-membership out",
				}
			}
			c, err := env.Connect()
			if err != nil {
				return cli.NotCompared(err)
			}
			if last {
				return lastVerified(cmd.Context(), env, c)
			}
			r, err := c.VerifyIsolation(cmd.Context(), in)
			if err != nil {
				return cli.NotCompared(err)
			}
			if err := env.Print(r, func(w *cli.Columns) { showIsolation(w, r) }); err != nil {
				return cli.NotCompared(err)
			}
			return verdict(r)
		},
	}
	c.Flags().BoolVar(&in.Membership, "assume-membership", false, "assume that switches refuse inbound packets that claim full membership where the port is a limited member")
	c.Flags().BoolVar(&last, "last", false, "show what was found last, and read nothing")
	c.Flags().StringVar(&in.Tenant, "tenant", "", "examine only pairs of this tenant")
	c.AddCommand(verifyPorts(env))
	return c
}

// lastVerified shows what was found last. A packet that passed then passes until something else is found; that none did proves
// nothing once it is old.
func lastVerified(ctx context.Context, env *cli.Env, c *client.Client) error {
	k, err := c.LastIsolation(ctx)
	if err != nil {
		return cli.NotCompared(err)
	}
	if err := env.Print(k, func(w *cli.Columns) { showKept(w, k) }); err != nil {
		return cli.NotCompared(err)
	}
	err = verdict(&k.Found)
	if err == nil && !k.Current {
		return cli.ExitWith(cli.ExitNotVerifiable)
	}
	return err
}

func showKept(w *cli.Columns, k *v1.IsolationKept) {
	by := ", at request"
	if k.By == v1.ByItself {
		by = ", by the service itself"
	}
	showAge(w, k.Age, k.MaxAge, k.Current, by)
	if k.Every > 0 {
		w.Text("the service examines all tenants every %v", seconds(k.Every))
	} else {
		w.Text("the service examines tenants at request alone")
	}
	if k.Failure != "" {
		w.Text("a newer attempt of the service failed: %s", k.Failure)
	}
	w.Gap()
	showIsolation(w, &k.Found)
}

func seconds(s float64) time.Duration {
	return time.Duration(s * float64(time.Second)).Round(time.Second)
}

// showAge says when something was examined, by what, and for how long that counts.
func showAge(w *cli.Columns, age, most float64, current bool, by string) {
	text := fmt.Sprintf("examined %v ago%s", seconds(age), by)
	if !current {
		text = "NOT PROVEN ANY MORE: " + text
	}
	w.Text("%s; it counts for %v", text, seconds(most))
}

// verdict returns the error that makes the exit status. A verdict that this program does not know is no proof.
func verdict(r *v1.Isolation) error {
	switch r.Verdict {
	case v1.Isolated:
		return nil
	case v1.Leaks:
		return cli.ErrNo
	case v1.IsolationUnknown:
		return cli.ExitWith(cli.ExitNotVerifiable)
	default:
		return cli.NotCompared(errors.New("the service answered a verdict that this program does not know: update it"))
	}
}

// verdictWords say verdicts to people.
var verdictWords = map[string]string{v1.Isolated: "isolated", v1.Leaks: "NOT ISOLATED", v1.IsolationUnknown: "not proven"}

func showIsolation(w *cli.Columns, r *v1.Isolation) {
	whom := "tenants"
	if r.Tenant != "" {
		whom = "tenant " + r.Tenant
	}
	text := fmt.Sprintf("%s: %s", whom, verdictWords[r.Verdict])
	if r.Reason != "" {
		text += ": " + r.Reason
	}
	w.Text("%s", text)
	w.Text("%s isolated, %d with a packet that passes, %d not proven", cli.Count(r.Pairs.Isolated, "pair"), r.Pairs.Leaks, r.Pairs.Unknown)
	h := r.Held
	w.Text("held by switches and adapters, each alone: %d; by switches alone: %d; by adapters alone: %d; by both together: %d", h.Each, h.Switches, h.Adapters, h.Together)
	w.Gap()
	w.Row("PARTY", "VERDICT", "PORTS", "FOUND", "ISOLATED", "LEAKS", "NOT PROVEN")
	for i := range r.Parties {
		p := &r.Parties[i]
		n := func(v int) string { return fmt.Sprint(v) }
		w.Row(p.Name, verdictWords[p.Verdict], n(p.Declared), n(p.Found), n(p.Pairs.Isolated), n(p.Pairs.Leaks), n(p.Pairs.Unknown))
	}
	for i := range r.Examples {
		w.Gap()
		showExample(w, &r.Examples[i])
	}
	showLists(w, r)
	showAdministration(w, &r.Administration)
	showBounds(w, &r.Bounds)
}

func showExample(w *cli.Columns, e *v1.IsolationExample) {
	packet, passes := fmt.Sprintf("a packet with P_Key %v", e.PKey), "passes"
	if e.Raw {
		packet = "a raw packet"
	}
	if !e.Certain {
		passes = "may pass"
	}
	if e.DLID != 0 {
		packet += " to LID " + cli.LID(e.DLID)
	}
	w.Text("%s to %s: %s %s", e.From, e.To, packet, passes)
	for i, h := range e.Hops {
		where := h.Device
		if h.In != 0 {
			where += fmt.Sprintf(", in by port %d", h.In)
		}
		if h.Out != 0 {
			where += fmt.Sprintf(", out by port %d", h.Out)
		}
		w.Text("  %d. %s", i+1, where)
		for _, why := range h.Passed {
			w.Text("       %s", why)
		}
	}
	w.Text("  cure: %s", e.Cure)
}

func showLists(w *cli.Columns, r *v1.Isolation) {
	more := func(all, shown int) {
		if all > shown {
			w.Text("and %d more", all-shown)
		}
	}
	if len(r.ByRoutes) > 0 {
		w.Gap()
		w.Row("KEPT APART BY ROUTES ALONE", "AND")
		for _, p := range r.ByRoutes {
			w.Row(p.A, p.B)
		}
	}
	if len(r.Missing) > 0 {
		w.Gap()
		w.Row("MISSING PORT", "HOST", "TENANT", "DECLARED AT", "CAUSE")
		for _, m := range r.Missing {
			w.Row(cli.GUID(m.GUID), m.Host, m.Party, m.Place.String(), m.Cause)
		}
		more(r.Bounds.Missing, len(r.Missing))
	}
	if len(r.Undeclared) > 0 {
		w.Gap()
		w.Row("UNDECLARED PORT", "AT", "CAUSE")
		for _, u := range r.Undeclared {
			w.Row(cli.GUID(u.GUID), u.Place.String(), u.Cause)
		}
		more(r.Bounds.Undeclared, len(r.Undeclared))
	}
	if len(r.Ghosts) > 0 {
		w.Gap()
		w.Row("GHOST MEMBER AT", "PORT", "P_KEYS", "IN THE TABLE OF")
		for i := range r.Ghosts {
			g, keys := &r.Ghosts[i], make([]string, len(r.Ghosts[i].PKeys))
			for j, k := range g.PKeys {
				keys[j] = k.String()
			}
			w.Row(g.Place.String(), cli.GUID(g.GUID), strings.Join(keys, " "), g.Held)
		}
		more(r.Bounds.Ghosts, len(r.Ghosts))
	}
	if len(r.Unread) > 0 {
		w.Gap()
		w.Row("NOT READ", "OF", "CAUSE")
		for _, u := range r.Unread {
			w.Row(u.What, u.Where, u.Cause)
		}
		more(r.Bounds.Unread, len(r.Unread))
	}
}

func showBounds(w *cli.Columns, b *v1.IsolationBounds) {
	w.Gap()
	began := b.Newest()
	w.Text("read %s in %v by %s: %s of which %s, %s of hosts; %s not read", began.Format(time.RFC3339), b.Ended.Sub(began).Round(time.Millisecond),
		cli.Count(b.Requests, "request"), cli.Count(b.Devices, "device"), cli.Count(b.Switches, "switch"), cli.Count(b.Ends, "port"), cli.Count(b.Unread, "value"))
	if b.Again != nil {
		w.Text("that was what the Subnet Manager had touched; everything was read from %s on", b.Begun.Format(time.RFC3339))
	}
	w.Text("assumed:")
	for _, a := range b.Assumptions {
		w.Text("  %s", a)
	}
}
