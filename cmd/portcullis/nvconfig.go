package main

import (
	"bytes"
	"fmt"

	"github.com/spf13/cobra"

	"portcullis/firmware/nvconfig"
	"portcullis/firmware/nvconfig/profile"
)

func (a *app) nvconfigCommand() *cobra.Command {
	return group("nvconfig", "Build, sign and verify files of adapter settings",
		a.nvconfigDescribe(), a.nvconfigBuild(), a.nvconfigSign(), a.nvconfigVerify(), a.nvconfigProfile())
}

// maxNVConfig bounds what is read: a file, the text form of one, or a profile.
const maxNVConfig = 4 * nvconfig.MaxFile

// profileFlag names the profile of a site.
func profileFlag(cmd *cobra.Command, file *string) {
	cmd.Flags().StringVar(file, "profile", "", "YAML file of the site's profile (default: the built-in list)")
}

func (a *app) readProfile(file string) (*profile.Profile, error) {
	if file == "" {
		return profile.Default(), nil
	}
	data, err := a.readFile(file, maxNVConfig)
	if err != nil {
		return nil, err
	}
	p, err := profile.Load(data)
	if err != nil {
		return nil, hint(fmt.Errorf("%s: %w", file, err), "docs/understand/lock.md has the fields of a profile")
	}
	return p, nil
}

// settingsFile is a file or its text form.
type settingsFile struct {
	bytes []byte
	file  *nvconfig.File // nil: it is the text form
	items []nvconfig.Item
}

func (a *app) readSettings(name string) (*settingsFile, error) {
	data, err := a.readFile(name, maxNVConfig)
	if err != nil {
		return nil, err
	}
	s := &settingsFile{bytes: data}
	if bytes.HasPrefix(data, []byte(nvconfig.RawFingerprint)) {
		s.items, err = nvconfig.ParseRaw(string(data))
	} else if s.file, err = nvconfig.Parse(data); err == nil {
		s.items = s.file.Items
	}
	if err != nil {
		return nil, hint(fmt.Errorf("%s: %w", name, err), "want a file that begins with "+nvconfig.Fingerprint+", or the text form "+nvconfig.RawFingerprint)
	}
	return s, nil
}

func (a *app) nvconfigProfile() *cobra.Command {
	file := ""
	cmd := &cobra.Command{
		Use: "profile", Short: "Print the hardening list in force, and why each value is wanted", Args: operands(),
		Long: `Print the hardening list: each setting, the value it must have before a tenant gets the host,
and why. The columns say how strict an item is:
  required     an adapter that does not know the setting does not comply
  where known  an adapter that does not know the setting is only reported
  record       any value is allowed, and is recorded
What the site's profile changed is marked, together with the built-in value.`,
		RunE: func(*cobra.Command, []string) error {
			p, err := a.readProfile(file)
			if err != nil {
				return err
			}
			return a.print(p, func(w *columns) { showProfile(w, p) })
		},
	}
	profileFlag(cmd, &file)
	return cmd
}

func showProfile(w *columns, p *profile.Profile) {
	w.text("profile %s version %d, %s", p.Name, p.Version, count(len(p.Rules), "setting"))
	w.gap()
	w.row("SETTING", "ITEM", "VALUE", "NEED", "REASON")
	for _, r := range p.Rules {
		reason, item := r.Reason, ""
		if r.Site {
			reason = "site: " + reason
			if r.Ours != "" {
				reason += " (else " + r.Ours + ")"
			}
		}
		if par, ok := nvconfig.LookUp(r.Parameter); ok {
			item = par.Item.Name
		}
		w.row(r.Parameter, item, r.Want, r.Need.String(), reason)
	}
}
