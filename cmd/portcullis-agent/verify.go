package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"portcullis/agent"
	"portcullis/attest"
	"portcullis/attest/tpm"
	"portcullis/cmd/internal/version"
)

// agentVersion names this build in statements.
func agentVersion() string { return version.Short() }

// local is what this host would say of itself.
type local struct {
	EK        string            `json:"ek_sha256,omitempty"`
	EKKind    string            `json:"ek_kind,omitempty"`
	Certified bool              `json:"ek_certificate"`
	Statement *attest.Statement `json:"statement"`
}

func (a *app) verifyCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "verify", Short: "Show what this host would attest, without sending or measuring it", Args: noArguments,
		Long: `Show what this host would attest, without sending or measuring it: the digest
of its TPM's endorsement key, as inventory needs it, and the statement.`,
	}
	a.settings.hostFlags(c.Flags())
	c.RunE = func(cmd *cobra.Command, _ []string) error {
		config, err := a.settings.config(cmd)
		if err != nil {
			return err
		}
		if err := config.CheckHost(); err != nil {
			return err
		}
		var l local
		if l.Statement, err = agent.Collect(cmd.Context(), &config, agentVersion(), time.Now()); err != nil {
			return err
		}
		tpmErr := l.readEK(cmd, config.TPM)
		if err := a.printLocal(&l); err != nil {
			return err
		}
		return tpmErr
	}
	return c
}

func (l *local) readEK(cmd *cobra.Command, device string) (err error) {
	defer func() {
		if err != nil {
			err = &agent.Error{Class: agent.ClassTPM, Err: err}
		}
	}()
	dev, err := tpm.Open(cmd.Context(), device)
	if err != nil {
		return err
	}
	defer dev.Close()
	keys, err := dev.NewKeys(cmd.Context())
	if err != nil {
		return err
	}
	l.EK, l.EKKind, l.Certified = keys.EKDigest(), keys.Claim().Kind, keys.HasCertificate()
	return keys.Close(cmd.Context())
}

func (a *app) printLocal(l *local) error {
	if a.json {
		return a.print(l)
	}
	s := l.Statement
	_, err := fmt.Fprintf(a.stdout, "host     %s\nboot     %s\nboard    %s %s, serial %s\n",
		s.Host, s.BootID, orDash(s.Board.Vendor), orDash(s.Board.Name), orDash(s.Board.Serial))
	errs := []error{err}
	line := func(format string, args ...any) {
		_, err := fmt.Fprintf(a.stdout, format, args...)
		errs = append(errs, err)
	}
	if l.EK != "" {
		certificate := "with certificate"
		if !l.Certified {
			certificate = "without certificate"
		}
		line("EK       %s (%s, %s)\n", l.EK, l.EKKind, certificate)
	}
	for _, h := range s.HCAs {
		line("HCA      %s  node %v  system image %v  %s  firmware %s\n", h.Name, h.NodeGUID, h.SystemImageGUID, orDash(h.PSID), orDash(h.Firmware.Running))
		for _, p := range h.Ports {
			if p.LinkLayer == attest.LinkInfiniBand {
				line("  port %-3d %v\n", p.Num, p.GUID)
			} else {
				line("  port %-3d %s\n", p.Num, p.LinkLayer)
			}
		}
	}
	return errors.Join(errs...)
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

func (a *app) print(v any) error {
	e := json.NewEncoder(a.stdout)
	e.SetEscapeHTML(false)
	return e.Encode(v)
}
