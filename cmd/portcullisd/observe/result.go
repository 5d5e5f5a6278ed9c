package observe

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"portcullis/cmd/internal/terminal"
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/shadow"
)

// Result is what "portcullisd observe" says.
type Result struct {
	Noticed  bool            `json:"noticed"` // by jobs that run
	Summary  []Line          `json:"summary"`
	Foreign  []Foreign       `json:"foreign_p_keys"`
	SMPs     SMPs            `json:"smps"`
	Changes  []shadow.Change `json:"changes"`
	Managers []shadow.Where  `json:"managers"` // ports that are announced as those of Subnet Managers
	Silent   []string        `json:"silent"`
	Nodes    Nodes           `json:"nodes"`
	Notes    []string        `json:"notes"`
	Problems []string        `json:"problems"`
}

// Line sums up the changes of one kind.
type Line struct {
	Kind    shadow.Kind `json:"kind"`
	Changes int         `json:"changes"`
	Noticed int         `json:"noticed"`
	Text    string      `json:"text"`
}

// Foreign is a P_Key that no partition of the configuration explains.
type Foreign struct {
	shadow.PKeyEntry
	Text string `json:"text"`
}

// SMPs counts requests.
type SMPs struct {
	Asked    uint64 `json:"asked"` // that were sent
	Sets     uint64 `json:"sets"`  // that taking over would send
	Changing uint64 `json:"changing"`
	Renewals uint64 `json:"renewals"`
	ByKind   []Sets `json:"by_attribute"`
}

// Sets counts the requests of one attribute that write.
type Sets struct {
	Attribute string `json:"attribute"`
	shadow.Sets
}

// Nodes counts devices.
type Nodes struct {
	Switches int `json:"switches"`
	CAs      int `json:"cas"`
	Routers  int `json:"routers"`
}

// result makes the report. Where devices are silent that should answer, there is none.
func (s *observer) result() (*Result, error) {
	found := s.port.Report()
	if n := len(found.Silent); n > 0 && (n > s.o.Silent || slices.ContainsFunc(found.Silent, isFirst)) {
		return nil, tooSilent(n, found.Silent[0])
	}
	if len(found.Locked) > 0 {
		return nil, locked(found.Locked[0])
	}
	r := &Result{
		Changes: found.Changes, Managers: found.Masters, Notes: s.notes, Problems: s.problems,
		Nodes: Nodes{found.Devices[ib.NodeSwitch], found.Devices[ib.NodeCA], found.Devices[ib.NodeRouter]},
		SMPs:  SMPs{Asked: found.Asked, Renewals: found.Renewals},
	}
	for _, attr := range sortedKeys(found.Sets) {
		n := found.Sets[attr]
		r.SMPs.Sets += n.Sent
		r.SMPs.Changing += n.Changing
		r.SMPs.ByKind = append(r.SMPs.ByKind, Sets{attr.String(), *n})
	}
	for _, x := range found.Silent {
		r.Silent = append(r.Silent, "the device "+behind(x)+" does not answer: nothing is known of it")
	}
	for _, e := range found.Foreign(s.explains) {
		text := "taking over removes it"
		if e.Kept {
			text = "taking over leaves it there"
		}
		r.Foreign = append(r.Foreign, Foreign{e, fmt.Sprintf("%s holds %v, which no partition of the configuration explains: %s", place(e.Where), e.PKey, text)})
	}
	r.Noticed = found.Noticed() || len(r.Foreign) > 0
	r.sum()
	if found.Unplaced > 0 {
		r.Problems = append(r.Problems, fmt.Sprintf("%d requests that write are not in this report, as the device they are for is not known", found.Unplaced))
	}
	return r, nil
}

func sortedKeys(m map[mad.AttrID]*shadow.Sets) []mad.AttrID {
	out := make([]mad.AttrID, 0, len(m))
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}

// explains reports whether a partition of the configuration has a P_Key.
func (s *observer) explains(k ib.PKey) bool {
	if s.partitions == nil {
		return false
	}
	for _, p := range s.partitions.Rules().Partitions {
		if p.PKey.Base() == k.Base() {
			return true
		}
	}
	return false
}

// place names a port as a person finds it.
func place(w shadow.Where) string {
	text := terminal.Plain(w.Device)
	if w.Port != 0 {
		text += fmt.Sprintf(" port %d", w.Port)
	}
	if w.Behind != "" {
		text += fmt.Sprintf(" (at %s port %d)", terminal.Plain(w.Behind), w.BehindPort)
	}
	return text
}

// sum makes a line of each kind.
func (r *Result) sum() {
	for _, k := range shadow.Kinds() {
		l := Line{Kind: k}
		by := make(map[string]int) // by what is lost
		for i := range r.Changes {
			c := &r.Changes[i]
			if c.Kind != k {
				continue
			}
			l.Changes++
			if c.Noticed {
				l.Noticed++
			}
			if k == shadow.KindPKeyLost || k == shadow.KindPKeyMoved {
				by[c.What]++
			}
		}
		l.Text = fmt.Sprintf("%s: %s", nameOf(k), counted(l.Changes, "change"))
		if l.Noticed > 0 {
			l.Text += fmt.Sprintf(", of which jobs would notice %d", l.Noticed)
		}
		var parts []string
		for what, n := range by {
			verb := "loses"
			if k == shadow.KindPKeyMoved {
				verb = "has another index for"
			}
			parts = append(parts, fmt.Sprintf("%s %s %s", counted(n, "port"), plural(verb, n), what))
		}
		slices.Sort(parts)
		if len(parts) > 0 {
			l.Text += ": " + strings.Join(parts, ", ")
		}
		r.Summary = append(r.Summary, l)
	}
}

