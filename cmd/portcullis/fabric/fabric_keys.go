package fabric

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"portcullis/api/client"
	v1 "portcullis/api/v1"
	"portcullis/cmd/portcullis/cli"
	"portcullis/fabricsm/ib"
)

func fabricKeys(env *cli.Env) *cobra.Command {
	var old bool
	c := &cobra.Command{
		Use: "keys", Short: "List devices with the state and age of their keys; move or retire keys", Args: cli.Operands(),
		Long: `List devices with the state and age of their keys; keys are never shown.

STATE is one of:
  held      the device has its key
  changing  a new key is being set
  withheld  the device is not where it was given its key
  stranded  the device answers under none of its keys
  refused   the device does not keep a key
  foreign   the device has a key that this subnet manager did not set
  returned  the key was taken off the device
  none      the device has no key
OLD is the reason why a key is older than others.`,
		RunE: func(cmd *cobra.Command, _ []string) error { return listKeys(cmd.Context(), env, old) },
	}
	c.Flags().BoolVar(&old, "old", false, "only devices whose key is old, or that do not have their present key")
	c.AddCommand(fabricMoveKey(env), fabricRetireKeys(env))
	return c
}

// fabricKeyList is what "fabric keys" prints.
type fabricKeyList struct {
	*v1.FabricKeys
	Items []v1.FabricKey `json:"items"`
}

func listKeys(ctx context.Context, env *cli.Env, old bool) error {
	c, err := env.Connect()
	if err != nil {
		return err
	}
	k, err := c.Keys().Get(ctx)
	if err != nil {
		return err
	}
	page, err := gather(c.Keys().Devices(ctx, v1.PageQuery{Limit: v1.MaxPage}))
	if err != nil {
		return err
	}
	if old {
		page.Items = slices.DeleteFunc(page.Items, func(k v1.FabricKey) bool { return k.State == "held" && k.Old == "" })
	}
	return env.Print(fabricKeyList{k, page.Items}, func(w *cli.Columns) {
		showKeys(w, k)
		if len(page.Items) > 0 {
			w.Gap()
			w.Row(keyHeader...)
		}
		for i := range page.Items {
			w.Row(keyRow(&page.Items[i])...)
		}
	})
}

func showKeys(w *cli.Columns, k *v1.FabricKeys) {
	defer showClasses(w, k.Classes)
	if !k.Managed {
		w.Text("this subnet manager sets no M_Keys")
		return
	}
	state := "set on devices whose place is " + k.Places
	switch {
	case k.Released:
		state = "removed from devices; portcullis fabric release-keys --resume sets them again"
	case k.Releasing:
		state = "being removed from devices"
	}
	w.Row("Keys", state)
	w.Row("Devices", counts(k.Devices))
	if len(k.Old) > 0 {
		w.Row("Old", counts(k.Old))
	}
	if k.Oldest > 0 {
		w.Row("Age", fmt.Sprintf("%s at most, %s in the middle", keyAge(k.Oldest), keyAge(k.Median)))
	}
	w.Row("Rotation", rotationText(&k.Rotation))
}

// showClasses writes how the keys of management classes stand.
func showClasses(w *cli.Columns, classes []v1.ClassKeys) {
	for i := range classes {
		c := &classes[i]
		text := fmt.Sprintf("%s: %s", c.Enable, counts(map[string]int{"settled": c.Settled, "working": c.Working, "absent": c.Absent, "failing": c.Failing}))
		if c.Single > 0 {
			text += fmt.Sprintf("; %d hold one key at a time", c.Single)
		}
		if c.Old > 0 {
			text += fmt.Sprintf("; %d old, %s at most", c.Old, keyAge(c.Oldest))
		}
		w.Row(c.Kind, text)
	}
}

// counts lists what was counted by name.
func counts[N int | uint64](of map[string]N) string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(of)) {
		if of[name] > 0 {
			all = append(all, fmt.Sprintf("%d %s", of[name], name))
		}
	}
	if len(all) == 0 {
		return "none"
	}
	return strings.Join(all, ", ")
}

func rotationText(r *v1.KeyRotation) string {
	switch {
	case r.Period == 0:
		return "off"
	case r.Turning > 0:
		return fmt.Sprintf("epoch %d, %d changing now", r.Epoch, r.Turning)
	case r.Epoch == 0:
		return fmt.Sprintf("every %s; none yet", keyAge(r.Period))
	default:
		return fmt.Sprintf("every %s; epoch %d since %s", keyAge(r.Period), r.Epoch, cli.Stamp(r.Began))
	}
}

// keyAge returns seconds as people say them.
func keyAge(seconds float64) string {
	d := time.Duration(seconds * float64(time.Second))
	switch {
	case d >= 48*time.Hour:
		return fmt.Sprintf("%dd%dh", int(d.Hours())/24, int(d.Hours())%24)
	case d >= time.Hour:
		return d.Round(time.Minute).String()
	default:
		return d.Round(time.Second).String()
	}
}

var keyHeader = []string{"AT", "GUID", "KEY", "STATE", "EPOCH", "AGE", "OLD", "BOUND TO"}

func keyRow(k *v1.FabricKey) []string {
	since, place := "", ""
	if k.Origin != "" {
		since = keyAge(k.Age)
	}
	if !k.Place.IsZero() {
		place = k.Place.String()
	}
	state := k.State
	if k.Exposed {
		state += ", shown to another device"
	}
	if !k.Lent.IsZero() {
		state += ", lent until " + cli.Stamp(k.Lent)
	}
	return []string{k.At, k.GUID.String(), k.Kind, state, strconv.Itoa(int(k.Epoch)), since, k.Old, place}
}

