package main

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
	"portcullis/fabricsm/ib"
)

func (a *app) fabricKeys() *cobra.Command {
	var old bool
	c := &cobra.Command{
		Use: "keys", Short: "List devices with the state and age of their keys; move keys, and retire them", Args: operands(),
		Long: `List devices with the state and age of their keys; never a key.

STATE is held, changing, withheld (the device is not where it was given its key),
stranded (it answers under none of its keys), refused (it does not keep one), foreign
(somebody else gave it one), returned or none. OLD says why a key is older than others.`,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.listKeys(cmd.Context(), old) },
	}
	c.Flags().BoolVar(&old, "old", false, "only devices whose key is old, or that are not on their key")
	c.AddCommand(a.fabricMoveKey(), a.fabricRetireKeys())
	return c
}

// fabricKeyList is what "fabric keys" prints.
type fabricKeyList struct {
	*v1.FabricKeys
	Items []v1.FabricKey `json:"items"`
}

func (a *app) listKeys(ctx context.Context, old bool) error {
	c, err := a.connect()
	if err != nil {
		return err
	}
	k, err := c.Keys(ctx)
	if err != nil {
		return err
	}
	page, err := gather(c.DeviceKeys(ctx, v1.PageQuery{Limit: v1.MaxPage}))
	if err != nil {
		return err
	}
	if old {
		page.Items = slices.DeleteFunc(page.Items, func(k v1.FabricKey) bool { return k.State == "held" && k.Old == "" })
	}
	return a.print(fabricKeyList{k, page.Items}, func(w *columns) {
		showKeys(w, k)
		if len(page.Items) > 0 {
			w.gap()
			w.row(keyHeader...)
		}
		for i := range page.Items {
			w.row(keyRow(&page.Items[i])...)
		}
	})
}

func showKeys(w *columns, k *v1.FabricKeys) {
	defer showClasses(w, k.Classes)
	if !k.Managed {
		w.text("devices get no M_Keys from this subnet manager")
		return
	}
	state := "given out where devices are " + k.Places
	switch {
	case k.Released:
		state = "given back; portcullis fabric release-keys --resume gives them out again"
	case k.Releasing:
		state = "being given back"
	}
	w.row("Keys", state)
	w.row("Devices", counts(k.Devices))
	if len(k.Old) > 0 {
		w.row("Old", counts(k.Old))
	}
	if k.Oldest > 0 {
		w.row("Age", fmt.Sprintf("%s at most, %s in the middle", keyAge(k.Oldest), keyAge(k.Median)))
	}
	w.row("Rotation", rotationText(&k.Rotation))
}

// showClasses writes how the keys of management classes stand.
func showClasses(w *columns, classes []v1.ClassKeys) {
	for i := range classes {
		c := &classes[i]
		text := fmt.Sprintf("%s: %s", c.Enable, counts(map[string]int{"settled": c.Settled, "working": c.Working, "absent": c.Absent, "failing": c.Failing}))
		if c.Single > 0 {
			text += fmt.Sprintf("; %d hold one key at a time", c.Single)
		}
		if c.Old > 0 {
			text += fmt.Sprintf("; %d old, %s at most", c.Old, keyAge(c.Oldest))
		}
		w.row(c.Kind, text)
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
		return fmt.Sprintf("every %s; epoch %d since %s", keyAge(r.Period), r.Epoch, stamp(r.Began))
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
		state += ", shown to somebody else"
	}
	if !k.Lent.IsZero() {
		state += ", lent until " + stamp(k.Lent)
	}
	return []string{k.At, k.GUID.String(), k.Kind, state, strconv.Itoa(int(k.Epoch)), since, k.Old, place}
}

