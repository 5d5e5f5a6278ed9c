package reference

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	v1 "portcullis/api/v1"
	"portcullis/attest/eventlog"
	"portcullis/attest/reference"
	"portcullis/attest/reference/predict"
	"portcullis/attest/secureboot"
	"portcullis/cmd/internal/input"
	"portcullis/cmd/portcullis/cli"
)

// predicting holds the options of predict.
type predicting struct {
	logs      []string
	base      string
	variables [4]string // files of PK, KEK, db and dbx
	off       bool      // Secure Boot is disabled
	phases    string
	ignore    []string
	out       string
}

// predicted is what predict says.
type predicted struct {
	Image        string            `json:"image"`
	SHA256       string            `json:"sha256"`
	Authenticode string            `json:"authenticode"`
	Kernel       string            `json:"kernel"`
	Stub         string            `json:"stub"`
	Cmdline      string            `json:"cmdline"`
	Values       map[string]string `json:"values"` // by register, of those that hold one value
	Prediction   v1.Prediction     `json:"prediction"`
}

func referencePredict(env *cli.Env) *cobra.Command {
	var p predicting
	cmd := &cobra.Command{
		Use: "predict IMAGE", Short: "Compute reference values of an image that was not booted yet", Args: cli.Operands("IMAGE"),
		Long: `Compute the values that a unified kernel image, signed or not, causes in PCR 0 to 9 and 11 to 14:
  4, 8, 9, 11 to 14  follow from the image
  7                  follows also from the Secure Boot variables of the machines
  0 to 3, 5, 6       follow from the machines
Values of the machines come from event logs of any of their boots (--log), or from a set of
reference values (--base). Without these, the variables alone determine PCR 7, and the output
is not a complete set.

--out writes a file for "portcullis reference learn --predicted".`,
		Example: `  portcullis reference predict portcullis.efi
  portcullis reference predict portcullis.signed.efi --log binary_bios_measurements --ignore 5/2 --out new.json
  portcullis reference predict portcullis.signed.efi --pk PK.esl --kek KEK.esl --db db.esl --dbx dbx.esl`,
		RunE: func(cmd *cobra.Command, args []string) error {
			out, err := p.predict(cmd.Context(), env, args[0])
			if err != nil {
				return err
			}
			if p.out != "" {
				if err := out.write(p.out); err != nil {
					return err
				}
			}
			return env.Print(out, func(w *cli.Columns) { showPrediction(w, out) })
		},
	}
	f := cmd.Flags()
	f.StringArrayVar(&p.logs, "log", nil, "file with an event log of the machines; several show what differs between boots")
	f.StringVar(&p.base, "base", "", "CLASS/VERSION, a set that the machines' boots meet")
	for i, name := range []string{"pk", "kek", "db", "dbx"} {
		f.StringVar(&p.variables[i], name, "", "file with the Secure Boot variable, as signature lists; all four or none")
	}
	f.BoolVar(&p.off, "secure-boot-off", false, "with variables: the machines do not check signatures")
	f.StringVar(&p.phases, "phases", "", "words that systemd-pcrphase measures before the agent starts, separated by colons")
	f.StringArrayVar(&p.ignore, "ignore", nil, "PCR/EVENT, an event that may have any value; may be given more than once")
	f.StringVar(&p.out, "out", "", "write the prediction into this file, which must not exist")
	return cmd
}

func (p *predicting) predict(ctx context.Context, env *cli.Env, file string) (*predicted, error) {
	b, err := input.ReadFile(file, maxImage)
	if err != nil {
		return nil, err
	}
	image, err := predict.Read(b)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	platform, from, err := p.platform(ctx, env)
	if err != nil {
		return nil, err
	}
	var phases []string
	if p.phases != "" {
		phases = strings.Split(p.phases, ":")
	}
	registers, err := image.Registers(platform, phases)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	positions, err := positions(p.ignore)
	if err != nil {
		return nil, err
	}
	for _, x := range positions {
		if err := reference.Ignore(registers, x.PCR, x.Position); err != nil {
			return nil, &cli.UsageError{Msg: err.Error(), Hint: "run without --ignore to see the positions"}
		}
	}
	sum := sha256.Sum256(b)
	out := &predicted{
		Image: filepath.Base(file), SHA256: hex.EncodeToString(sum[:]), Authenticode: image.Digest.String(),
		Kernel: image.Kernel, Stub: image.Stub, Cmdline: image.Cmdline, Values: map[string]string{},
	}
	out.Prediction = v1.Prediction{Image: fmt.Sprintf("%.64s (Authenticode %s) on %s", out.Image, out.Authenticode, from), Registers: registers}
	for i := range registers {
		if v := predict.Value(&registers[i]); v != (eventlog.Digest{}) || len(registers[i].Events) == 0 {
			out.Values[strconv.Itoa(registers[i].PCR)] = v.String()
		}
	}
	return out, nil
}

