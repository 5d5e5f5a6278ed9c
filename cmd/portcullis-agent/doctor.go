package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"portcullis/agent"
)

func (a *app) doctorCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "doctor", Short: "Check whether this host has all that a provisioning run needs", Args: noArguments,
		Long: `Check whether this host has all that a provisioning run needs. Each check
is shown with its result, and with a hint if it is not ok. Nothing is changed or
measured, and no credential is sent.

The exit code is 0 if no check failed, and 1 otherwise. A run can continue with
warnings, but the service may refuse the host.`,
		Example: "  portcullis-agent doctor --config /etc/portcullis/agent.yaml",
	}
	a.settings.hostFlags(c.Flags())
	a.settings.stateFlag(c.Flags())
	a.settings.serviceFlags(c.Flags())
	c.RunE = func(cmd *cobra.Command, _ []string) error {
		config, err := a.settings.config(cmd)
		if err != nil {
			return err
		}
		d := agent.Doctor(cmd.Context(), &config, agentVersion())
		if err := a.printDiagnosis(d); err != nil {
			return err
		}
		return unready(d)
	}
	return c
}

// unready is the error that names what failed.
func unready(d *agent.Diagnosis) error {
	failed := d.Checks.Failed()
	if len(failed) == 0 {
		return nil
	}
	return &agent.Error{
		Class: agent.ClassOther, Err: fmt.Errorf("this host cannot be provisioned: %s", strings.Join(failed, ", ")),
		Hint: "the output has a hint for each",
	}
}

func (a *app) printDiagnosis(d *agent.Diagnosis) error {
	if a.json {
		return a.print(d)
	}
	_, err := io.WriteString(a.stdout, d.Checks.Text(plain))
	return err
}