func (a *app) fabricMoveKey() *cobra.Command {
	return &cobra.Command{
		Use: "move GUID [SWITCH/PORT]", Short: "Say that a device whose key is withheld belongs at another place", Args: cobra.RangeArgs(1, 2),
		Long: `Say that a device belongs at another switch port than the one it was given its key
at: whoever is there is then shown that key. Look at the device first, not at the fabric.
One that was reset is seen, and needs no port; one that holds its key does not answer
before it is shown.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			g, err := ib.ParseGUID(args[0])
			if err != nil {
				return &usageError{msg: err.Error(), hint: "portcullis fabric keys lists port GUIDs"}
			}
			c, err := a.connect()
			if err != nil {
				return err
			}
			m := v1.KeyMove{GUID: g}
			if len(args) > 1 {
				m.To = args[1]
			}
			k, err := c.MoveKey(cmd.Context(), m)
			if err != nil {
				return err
			}
			return a.print(k, func(w *columns) {
				w.row(keyHeader...)
				w.row(keyRow(k)...)
			})
		},
	}
}

func (a *app) fabricRetireKeys() *cobra.Command {
	var yes bool
	c := &cobra.Command{
		Use: "retire GUID", Short: "Destroy the keys of a device that left for good", Args: operands("GUID"),
		Long: `Destroy the keys of a device that left for good, as after an RMA: GUID is that of its
port, of a switch its own. It has to be gone from the fabric. No key of an epoch that it had
is made again. Should it come back with the keys that it has in its memory, nobody shows it
any, so that its port stays closed until it is reset. Escrow kits made before still have
them.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			g, err := ib.ParseGUID(args[0])
			if err != nil {
				return &usageError{msg: err.Error(), hint: "portcullis fabric keys lists port GUIDs"}
			}
			if !yes {
				return &usageError{msg: "a device whose keys are destroyed cannot be asked any more", hint: "say --yes if it is gone for good"}
			}
			c, err := a.connect()
			if err != nil {
				return err
			}
			k, err := c.RetireKeys(cmd.Context(), v1.KeyRetirement{GUID: g})
			if err != nil {
				return err
			}
			return a.print(k, func(w *columns) {
				w.text("the keys of %v are destroyed", g)
				showKeys(w, k)
			})
		},
	}
	c.Flags().BoolVar(&yes, "yes", false, "do it")
	return c
}

func (a *app) fabricReleaseKeys() *cobra.Command {
	var yes, resume bool
	var wait time.Duration
	c := &cobra.Command{
		Use: "release-keys", Short: "Have all devices give their keys back, before an uninstall", Args: operands(),
		Long: `Have all devices give their keys back, so that another subnet manager can take over.
From then on any host may reprogram them, and no key is given out, not after a restart
of the service either, until --resume. Waits until it is done, and ends with status 1
when devices could not be asked: they keep their keys, and so must you keep the store.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !yes && !resume {
				return &usageError{msg: "this takes the protection off every device of the fabric", hint: "say --yes if that is wanted"}
			}
			return a.releaseKeys(cmd.Context(), resume, wait)
		},
	}
	c.Flags().BoolVar(&yes, "yes", false, "do it")
	c.Flags().BoolVar(&resume, "resume", false, "give keys out again")
	c.Flags().DurationVar(&wait, "wait", 10*time.Minute, "how long to wait until it is done")
	return c
}

// keysEvery is how often it is looked how far keys are.
const keysEvery = 500 * time.Millisecond

func (a *app) releaseKeys(ctx context.Context, resume bool, wait time.Duration) error {
	c, err := a.connect()
	if err != nil {
		return err
	}
	k, err := c.ReleaseKeys(ctx, v1.KeyRelease{Resume: resume})
	if err != nil {
		return err
	}
	if !resume {
		k, err = released(ctx, c, k, wait)
	}
	if err != nil {
		return err
	}
	if err := a.print(k, func(w *columns) { showKeys(w, k) }); err != nil || resume {
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
			return nil, hint(fmt.Errorf("not done after %v: %s", wait, counts(k.Devices)), "it goes on; portcullis fabric keys tells how far it is")
		case <-tick.C:
		}
		var err error
		if k, err = c.Keys(ctx); err != nil {
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
	return hint(errors.New(count(n, "device")+" could not be asked, and kept the key"),
		"keep the store and its root; portcullis fabric keys lists them, and they give their keys back when they answer")
}