// maxImage bounds the image.
const maxImage = 1 << 30

// platform reads what is known of the machines, and says from where.
func (p *predicting) platform(ctx context.Context, env *cli.Env) (out predict.Platform, from string, err error) {
	from = "an unknown machine"
	switch {
	case len(p.logs) > 0 && p.base != "":
		return out, from, &cli.UsageError{Msg: "--log and --base exclude each other", Hint: "use one of them"}
	case len(p.logs) > 0:
		from = fmt.Sprintf("machines of %d event logs", len(p.logs))
		out, err = platformOfLogs(p.logs)
	case p.base != "":
		from = "machines of " + p.base
		out.Registers, err = registersOf(ctx, env, p.base)
	}
	if err != nil {
		return out, from, err
	}
	v, err := p.secureBoot()
	if err != nil {
		return out, from, err
	}
	if v != nil {
		out.Variables = v
	}
	return out, from, nil
}

func platformOfLogs(files []string) (predict.Platform, error) {
	var logs []*eventlog.Log
	for _, name := range files {
		b, err := input.ReadFile(name, input.Small)
		if err != nil {
			return predict.Platform{}, err
		}
		l, err := eventlog.Parse(b)
		if err != nil {
			return predict.Platform{}, fmt.Errorf("%s: %w", name, err)
		}
		logs = append(logs, l)
	}
	return predict.FromLogs(logs...)
}

func registersOf(ctx context.Context, env *cli.Env, name string) ([]reference.Register, error) {
	class, version, err := setName(name)
	if err != nil {
		return nil, err
	}
	c, err := env.Connect()
	if err != nil {
		return nil, err
	}
	set, err := c.References().Get(ctx, class, version)
	if err != nil {
		return nil, err
	}
	return set.Registers, nil
}

// secureBoot reads the variables, nil where none is given.
func (p *predicting) secureBoot() (*secureboot.Variables, error) {
	v := &secureboot.Variables{Enabled: !p.off}
	given := 0
	for i, to := range []*[]byte{&v.PK, &v.KEK, &v.DB, &v.DBX} {
		if p.variables[i] == "" {
			continue
		}
		given++
		b, err := input.ReadFile(p.variables[i], secureboot.MaxVariable)
		if err != nil {
			return nil, err
		}
		if *to, err = secureboot.ParseVariable(b); err != nil {
			return nil, fmt.Errorf("%s: %w: take it from /sys/firmware/efi/efivars", p.variables[i], err)
		}
	}
	switch {
	case given == 0 && p.off, given == 4:
		return v, nil // without any, firmware that was never given keys
	case given == 0:
		return nil, nil
	}
	return nil, &cli.UsageError{Msg: fmt.Sprintf("%d of the Secure Boot variables are given", given), Hint: "--pk, --kek, --db and --dbx must be given together; an empty file stands for a variable that does not exist"}
}

// write writes the prediction for learn, if it is one that a set can be made of.
func (p *predicted) write(file string) error {
	set := reference.Set{Class: reference.DefaultClass, Registers: p.Prediction.Registers}
	if err := set.Check(); err != nil {
		return fmt.Errorf("no set can be made of the known values: %w: add values of the machines with --log or --base", err)
	}
	b, err := json.MarshalIndent(p.Prediction, "", "  ")
	if err != nil {
		return err
	}
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(append(b, '\n'))
	return errors.Join(err, f.Close())
}

func showPrediction(w *cli.Columns, p *predicted) {
	w.Row("Image", p.Image)
	w.Row("Digest", p.Authenticode)
	w.Row("Kernel", p.Kernel)
	w.Row("Stub", "systemd "+p.Stub)
	w.Row("Command line", p.Cmdline)
	w.Gap()
	w.Row("PCR", "VALUE")
	for i := range p.Prediction.Registers {
		pcr := strconv.Itoa(p.Prediction.Registers[i].PCR)
		value := p.Values[pcr]
		if value == "" {
			value = "one of several"
		}
		w.Row(pcr, value)
	}
	w.Gap()
	showRegisters(w, p.Prediction.Registers)
}

// readPrediction reads what predict wrote.
func readPrediction(file string) (*v1.Prediction, error) {
	b, err := input.ReadFile(file, input.Small)
	if err != nil {
		return nil, err
	}
	d := json.NewDecoder(strings.NewReader(string(b)))
	d.DisallowUnknownFields()
	p := &v1.Prediction{}
	if err := d.Decode(p); err != nil {
		return nil, fmt.Errorf("%s: %w: want a file that portcullis reference predict --out wrote", file, err)
	}
	return p, nil
}
