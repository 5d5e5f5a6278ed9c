package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"portcullis/agent"
	"portcullis/agent/hca"
	"portcullis/attest"
)

func (a *app) hcaCommand() *cobra.Command {
	var require string
	c := &cobra.Command{
		Use: "hca", Short: "Show facts about each adapter, their sources, and the assurance level", Args: noArguments,
		Long: `Show facts about each adapter, with the sources of each fact, the assurance level that
is proven, and what is missing for each higher level. Nothing is written to any adapter.

The exit code is 0, unless --require names a level. Then it is 4 if an adapter is below this
level, or if there is a finding about its GUIDs or the state of its lock.`,
		Example: "  portcullis-agent hca --firmware /etc/portcullis/firmware --require G1",
	}
	f := c.Flags()
	f.StringVar(&a.settings.file, "config", "", configHelp)
	a.settings.adapterFlags(f)
	f.StringVar(&require, "require", "", "lowest assurance level for exit code 0: G0 or G1")
	c.RunE = func(cmd *cobra.Command, _ []string) error { return a.showHCAs(cmd, require) }
	return c
}

// adapter is one adapter in JSON.
type adapter struct {
	Name    string      `json:"name"`
	PCI     string      `json:"pci_address"`
	Facts   []hca.Line  `json:"facts"`
	Verdict hca.Verdict `json:"verdict"`
}

func (a *app) showHCAs(cmd *cobra.Command, require string) error {
	level, err := requiredLevel(cmd, require)
	if err != nil {
		return err
	}
	config, err := a.settings.config(cmd)
	if err != nil {
		return err
	}
	site, err := config.Site()
	if err != nil {
		return err
	}
	host, err := hca.ReadHost(cmd.Context(), config.Ways())
	if err != nil {
		return &agent.Error{Class: agent.ClassHCA, Err: err}
	}
	var below []string
	adapters := []adapter{}
	for _, d := range host.Devices {
		one := adapter{Name: d.Name, PCI: string(d.PCI), Facts: d.Lines(), Verdict: d.Judge(site)}
		adapters = append(adapters, one)
		if level > attest.AssuranceNone && !one.Verdict.Compliant(level) {
			below = append(below, one.title())
		}
	}
	if err := a.printHCAs(host, adapters); err != nil {
		return err
	}
	return refuseBelow(host, below, level)
}

func requiredLevel(cmd *cobra.Command, s string) (attest.Assurance, error) {
	switch s {
	case "":
		return attest.AssuranceNone, nil
	case "G0":
		return attest.G0, nil
	case "G1":
		return attest.G1, nil
	}
	return 0, misuse(cmd, "--require %q: want G0 or G1; higher levels are not available in this version", s)
}

func refuseBelow(host *hca.Host, below []string, level attest.Assurance) error {
	if level == attest.AssuranceNone {
		return nil
	}
	errs := append([]error{}, host.Problems...)
	if len(below) > 0 {
		errs = append(errs, fmt.Errorf("not compliant at %v: %s", level, strings.Join(below, ", ")))
	}
	if len(errs) == 0 {
		return nil
	}
	return &agent.Error{Class: agent.ClassHCA, Err: errors.Join(errs...), Hint: "the output shows for each adapter what is missing"}
}

func (a *adapter) title() string {
	switch {
	case a.Name == "":
		return a.PCI
	case a.PCI == "":
		return a.Name
	}
	return a.Name + " (" + a.PCI + ")"
}

func (a *app) printHCAs(host *hca.Host, adapters []adapter) error {
	problems := []string{}
	for _, p := range slices.Concat(host.Problems, host.Notes) {
		problems = append(problems, p.Error())
	}
	if a.json {
		return a.print(struct {
			Lockdown bool          `json:"kernel_lockdown"`
			Tools    []attest.Tool `json:"tools"`
			Problems []string      `json:"problems"`
			Adapters []adapter     `json:"adapters"`
		}{host.Lockdown, host.Tools, problems, adapters})
	}
	var b strings.Builder
	for _, p := range problems {
		fmt.Fprintf(&b, "problem: %s\n", plain(p))
	}
	if host.Lockdown {
		b.WriteString("the kernel is locked down: the vendor's tools see no adapter, fwctl does\n")
	}
	for _, t := range host.Tools {
		fmt.Fprintf(&b, "read with %s %s\n", t.Name, t.Version)
	}
	for i := range adapters {
		adapters[i].write(&b)
	}
	_, err := a.stdout.Write([]byte(b.String()))
	return err
}

func (a *adapter) write(b *strings.Builder) {
	fmt.Fprintf(b, "adapter %s: assurance %v\n", plain(a.title()), a.Verdict.Assurance)
	for _, l := range a.Facts {
		if l.Reason != "" {
			fmt.Fprintf(b, "  %-18s unknown (%s): %s\n", l.Fact, l.Reason, plain(l.Detail))
			continue
		}
		var from []string
		for _, s := range l.From {
			from = append(from, string(s))
		}
		fmt.Fprintf(b, "  %-18s %-24s from %s\n", l.Fact, orDash(plain(l.Value)), strings.Join(from, ", "))
	}
	for _, l := range a.Verdict.Missing {
		writeFindings(b, fmt.Sprintf("not %v", l.Level), l.Findings)
	}
	writeFindings(b, "identity", a.Verdict.Identity)
	writeFindings(b, "lock", a.Verdict.Lock)
}

func writeFindings(b *strings.Builder, title string, findings []hca.Finding) {
	if len(findings) == 0 {
		return
	}
	fmt.Fprintf(b, "  %s:\n", title)
	for _, f := range findings {
		fmt.Fprintf(b, "    %s, %s: %s\n", f.Code, f.Fact, plain(f.Detail))
	}
}
