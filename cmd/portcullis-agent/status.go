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
		Use: "status", Short: "Tell how the last provisioning run ended, and how the host stands now", Args: noArguments,
		Long: `Tell how the last provisioning run ended and, in the boot of the hand-over and while the
certificate counts that it earned, how the host stands now: the service is asked, with the
key in the TPM. The exit code is that of the run, or 1 when there was none; it is 0 when the
service says that the host is admitted, and 6 when it says that the host was withdrawn. The
run may have been any command: 0 after evidence, lock, unlock or handover does not say
that the host was admitted. After provision or handover, evidence, lock and unlock that
fail in the same boot change nothing of what is told.`,
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
			a.logger().Warn("the service does not tell how the host stands now", "error", err)
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
	_, err := fmt.Fprintf(a.stdout, "host %s is %s now, as the service says\n", plain(now.ID), plain(string(now.Status.Phase)))
	return err
}
