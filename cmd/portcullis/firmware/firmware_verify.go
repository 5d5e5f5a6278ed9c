package firmware

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"

	"github.com/spf13/cobra"

	"portcullis/cmd/portcullis/cli"
	"portcullis/firmware"
	"portcullis/firmware/pin"
	"portcullis/firmware/policy"
)

// verifiedFirmware is what "firmware verify" prints.
type verifiedFirmware struct {
	File     string `json:"file"`
	Accepted bool   `json:"accepted"` // valid, and the policy has nothing against it
	Policy   bool   `json:"policy"`   // a policy of the site was asked
	*firmware.Report
}

func firmwareVerify(env *cli.Env) *cobra.Command {
	pins, wanted, only := "", "", -1
	cmd := &cobra.Command{
		Use: "verify FILE", Short: "Verify that firmware images are intact and signed with a pinned key", Args: cli.Operands("FILE"),
		Long: `Verify that firmware images are intact and signed with a key that the site pinned (--pins), and
that the site's policy allows them (--policy). Keys that an image carries do not count. Each
check is shown with its result. A package is shown with one line for each image; --image shows
one image in full. The verdicts:

  valid           intact, and each of its signatures is right under a pinned key
  not signed      intact, without a signature
  invalid         damaged, changed, or signed with a key that is not pinned
  not verifiable  encrypted, of an unknown layout, or no key is pinned

Valid says who made an image, not that an adapter runs it. Without --policy, only these are
refused: debug and development firmware, and firmware that takes unsigned updates.

Exit status: 0 if all images are valid and the policy allows them, 3 if all are valid and the
policy refuses one. Otherwise the worst verdict counts: 5 invalid, 6 not signed, 7 not
verifiable. 1 is an error, such as a file that cannot be read.`,
		Example: "  portcullis firmware verify --pins pins.yaml --policy policy.yaml fw-ConnectX7.bin",
		RunE: func(_ *cobra.Command, args []string) error {
			site, err := firmwareSite(env, pins, wanted)
			if err != nil {
				return err
			}
			out := &verifiedFirmware{File: args[0], Policy: site.Policy != nil}
			err = firmwareFile(env, args[0], func(r io.ReaderAt, size int64) (err error) {
				out.Report, err = firmware.Verify(r, size, site)
				return err
			})
			if err != nil {
				return err
			}
			if only >= 0 {
				if out.Report = out.Report.Only(only); out.Report == nil {
					return fmt.Errorf("%s: it has no image %d that can be read", args[0], only)
				}
			}
			out.Accepted = out.Report.Accepted()
			if err := env.Print(out, out.show); err != nil {
				return err
			}
			return out.exit()
		},
	}
	f := cmd.Flags()
	f.StringVar(&pins, "pins", "", "YAML file of pinned keys, as portcullis firmware pin writes it")
	f.StringVar(&wanted, "policy", "", "YAML file of the site's policy for firmware")
	imageFlag(cmd, &only)
	return cmd
}

// firmwareSite reads the pins and the policy of the site.
func firmwareSite(env *cli.Env, pins, wanted string) (site firmware.Site, err error) {
	if pins != "" {
		data, err := env.ReadFile(pins, pin.MaxFile)
		if errors.Is(err, fs.ErrNotExist) {
			err = cli.Hint(err, "portcullis firmware pin FILE --pins "+pins+" creates it; or name another file with --pins")
		}
		if err != nil {
			return site, err
		}
		if site.Pins, err = pin.Parse(pins, data); err != nil {
			return site, cli.Hint(err, "portcullis firmware pin writes such files")
		}
	}
	if wanted != "" {
		data, err := env.ReadFile(wanted, policy.MaxFile)
		if errors.Is(err, fs.ErrNotExist) {
			err = cli.Hint(err, "name the site's policy with --policy, or verify without one; docs/understand/firmware.md has its fields")
		}
		if err != nil {
			return site, err
		}
		if site.Policy, err = policy.Parse(wanted, data); err != nil {
			return site, cli.Hint(err, "docs/understand/firmware.md has the fields of a policy")
		}
	}
	return site, nil
}

// exit is the verdict as an exit code.
func (v *verifiedFirmware) exit() error {
	switch v.Verdict {
	case firmware.Valid:
		if v.Accepted {
			return nil
		}
		return cli.ExitWith(cli.ExitRefused)
	case firmware.NotSigned:
		return cli.ExitWith(cli.ExitNotSigned)
	case firmware.NotVerifiable:
		return cli.ExitWith(cli.ExitNotVerifiable)
	case firmware.Invalid:
	}
	return cli.ExitWith(cli.ExitInvalid)
}

func (v *verifiedFirmware) show(w *cli.Columns) {
	if len(v.Images) == 1 {
		showVerdict(w, &v.Images[0])
	} else if len(v.Images) > 1 {
		v.showAll(w)
	}
	if v.Problem != "" {
		w.Text("package: %s", v.Problem)
	}
	w.Gap()
	w.Text("%s: %s%s", v.File, v.Verdict, v.consequence())
}

// consequence says what follows from a verdict.
func (v *verifiedFirmware) consequence() string {
	switch {
	case v.Accepted && v.Policy:
		return ", and the policy allows it"
	case v.Accepted:
		return "; no policy was checked"
	case v.Verdict == firmware.Valid:
		return ", and refused"
	default:
		return ""
	}
}

func (v *verifiedFirmware) showAll(w *cli.Columns) {
	w.Row("IMAGE", "PSID", "VERSION", "VERDICT", "WHY")
	for i := range v.Images {
		r := &v.Images[i]
		psid, version := strings.Join(r.Boards, " "), ""
		if r.Identity != nil && r.Identity.Info != nil {
			psid, version = string(r.Identity.Info.PSID), r.Identity.Info.Version.String()
		}
		w.Row(fmt.Sprint(r.Index), psid, version, string(r.Verdict), strings.Join(against(r), ", "))
	}
}

// against are the codes of all that speaks against an image.
func against(r *firmware.ImageReport) (codes []string) {
	for _, s := range r.Steps {
		if s.Code != "" {
			codes = append(codes, string(s.Code))
		}
	}
	for _, x := range r.Refusals {
		codes = append(codes, "policy "+string(x.Code))
	}
	return codes
}

func showVerdict(w *cli.Columns, r *firmware.ImageReport) {
	if id := r.Identity; id != nil && id.Info != nil {
		w.Text("%s %s for %s, PSID %s", id.Format, id.Info.Version, strings.Join(id.Chips, ", "), id.Info.PSID)
		if id.Digest != nil {
			w.Text("digest %v", id.Digest)
		}
		w.Gap()
	}
	w.Row("QUESTION", "ANSWER", "CODE", "DETAIL")
	for _, s := range r.Steps {
		w.Row(s.Name, string(s.Outcome), string(s.Code), s.Detail)
	}
	for _, x := range r.Refusals {
		w.Row("policy", "refused", string(x.Code), x.Text)
	}
}