// plural puts a verb with its s into the plural.
func plural(verb string, n int) string {
	switch {
	case n == 1:
		return verb
	case strings.HasPrefix(verb, "has "):
		return "have " + strings.TrimPrefix(verb, "has ")
	default:
		return strings.TrimSuffix(verb, "s")
	}
}

func counted(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

func nameOf(k shadow.Kind) string {
	switch k {
	case shadow.KindLID:
		return "LIDs"
	case shadow.KindLMC:
		return "LMC"
	case shadow.KindPrefix:
		return "subnet prefix"
	case shadow.KindLink:
		return "links that go down"
	case shadow.KindState:
		return "ports that begin to carry data"
	case shadow.KindSM:
		return "SM LID, SM SL and trap timing"
	case shadow.KindMKey:
		return "M_Keys"
	case shadow.KindEnforcement:
		return "enforcement of P_Keys by switch ports"
	case shadow.KindMTU:
		return "MTU of links"
	case shadow.KindLanes:
		return "lanes in use"
	case shadow.KindSpeed:
		return "speeds and widths that are enabled"
	case shadow.KindPort:
		return "other settings of ports"
	case shadow.KindPKeyLost:
		return "P_Keys that hosts lose"
	case shadow.KindPKeyGained:
		return "P_Keys that hosts get"
	case shadow.KindPKeyMoved:
		return "P_Keys whose index changes"
	case shadow.KindPKeySwitch:
		return "P_Key tables of switch ports"
	case shadow.KindRouteLost:
		return "routes that are lost"
	case shadow.KindRouteMoved:
		return "routes by another port"
	case shadow.KindRouteGained:
		return "routes that come"
	case shadow.KindRouteUnused:
		return "routes of LIDs that no port has"
	case shadow.KindMulticast:
		return "multicast routes"
	case shadow.KindSLtoVL:
		return "SL-to-VL tables"
	case shadow.KindArbitration:
		return "VL arbitration"
	case shadow.KindAlias:
		return "alias GUIDs"
	case shadow.KindSwitch:
		return "settings of switches"
	default:
		return string(k)
	}
}

func (r *Result) writeJSON(w io.Writer) error {
	e := terminal.NewEncoder(w)
	e.SetIndent("", "  ")
	if err := e.Encode(r); err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	return nil
}

// shown is how many changes of one kind the text has room for.
const shown = 20

func (r *Result) writeText(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "Nothing was written. %d switches, %d CAs and %d routers were read with %d requests.\n", r.Nodes.Switches, r.Nodes.CAs, r.Nodes.Routers, r.SMPs.Asked)
	for _, m := range r.Managers {
		fmt.Fprintf(t, "Subnet Manager now: %s\n", place(m))
	}
	fmt.Fprintf(t, "\nTaking over would send %d Sets, of which %d write what is not there already; %d hosts are asked to register again.\n", r.SMPs.Sets, r.SMPs.Changing, r.SMPs.Renewals)
	for _, s := range r.SMPs.ByKind {
		fmt.Fprintf(t, "  %s\t%d\t%d of them change something\n", s.Attribute, s.Sent, s.Changing)
	}
	verdict := "Jobs that run would notice nothing."
	if r.Noticed {
		verdict = "Jobs that run would notice what is marked with *, and the P_Keys that are listed last."
	}
	fmt.Fprintf(t, "\n%s\n", verdict)
	for i := range r.Summary {
		l := &r.Summary[i]
		fmt.Fprintf(t, "%s %s\n", mark(l.Noticed > 0), l.Text)
	}
	r.writeChanges(t)
	for _, list := range []struct {
		title string
		lines []string
	}{
		{"P_Keys that no partition of the configuration explains", foreignTexts(r.Foreign)},
		{"Not read", r.Silent},
		{"Notes", r.Notes},
		{"Problems", r.Problems},
	} {
		if len(list.lines) == 0 {
			continue
		}
		fmt.Fprintf(t, "\n%s:\n", list.title)
		for _, line := range list.lines {
			fmt.Fprintf(t, "  %s\n", terminal.Plain(line))
		}
	}
	if err := t.Flush(); err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	return nil
}

// writeChanges lists changes, of each kind those first that jobs notice.
func (r *Result) writeChanges(t *tabwriter.Writer) {
	count := make(map[shadow.Kind]int)
	for i := range r.Changes {
		c := &r.Changes[i]
		if count[c.Kind]++; count[c.Kind] == 1 {
			fmt.Fprintf(t, "\n%s:\n", nameOf(c.Kind))
		}
		if count[c.Kind] > shown {
			continue
		}
		fmt.Fprintf(t, "%s %s\t%s\t%s -> %s\n", mark(c.Noticed), place(c.Where), terminal.Plain(c.What), c.From, c.To)
	}
	for _, k := range shadow.Kinds() {
		if more := count[k] - shown; more > 0 {
			fmt.Fprintf(t, "\n%s: %d more; -o json lists them\n", nameOf(k), more)
		}
	}
}

func mark(noticed bool) string {
	if noticed {
		return "*"
	}
	return " "
}

func foreignTexts(list []Foreign) (out []string) {
	for i := range list {
		out = append(out, list[i].Text)
	}
	return out
}
