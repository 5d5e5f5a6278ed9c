package firmware

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"portcullis/cmd/portcullis/cli"
	"portcullis/firmware/nvconfig"
	"portcullis/firmware/nvconfig/profile"
)

// describedFile is what "nvconfig describe" prints.
type describedFile struct {
	SHA256    string             `json:"sha256"`
	Component string             `json:"component,omitempty"` // none of the text form
	Version   uint32             `json:"version,omitempty"`
	Time      string             `json:"time,omitempty"`
	PSIDs     []string           `json:"psids,omitempty"`
	Devices   []string           `json:"devices,omitempty"`
	Bound     []describedBinding `json:"bound,omitempty"` // to challenges
	Scheme    string             `json:"scheme,omitempty"`
	Key       string             `json:"key,omitempty"`
	Settings  []describedSetting `json:"settings"`
}

// describedBinding is what one adapter drew.
type describedBinding struct {
	MAC       string `json:"mac"`
	Challenge string `json:"challenge"`
}

// describedSetting is one parameter, or the bytes of an item that has no layout.
type describedSetting struct {
	Item            string `json:"item"`
	Address         string `json:"address"`
	Parameter       string `json:"parameter,omitempty"`
	Value           string `json:"value"`
	Want            string `json:"want,omitempty"`
	Priority        string `json:"priority"`
	OverrideEnabled bool   `json:"ovr_en"`
	Reason          string `json:"reason,omitempty"`
}

func nvconfigDescribe(env *cli.Env) *cobra.Command {
	file := ""
	cmd := &cobra.Command{
		Use: "describe FILE", Short: "Explain a file of settings, signed or not", Args: cli.Operands("FILE"),
		Long: `Explain a file of settings, or its text form: what it is, which adapters it is for, whether it
is signed, and each setting with its value, priority, ovr_en, the profile's value, and why.

This verifies no signature: use "portcullis nvconfig verify". The host cannot change a setting
with ovr_en 0 and a priority above USER.`,
		RunE: func(_ *cobra.Command, args []string) error {
			p, err := readProfile(env, file)
			if err != nil {
				return err
			}
			s, err := readSettings(env, args[0])
			if err != nil {
				return err
			}
			d := describe(s, p)
			return env.Print(d, func(w *cli.Columns) { d.table(w) })
		},
	}
	profileFlag(cmd, &file)
	return cmd
}

func describe(s *settingsFile, p *profile.Profile) *describedFile {
	sum := sha256.Sum256(s.bytes)
	d := &describedFile{SHA256: hex.EncodeToString(sum[:])}
	if f := s.file; f != nil {
		d.Component, d.PSIDs, d.Scheme = f.Component.String(), f.PSIDs(), f.Signature.Scheme.String()
		if id, err := nvconfig.FileIDOf(f.Items[0]); err == nil {
			d.Version, d.Time = id.Version, cli.Stamp(id.Time)
		}
		for _, id := range f.DeviceIDs() {
			d.Devices = append(d.Devices, hex.EncodeToString(id[:]))
		}
		of, err := f.Challenges()
		if err != nil {
			d.Bound = []describedBinding{{MAC: "unreadable", Challenge: err.Error()}}
		}
		for _, c := range of {
			d.Bound = append(d.Bound, describedBinding{fmt.Sprintf("%012x", c.MAC()), hex.EncodeToString(c.Nonce[:])})
		}
		if !f.Signature.Key.IsZero() {
			d.Key = f.Signature.Key.String()
		}
	}
	for _, i := range s.items {
		d.Settings = append(d.Settings, describeItem(i, p)...)
	}
	return d
}

// describeItem returns a row for each parameter.
func describeItem(i nvconfig.Item, p *profile.Profile) []describedSetting {
	row := describedSetting{Address: i.Address.String(), Priority: i.Priority.String(), OverrideEnabled: i.OverrideEnabled}
	l, ok := nvconfig.LayoutOf(i.Address)
	if ok {
		row.Item = l.Name
	}
	if !ok || len(l.Fields) == 0 {
		row.Value = hex.EncodeToString(i.Data)
		return []describedSetting{row}
	}
	var rows []describedSetting
	for _, f := range l.Fields {
		row.Parameter = f.Name
		row.Value, _ = f.Format(i.Data) // the length was checked when the item was read
		r, _ := p.Rule(f.Name)
		row.Want, row.Reason = r.Want, r.Reason
		rows = append(rows, row)
	}
	return rows
}

func (d *describedFile) table(w *cli.Columns) {
	if d.Component == "" {
		w.Text("settings as text, for no adapter in particular")
	} else {
		w.Text("%s, version %d, %s", d.Component, d.Version, orNone(d.Time, "without a time"))
		w.Text("for: %s", orNone(strings.Join(append(d.PSIDs, d.Devices...), ", "), "nobody"))
		for _, b := range d.Bound {
			w.Text("bound to: device %s, challenge %s", b.MAC, b.Challenge)
		}
		w.Text("signature: %s%s", d.Scheme, map[bool]string{true: ", key " + d.Key + ", not verified"}[d.Key != ""])
	}
	w.Text("SHA-256: %s", d.SHA256)
	w.Gap()
	w.Row("ITEM", "WHERE", "SETTING", "VALUE", "PRIORITY", "OVR_EN", "WANTED", "REASON")
	for _, s := range d.Settings {
		override := "0"
		if s.OverrideEnabled {
			override = "1"
		}
		w.Row(s.Item, s.Address, s.Parameter, s.Value, s.Priority, override, s.Want, s.Reason)
	}
}

func orNone(s, none string) string {
	if s == "" {
		return none
	}
	return s
}
