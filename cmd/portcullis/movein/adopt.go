package movein

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"portcullis/api/client"
	v1 "portcullis/api/v1"
	"portcullis/cmd/internal/input"
	"portcullis/cmd/portcullis/cli"
	"portcullis/fabricsm/ib"
)

func adoptCommand(env *cli.Env) *cobra.Command {
	c := cli.Group("adopt", "Keep the memberships of a fabric that runs jobs, until its hosts attest",
		adoptPlan(env), adoptStart(env), adoptConfirm(env), adoptList(env), adoptShow(env), adoptEnd(env))
	c.Long = `Keep the memberships that a fabric has when the service takes it over, though nothing is proven of
its hosts. Nothing is kept before a second person confirms what was listed. It ends when a host is
admitted, when the deadline passes, or when a person ends it.`
	return c
}

// adoptable is what "adopt plan" finds, and what "adopt start" reads.
type adoptable struct {
	Ports []v1.AdoptedPort `json:"ports"`
	// LeftOut are P_Keys that cannot be adopted as they are. A takeover removes them.
	LeftOut []string `json:"left_out"`
}

// observation is what is read of the report of "portcullisd observe".
type observation struct {
	Foreign []struct {
		Where struct {
			Device     string     `json:"device"`
			PortGUID   ib.GUID    `json:"port_guid"`
			BehindGUID ib.GUID    `json:"behind_guid"`
			BehindPort ib.PortNum `json:"behind_port"`
		} `json:"where"`
		PKey ib.PKey `json:"p_key"`
	} `json:"foreign_p_keys"`
}

// planOf lists what can be adopted, by port.
func planOf(o *observation) *adoptable {
	out := &adoptable{Ports: []v1.AdoptedPort{}, LeftOut: []string{}}
	at := map[ib.GUID]int{}
	for i := range o.Foreign {
		e := &o.Foreign[i]
		if !e.Where.PortGUID.Valid() || !e.Where.BehindGUID.Valid() || e.Where.BehindPort == 0 {
			out.LeftOut = append(out.LeftOut, fmt.Sprintf("P_Key %v of port %v (%s): the switch port that it is cabled to is not known", e.PKey, e.Where.PortGUID, e.Where.Device))
			continue
		}
		n, known := at[e.Where.PortGUID]
		if !known {
			n = len(out.Ports)
			at[e.Where.PortGUID] = n
			out.Ports = append(out.Ports, v1.AdoptedPort{
				GUID: e.Where.PortGUID, Place: ib.Place{Switch: e.Where.BehindGUID, Port: e.Where.BehindPort}, Device: short(e.Where.Device),
			})
		}
		p := &out.Ports[n]
		if i := slices.IndexFunc(p.PKeys, func(k ib.PKey) bool { return k.Base() == e.PKey.Base() }); i >= 0 {
			p.PKeys[i] |= e.PKey // a port that is both is a full member for all that it can do
			out.LeftOut = append(out.LeftOut, fmt.Sprintf("P_Key %v of port %v (%s): the port is full and limited member, and is kept as the full one", e.PKey.Limited(), p.GUID, e.Where.Device))
			continue
		}
		p.PKeys = append(p.PKeys, e.PKey)
	}
	return out
}

// short bounds a description that a device has of itself.
func short(device string) string {
	device = strings.ToValidUTF8(device, "?")
	return strings.ToValidUTF8(device[:min(len(device), 64)], "")
}

func (a *adoptable) memberships() (n int) {
	for i := range a.Ports {
		n += len(a.Ports[i].PKeys)
	}
	return n
}