func fabricMoveKey(env *cli.Env) *cobra.Command {
	return &cobra.Command{
		Use: "move GUID [SWITCH/PORT]", Short: "Move the key of a device to another switch port", Args: cobra.RangeArgs(1, 2),
		Long: `Move the key of a device to another switch port than the one where it was given the key. The
key is sent to that port: inspect the device there first, not only the fabric. SWITCH/PORT is
needed only for a device that is silent because it holds its key. A device that was reset is
seen, and needs no port.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			g, err := ib.ParseGUID(args[0])
			if err != nil {
				return &cli.UsageError{Msg: err.Error(), Hint: "portcullis fabric keys lists port GUIDs"}
			}
			c, err := env.Connect()
			if err != nil {
				return err
			}
			m := v1.KeyMove{GUID: g}
			if len(args) > 1 {
				m.To = args[1]
			}
			k, err := c.Keys().Move(cmd.Context(), m)
			if err != nil {
				return err
			}
			return env.Print(k, func(w *cli.Columns) {
				w.Row(keyHeader...)
				w.Row(keyRow(k)...)
			})
		},
	}
}

func fabricRetireKeys(env *cli.Env) *cobra.Command {
	var yes bool
	c := &cobra.Command{
		Use: "retire GUID", Short: "Destroy the keys of a device that left permanently", Args: cli.Operands("GUID"),
		Long: `Destroy the keys of a device that left permanently, for example after an RMA. GUID is that
of its port, or of the switch. The device must be gone from the fabric. No key of an epoch
that it had is made again. If the device comes back with its old keys, the service has no key
to send: its port stays closed until the device is reset. Escrow kits made before still have
the keys.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			g, err := ib.ParseGUID(args[0])
			if err != nil {
				return &cli.UsageError{Msg: err.Error(), Hint: "portcullis fabric keys lists port GUIDs"}
			}
			if !yes {
				return &cli.UsageError{Msg: "a device whose keys are destroyed can no longer be managed", Hint: "add --yes if it left permanently"}
			}
			c, err := env.Connect()
			if err != nil {
				return err
			}
			k, err := c.Keys().Retire(cmd.Context(), v1.KeyRetirement{GUID: g})
			if err != nil {
				return err
			}
			return env.Print(k, func(w *cli.Columns) {
				w.Text("the keys of %v are destroyed", g)
				showKeys(w, k)
			})
		},
	}
	c.Flags().BoolVar(&yes, "yes", false, "do it")
	return c
}

func fabricReleaseKeys(env *cli.Env) *cobra.Command {
	var yes, resume bool
	var wait time.Duration
	c := &cobra.Command{
		Use: "release-keys", Short: "Remove the keys from all devices, before an uninstall", Args: cli.Operands(),
		Long: `Remove the keys from all devices, so that another subnet manager can take over. From then on
any host may reprogram the devices. No key is set until --resume, also after a restart of the
service. The command waits until this is done. It ends with status 1 if devices did not
answer: they keep their keys, so keep the store.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !yes && !resume {
				return &cli.UsageError{Msg: "this removes the protection of every device of the fabric", Hint: "add --yes if that is wanted"}
			}
			return releaseKeys(cmd.Context(), env, resume, wait)
		},
	}
	c.Flags().BoolVar(&yes, "yes", false, "do it")
	c.Flags().BoolVar(&resume, "resume", false, "set keys again")
	c.Flags().DurationVar(&wait, "wait", 10*time.Minute, "how long to wait until it is done")
	return c
}

// keysEvery is how often it is looked how far keys are.
const keysEvery = 500 * time.Millisecond

func releaseKeys(ctx context.Context, env *cli.Env, resume bool, wait time.Duration) error {
	c, err := env.Connect()
	if err != nil {
		return err
	}
	k, err := c.Keys().Release(ctx, v1.KeyRelease{Resume: resume})
	if err != nil {
		return err
	}
	if !resume {
		k, err = released(ctx, c, k, wait)
	}
	if err != nil {
		return err
	}
	if err := env.Print(k, func(w *cli.Columns) { showKeys(w, k) }); err != nil || resume {
		return err
	}
	return kept(k)
}

// released waits until keys were given back, as far as devices can be asked.
func released(ctx context.Context, c *client.Client, k *v1.FabricKeys, wait time.Duration) (*v1.FabricKeys, error) {
	tick := time.NewTicker(keysEvery)
	defer tick.Stop()
	late := time.NewTimer(wait)
	defer late.Stop()
	for !k.Released {
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-late.C:
			return nil, cli.Hint(fmt.Errorf("not done after %v: %s", wait, counts(k.Devices)), "it goes on; portcullis fabric keys shows the progress")
		case <-tick.C:
		}
		var err error
		if k, err = c.Keys().Get(ctx); err != nil {
			return nil, err
		}
	}
	return k, nil
}

// kept fails if devices have kept their keys.
func kept(k *v1.FabricKeys) error {
	n := k.Kept
	for state, count := range k.Devices {
		if state != "returned" && state != "none" {
			n += count
		}
	}
	if n == 0 {
		return nil
	}
	return cli.Hint(errors.New(cli.Count(n, "device")+" did not answer, and kept the key"),
		"keep the store and its root; portcullis fabric keys lists these devices, and their keys are removed when they answer")
}
