package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"portcullis/agent"
	v1 "portcullis/api/v1"
)

func (a *app) statusCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "status", Short: "Show how the last run ended, and the present state of the host", Args: noArguments,
		Long: `Show how the last run ended. In the boot of the hand-over, while the certificate from the
hand-over is valid, the service is also asked for the present state of the host, with the key in
the TPM.

The exit code is that of the run, or 1 if there was none. It is 0 if the service says that the
host is admitted, and 6 if it says that the host was withdrawn. The run may have been any command:
0 after evidence, lock, unlock or handover does not mean that the host was admitted. Failures of
evidence, lock and unlock after provision or handover in the same boot do not change the output.`,
	}
	c.Flags().StringVar(&a.settings.file, "config", "", configHelp)
	a.settings.stateFlag(c.Flags())
	a.settings.askFlags(c.Flags())
	a.settings.tpmFlag(c.Flags())
	c.RunE = func(cmd *cobra.Command, _ []string) error {
		config, err := a.settings.config(cmd)
		if err != nil {
			return err
		}
		o, err := agent.LastOutcome(config.StateDir)
		if err != nil {
			return err
		}
		now, err := agent.Status(cmd.Context(), &config, agentVersion())
		if err != nil {
			a.logger().Warn("the service does not report the present state of the host", "error", err)
		}
		if o == nil && now == nil {
			return &agent.Error{
				Class: agent.ClassOther, Err: fmt.Errorf("no run has ended yet with state in %s", config.StateDir),
				Hint: "portcullis-agent provision attests this host",
			}
		}
		return a.printStatus(o, now)
	}
	return c
}

// hostStatus is what is printed as JSON.
type hostStatus struct {
	*agent.Outcome
	Now *v1.Host `json:"now,omitempty"` // as the service reports it
}

func (a *app) printStatus(o *agent.Outcome, now *v1.Host) error {
	if a.json {
		if err := a.print(hostStatus{o, now}); err != nil {
			return err
		}
	} else if err := a.printLines(o, now); err != nil {
		return err
	}
	if now != nil {
		if err := agent.Withdrawn(now); err != nil {
			return err
		}
		if o == nil || now.Status.Phase == v1.PhaseAdmitted {
			return nil
		}
	}
	if o.Class == 0 {
		return nil
	}
	return &agent.Error{Class: o.Class, Err: errors.New(failed(o))}
}

// failed says how a run ended that did not come to its goal.
func failed(o *agent.Outcome) string {
	at := o.Time.Format(time.RFC3339)
	if o.Run == "" || o.Run == agent.Admitted.String() {
		return fmt.Sprintf("host %s was not admitted at %s: %s", o.Host, at, o.Detail)
	}
	return fmt.Sprintf("%s of host %s failed at %s: %s", o.Run, o.Host, at, o.Detail)
}

// wasDone returns the text to print about a run that came to its goal.
func wasDone(run string) string {
	for _, v := range verbs {
		if v.goal.String() == run {
			return v.was
		}
	}
	return verbs[0].was // of an agent that did not say
}

func (a *app) printLines(o *agent.Outcome, now *v1.Host) error {
	if o != nil && o.Class == 0 {
		if _, err := fmt.Fprintf(a.stdout, wasDone(o.Run), plain(o.Host), o.Time.Format(time.RFC3339)); err != nil {
			return err
		}
	}
	if now == nil {
		return nil
	}
	_, err := fmt.Fprintf(a.stdout, "host %s is %s now, according to the service\n", plain(now.ID), plain(string(now.Status.Phase)))
	return err
}
