package firmware

import (
	"bytes"
	"fmt"

	"github.com/spf13/cobra"

	"portcullis/cmd/portcullis/cli"
	"portcullis/firmware/nvconfig"
	"portcullis/firmware/nvconfig/profile"
)

func nvconfigCommand(env *cli.Env) *cobra.Command {
	return cli.Group("nvconfig", "Build, sign and verify files of adapter settings",
		nvconfigDescribe(env), nvconfigBuild(env), nvconfigSign(env), nvconfigVerify(env), nvconfigProfile(env))
}

// maxNVConfig bounds what is read: a file, the text form of one, or a profile.
const maxNVConfig = 4 * nvconfig.MaxFile

// profileFlag names the profile of a site.
func profileFlag(cmd *cobra.Command, file *string) {
	cmd.Flags().StringVar(file, "profile", "", "YAML file of the site's profile (default: the built-in list)")
}

func readProfile(env *cli.Env, file string) (*profile.Profile, error) {
	if file == "" {
		return profile.Default(), nil
	}
	data, err := env.ReadFile(file, maxNVConfig)
	if err != nil {
		return nil, err
	}
	p, err := profile.Load(data)
	if err != nil {
		return nil, cli.Hint(fmt.Errorf("%s: %w", file, err), "docs/understand/lock.md has the fields of a profile")
	}
	return p, nil
}

// settingsFile is a file or its text form.
type settingsFile struct {
	bytes []byte
	file  *nvconfig.File // nil: it is the text form
	items []nvconfig.Item
}

func readSettings(env *cli.Env, name string) (*settingsFile, error) {
	data, err := env.ReadFile(name, maxNVConfig)
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
		return nil, cli.Hint(fmt.Errorf("%s: %w", name, err), "want a file that begins with "+nvconfig.Fingerprint+", or the text form "+nvconfig.RawFingerprint)
	}
	return s, nil
}

func nvconfigProfile(env *cli.Env) *cobra.Command {
	file := ""
	cmd := &cobra.Command{
		Use: "profile", Short: "Print the hardening list in force, and why each value is wanted", Args: cli.Operands(),
		Long: `Print the hardening list: each setting, the value it must have before a tenant gets the host,
and why. The columns say how strict an item is:
  required     an adapter that does not know the setting does not comply
  where known  an adapter that does not know the setting is only reported
  record       any value is allowed, and is recorded
What the site's profile changed is marked, together with the built-in value.`,
		RunE: func(*cobra.Command, []string) error {
			p, err := readProfile(env, file)
			if err != nil {
				return err
			}
			return env.Print(p, func(w *cli.Columns) { showProfile(w, p) })
		},
	}
	profileFlag(cmd, &file)
	return cmd
}

func showProfile(w *cli.Columns, p *profile.Profile) {
	w.Text("profile %s version %d, %s", p.Name, p.Version, cli.Count(len(p.Rules), "setting"))
	w.Gap()
	w.Row("SETTING", "ITEM", "VALUE", "NEED", "REASON")
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
		w.Row(r.Parameter, item, r.Want, r.Need.String(), reason)
	}
}
