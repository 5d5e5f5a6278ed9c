package sm

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"portcullis/cmd/portcullis/cli"
	"portcullis/fabricsm/route"
	"portcullis/fabricsm/route/enginelist"
	"portcullis/fabricsm/sm/replay"
)

func replayCommand(env *cli.Env) *cobra.Command {
	return &cobra.Command{
		Use:   "replay FILE",
		Short: "Replay a record of the Subnet Manager, and compare the outputs",
		Long: `Replay the record of "portcullisd sm --record FILE" with a new Subnet Manager, and compare the
outputs at each step. The first difference is shown, with exit status 1. No service is needed.
A record that ends in the middle is replayed up to there.`,
		Args: cli.Operands("FILE"),
		RunE: func(_ *cobra.Command, args []string) error { return newReplay(env, args[0]) },
	}
}

// errDiffers is the outcome of a replay that is not as recorded.
var errDiffers = errors.New("the outputs are not as recorded")

// replayed is what "replay" prints.
type replayed struct {
	Steps   int                `json:"steps"`
	Seconds float64            `json:"seconds"` // as recorded
	Same    bool               `json:"same"`
	Ends    string             `json:"ends,omitempty"` // why the record ends before the run
	Differs *replay.Difference `json:"differs,omitempty"`
}

func newReplay(env *cli.Env, file string) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	r, err := replay.Replay(f, recordedEngine)
	if err != nil {
		return cli.Hint(fmt.Errorf("%s: %w", file, err), "want a file of portcullisd sm --record, of the same version")
	}
	out := replayed{Steps: r.Steps, Seconds: r.Took.Seconds(), Same: r.Differs == nil, Ends: r.Ends, Differs: r.Differs}
	if err := env.Print(out, func(w *cli.Columns) { out.table(w) }); err != nil {
		return err
	}
	if !out.Same {
		return errDiffers
	}
	return nil
}

// recordedEngine returns a routing engine of a record.
func recordedEngine(name string, options []byte) (route.Engine, error) {
	engines, err := (&enginelist.Settings{}).Engines(name)
	if err != nil {
		return nil, err
	}
	return replay.Engine(engines[0], options)
}

func (r *replayed) table(w *cli.Columns) {
	w.Row("STEPS", fmt.Sprint(r.Steps))
	w.Row("TIME", time.Duration(r.Seconds*float64(time.Second)).String())
	w.Row("SAME", fmt.Sprint(r.Same))
	if r.Ends != "" {
		w.Row("ENDS", r.Ends)
	}
	if d := r.Differs; d != nil {
		w.Row("DIFFERS", fmt.Sprintf("step %d, after %v: %s", d.Step, d.At, strings.Join(d.Parts, ", ")))
		w.Row("INPUT", d.Input)
		for _, line := range d.Got {
			w.Row("GAVE", line)
		}
	}
}