func adoptPlan(env *cli.Env) *cobra.Command {
	return &cobra.Command{
		Use: "plan FILE", Short: "List what can be adopted, from a report of portcullisd observe", Args: cli.Operands("FILE"),
		Long: `List the P_Keys that can be adopted. FILE is what "portcullisd observe -o json" wrote without
--partitions. No service is needed. With -o json the list is what "portcullis adopt start" reads:
remove from it what is not to be kept. P_Keys that cannot be adopted as they are, with the reason,
are listed below.`,
		Example: `  portcullisd observe --config moved/portcullisd.yaml -o json >observed.json
  portcullis adopt plan observed.json
  portcullis adopt plan observed.json -o json >list.json`,
		RunE: func(_ *cobra.Command, args []string) error {
			data, err := input.ReadFile(args[0], input.Large)
			if errors.Is(err, os.ErrNotExist) {
				return fmt.Errorf("%w: portcullisd observe -o json >%s makes it", err, args[0])
			}
			if err != nil {
				return err
			}
			var o observation
			if err := json.Unmarshal(data, &o); err != nil {
				return fmt.Errorf("%s is no report of \"portcullisd observe -o json\": %w", args[0], err)
			}
			p := planOf(&o)
			return env.Print(p, func(w *cli.Columns) {
				w.Text("%d memberships of %d ports can be adopted", p.memberships(), len(p.Ports))
				w.Row("PORT GUID", "SWITCH PORT", "P_KEYS", "DEVICE")
				for i := range p.Ports {
					w.Row(p.Ports[i].GUID.String(), p.Ports[i].Place.String(), pkeys(p.Ports[i].PKeys), p.Ports[i].Device)
				}
				for _, why := range p.LeftOut {
					w.Text("left out: %s", why)
				}
			})
		},
	}
}

func pkeys(list []ib.PKey) string {
	texts := make([]string, len(list))
	for i, k := range list {
		texts[i] = k.String()
	}
	return strings.Join(texts, " ")
}

func adoptStart(env *cli.Env) *cobra.Command {
	var in v1.NewAdoption
	var within time.Duration
	c := &cobra.Command{
		Use: "start FILE --confirm N --reason WHY", Short: "Stage an adoption, which another person confirms", Args: cli.Operands("FILE"),
		Long: `Stage an adoption of what FILE lists, as "portcullis adopt plan -o json" wrote it. Another person
looks at it with "adopt show" and confirms it with "adopt confirm". --confirm names how many
memberships are listed.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			data, err := input.ReadFile(args[0], input.Large)
			if err != nil {
				return err
			}
			var list adoptable
			if err := json.Unmarshal(data, &list); err != nil {
				return fmt.Errorf("%s is no list of \"portcullis adopt plan -o json\": %w", args[0], err)
			}
			in.Ports, in.Deadline = list.Ports, time.Now().Add(within).UTC().Round(time.Second)
			if err := wantNumber(in.Confirm, in.Reason); err != nil {
				return err
			}
			return adoption(env, func(c client.Adoptions) (*v1.Adoption, error) { return c.Start(cmd.Context(), &in) })
		},
	}
	c.Flags().DurationVar(&within, "within", 14*24*time.Hour, "time in which the hosts must attest: 1h to 2160h")
	c.Flags().IntVar(&in.Confirm, "confirm", 0, "how many memberships are listed")
	c.Flags().StringVar(&in.Reason, "reason", "", "reason, for the audit log")
	return c
}

func wantNumber(n int, reason string) error {
	if n < 1 || reason == "" {
		return &cli.UsageError{Msg: "--confirm and --reason are needed", Hint: "--confirm names how many memberships it concerns, --reason is for the audit log"}
	}
	return nil
}

func adoptConfirm(env *cli.Env) *cobra.Command {
	var in v1.AdoptionConfirm
	var within time.Duration
	c := &cobra.Command{
		Use: "confirm ID --digest DIGEST --confirm N", Short: "Confirm an adoption as the second person", Args: cli.Operands("ID"),
		Long: `Confirm an adoption that another person staged: its memberships are kept from now on. --digest
is that of "portcullis adopt show", or its first 12 digits.

For one that a takeover found, the first person names with --within the time in which the hosts must
attest. The second person confirms it without. It is kept in the meantime.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if in.Digest == "" || in.Confirm < 1 {
				return &cli.UsageError{Msg: "--digest and --confirm are needed", Hint: "look at it first: portcullis adopt show " + args[0]}
			}
			if within != 0 {
				in.Deadline = time.Now().Add(within).UTC().Round(time.Second)
			}
			return adoption(env, func(c client.Adoptions) (*v1.Adoption, error) { return c.Confirm(cmd.Context(), args[0], in) })
		},
	}
	c.Flags().StringVar(&in.Digest, "digest", "", "digest of the adoption that was looked at")
	c.Flags().IntVar(&in.Confirm, "confirm", 0, "how many memberships it keeps")
	c.Flags().DurationVar(&within, "within", 0, "of one that a takeover found: time in which the hosts must attest, 1h to 2160h")
	return c
}

