package host

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	v1 "portcullis/api/v1"
	"portcullis/cmd/portcullis/cli"
)

// lastEvents is how many events are shown of a host.
const lastEvents = 5

// why says whether a host has its network, and what it waits for.
type why struct {
	Host     string     `json:"host"`
	Network  string     `json:"network"` // yes, in part or no
	Answer   string     `json:"answer"`
	Tenant   string     `json:"tenant,omitempty"`
	Cluster  string     `json:"cluster,omitempty"`
	Phase    string     `json:"phase"`           // with its time
	State    string     `json:"state,omitempty"` // as host show has it
	WaitsFor string     `json:"waits_for,omitempty"`
	Next     string     `json:"next,omitempty"` // what to do
	Guards   []v1.Guard `json:"guards"`         // all that are not met, in their order
	Events   []v1.Event `json:"events"`         // the last first
	NoEvents string     `json:"no_events,omitempty"`
}

// Whether a host has its network.
const (
	networkYes    = "yes"
	networkInPart = "in part"
	networkNo     = "no"
)

// explain says why a host has its network or not. It rests on what the service shows of the host alone.
func explain(h *v1.Host) *why {
	s := &h.Status
	w := &why{Host: h.ID, Tenant: h.Tenant, Cluster: h.Cluster, Phase: phaseSince(s), Guards: []v1.Guard{}, Events: []v1.Event{}}
	if s.State != "" {
		w.State = state(s)
	}
	for _, g := range s.Guards {
		if !g.Met {
			w.Guards = append(w.Guards, g)
		}
	}
	reason := h.WhyNot()
	switch {
	case s.Phase == v1.PhaseAdmitted && reason == "":
		w.Network = networkYes
		w.Answer = fmt.Sprintf("host %s has its network: it is admitted to cluster %s with P_Key %v", h.ID, h.Cluster, s.PKey)
		return w
	case s.Phase == v1.PhaseAdmitted:
		w.Network = networkInPart
		w.Answer = fmt.Sprintf("host %s is admitted to cluster %s, and something is not as it should be: %s", h.ID, h.Cluster, reason)
	case s.Phase == v1.PhaseReleasing:
		w.Network = networkNo
		w.Answer = fmt.Sprintf("host %s is being released: it is not proven yet that its ports lost their P_Key", h.ID)
	case reason != "":
		w.Network = networkNo
		w.Answer = fmt.Sprintf("host %s has no network: %s", h.ID, reason)
	default:
		w.Network = networkNo
		w.Answer = fmt.Sprintf("host %s has no network: it is in no cluster", h.ID)
	}
	w.WaitsFor, w.Next = next(h)
	return w
}

// next says what a host waits for, and what to do. The first guard that is not met decides.
func next(h *v1.Host) (waits, do string) {
	if c := h.Status.Conflicts; len(c) > 0 {
		return "an operator, who finds out which host has GUID " + c[0].GUID.String(),
			fmt.Sprintf("correct cable or inventory of %s or %s, then: portcullis host guid-resolved %s --reason TEXT", h.ID, c[0].With, h.ID)
	}
	if h.Status.Phase == v1.PhaseReleasing {
		return "the Subnet Manager, which reads back the tables of its switch ports", "portcullis sm show; portcullis fabric diff --wanted --host " + h.ID
	}
	if h.Cluster == "" {
		return "an operator", fmt.Sprintf("portcullis host assign %s --cluster CLUSTER", h.ID)
	}
	i := slices.IndexFunc(h.Status.Guards, func(g v1.Guard) bool { return !g.Met })
	if i < 0 {
		return "nothing that the service shows", "portcullis host show " + h.ID
	}
	switch name := h.Status.Guards[i].Name; name {
	case v1.GuardAssigned:
		return "an operator", fmt.Sprintf("portcullis host assign %s --cluster CLUSTER", h.ID)
	case v1.GuardAttested:
		return "the host, which attests from its provisioning image" + window(h), "on the host: portcullis-agent doctor, then portcullis-agent provision" + denial(h)
	case v1.GuardSealed:
		return "the host, which ends its provisioning" + window(h), "on the host: portcullis-agent provision"
	case v1.GuardCabled:
		return "an operator, who completes the inventory", "portcullis inventory show host " + h.ID + "; then portcullis inventory import FILE"
	case v1.GuardSeen:
		return "a cable, or a port that comes up where inventory has it", "portcullis inventory check; portcullis fabric ports"
	case v1.GuardCapacity:
		return "room in the P_Key table of a port", "portcullis cluster use CLUSTER SHARED --stop for a shared cluster that is not needed"
	case v1.GuardReview:
		return "an operator, who reviews the restored state", "portcullis restore review"
	case v1.GuardClock:
		return "a clock that can be believed", "portcullis clock show"
	case v1.GuardProgrammed:
		return "the Subnet Manager, which programs and reads back its ports", "portcullis sm show; portcullis fabric diff --wanted --host " + h.ID
	default:
		return "what guard " + name + " says", "portcullis host show " + h.ID
	}
}