func adoptList(env *cli.Env) *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List adoptions", Args: cli.Operands(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := env.Connect()
			if err != nil {
				return err
			}
			l, err := c.Adoptions().List(cmd.Context())
			if err != nil {
				return err
			}
			return env.Print(l, func(w *cli.Columns) { showAdoptions(w, l.Items) })
		},
	}
}

func showAdoptions(w *cli.Columns, list []v1.Adoption) {
	w.Row("ID", "STATE", "MEMBERSHIPS", "DEADLINE", "BY", "CONFIRMED BY", "DIGEST", "REASON")
	for i := range list {
		a := &list[i]
		w.Row(a.ID, a.State, strconv.Itoa(a.Memberships), cli.Stamp(a.Deadline), a.By, a.ConfirmedBy, a.Digest[:min(len(a.Digest), 12)], a.Reason)
	}
}

func adoptShow(env *cli.Env) *cobra.Command {
	return &cobra.Command{
		Use: "show ID", Short: "Show an adoption with its memberships", Args: cli.Operands("ID"),
		Long: `Show an adoption with its memberships. Nothing is proven of their hosts. kept: read back from switch
port and adapter; waiting: not read back; refused: the fabric cannot have it; leaving: ended, and not
proven absent yet.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := env.Connect()
			if err != nil {
				return err
			}
			a, err := c.Adoptions().Get(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			return env.Print(a, func(w *cli.Columns) {
				showAdoptions(w, []v1.Adoption{a.Adoption})
				w.Gap()
				w.Row("PORT GUID", "SWITCH PORT", "P_KEY", "STATE", "HOST", "DEVICE", "DETAIL")
				for i := range a.Members {
					m := &a.Members[i]
					w.Row(m.GUID.String(), m.Place.String(), m.PKey.String(), m.State, m.Host, m.Device, m.Detail)
				}
			})
		},
	}
}

func adoptEnd(env *cli.Env) *cobra.Command {
	var in v1.AdoptionEnd
	var ports, keys []string
	c := &cobra.Command{
		Use: "end ID [--all | --port GUID | --p-key P_KEY] --reason WHY", Short: "End the adoption of memberships: their ports lose them", Args: cli.Operands("ID"),
		Long: `End the adoption of all memberships, or of those of some ports or P_Keys: the ports lose them.
--confirm names how many end; an adoption that is not confirmed ends with --all and without it.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if in.Reason == "" || in.All == (len(ports)+len(keys) > 0) {
				return &cli.UsageError{Msg: "want --all, or --port and --p-key, and --reason", Hint: "portcullis adopt show " + args[0] + " lists the memberships"}
			}
			var err error
			if in.Ports, err = each(ports, ib.ParseGUID); err != nil {
				return err
			}
			if in.PKeys, err = each(keys, ib.ParsePKey); err != nil {
				return err
			}
			return adoption(env, func(c client.Adoptions) (*v1.Adoption, error) { return c.End(cmd.Context(), args[0], &in) })
		},
	}
	c.Flags().BoolVar(&in.All, "all", false, "all memberships")
	c.Flags().StringSliceVar(&ports, "port", nil, "GUID of a port; may be repeated")
	c.Flags().StringSliceVar(&keys, "p-key", nil, "P_Key; may be repeated")
	c.Flags().IntVar(&in.Confirm, "confirm", 0, "how many memberships end")
	c.Flags().StringVar(&in.Reason, "reason", "", "reason, for the audit log")
	return c
}

// adoption does something about an adoption, and prints it.
func adoption(env *cli.Env, do func(client.Adoptions) (*v1.Adoption, error)) error {
	c, err := env.Connect()
	if err != nil {
		return err
	}
	a, err := do(c.Adoptions())
	if err != nil {
		return err
	}
	return env.Print(a, func(w *cli.Columns) { showAdoptions(w, []v1.Adoption{*a}) })
}

// each reads texts.
func each[T any](texts []string, read func(string) (T, error)) (out []T, err error) {
	for _, text := range texts {
		v, one := read(text)
		out, err = append(out, v), errors.Join(err, one)
	}
	return out, err
}