// window says until when a host may attest.
func window(h *v1.Host) string {
	if h.Status.Window.IsZero() {
		return ""
	}
	return ", until " + cli.Stamp(h.Status.Window)
}

// denial says why evidence was refused last.
func denial(h *v1.Host) string {
	d := h.Status.LastDenial
	if d == nil {
		return ""
	}
	return fmt.Sprintf("; its last evidence was refused at %s (%s: %s)", cli.Stamp(d.Time), d.Code, d.Detail)
}

func whyCommand(env *cli.Env) *cobra.Command {
	return &cobra.Command{
		Use: "why HOST", Short: "Say why a host has its network, or why not", Args: cli.Operands("HOST"),
		Long: `Say whether a host has its network, and if not: which guard holds it, since when, what it
waits for and what to do next. Guards that are not met and the last events of the host follow.
"portcullis host show" has all that is known of the host.

Events are shown to roles that may list them.`,
		Example:           "  portcullis why compute-17",
		ValidArgsFunction: env.CompleteHosts,
		RunE: func(cmd *cobra.Command, args []string) error {
			c, h, err := getHost(cmd, env, args[0])
			if err != nil {
				return err
			}
			w := explain(h)
			events, err := c.Audit().Events(cmd.Context(), v1.EventQuery{Host: h.ID})
			if err != nil {
				w.NoEvents = err.Error()
			} else {
				w.Events = append(w.Events, events.Items[:min(len(events.Items), lastEvents)]...)
			}
			return env.Print(w, func(t *cli.Columns) { showWhy(t, w) })
		},
	}
}

func showWhy(t *cli.Columns, w *why) {
	t.Text("%s", w.Network+": "+w.Answer)
	t.Gap()
	t.Row("Phase", w.Phase)
	if w.State != "" {
		t.Row("State", w.State)
	}
	t.Row("Tenant", w.Tenant)
	t.Row("Cluster", w.Cluster)
	if w.WaitsFor != "" {
		t.Row("Waits for", w.WaitsFor)
		t.Row("Next", w.Next)
	}
	if len(w.Guards) > 0 {
		t.Gap()
		t.Row("GUARD NOT MET", "WHY NOT")
		for _, g := range w.Guards {
			t.Row(g.Name, g.Detail)
		}
	}
	t.Gap()
	switch {
	case w.NoEvents != "":
		t.Text("no events are shown: %s", w.NoEvents)
	case len(w.Events) == 0:
		t.Text("no events of this host")
	default:
		t.Row("LAST EVENTS", "SEVERITY", "EVENT", "SEEN", "DO")
		for i := range w.Events {
			e := &w.Events[i]
			t.Row(cli.Stamp(e.Last), e.Severity, e.Type, strings.TrimSpace(e.Seen), e.Do)
		}
	}
}
