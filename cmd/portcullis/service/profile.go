package service

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"portcullis/api/profile"
	v1 "portcullis/api/v1"
	"portcullis/cmd/portcullis/cli"
)

func profileCommand(env *cli.Env) *cobra.Command {
	return cli.Group("profile", "Security profiles: what an installation should have, and what it has", profileCheck(env), profileRules(env))
}

func profileCheck(env *cli.Env) *cobra.Command {
	in := v1.ProfileQuery{Name: profile.SecuredBareMetal.String()}
	c := &cobra.Command{
		Use: "check [--profile NAME]", Short: "Compare the installation with a security profile", Args: cli.Operands(),
		Long: `Have the service compare the installation with a security profile: general, bare-metal-cloud or
secured-bare-metal-cloud. For each rule its state is shown, and for those that do not hold why, what
was looked at, and the cure. A rule without evidence is unknown, and does not hold.

Exit status: 0 every rule holds, 1 a rule fails, 2 nothing was examined, 7 no rule fails, and some
are unknown.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if _, err := profile.Parse(in.Name); err != nil {
				return &cli.UsageError{Msg: err.Error(), Hint: "portcullis profile rules lists the rules of all"}
			}
			c, err := env.Connect()
			if err != nil {
				return cli.NotCompared(err)
			}
			r, err := c.Profile(cmd.Context(), in)
			if err != nil {
				return cli.NotCompared(err)
			}
			if err := env.Print(r, func(w *cli.Columns) { showProfile(w, r) }); err != nil {
				return cli.NotCompared(err)
			}
			return profileVerdict(r, in.Name)
		},
	}
	c.Flags().StringVar(&in.Name, "profile", in.Name, "general, bare-metal-cloud or secured-bare-metal-cloud")
	return c
}

// profileVerdict returns the error that makes the exit status. It counts the rules itself: an answer about another profile, without
// a rule that this program knows, or with a state that it does not know, is no comparison.
func profileVerdict(r *v1.SecurityProfile, name string) error {
	states := make(map[string]string, len(r.Rules))
	fails, unknown := false, false
	for i := range r.Rules {
		states[r.Rules[i].Rule] = r.Rules[i].State
		switch r.Rules[i].State {
		case v1.RuleHolds:
		case v1.RuleFails:
			fails = true
		case v1.RuleUnknown:
			unknown = true
		default:
			return cli.NotCompared(errors.New("the service answered a state of a rule that this program does not know: update it"))
		}
	}
	p, err := profile.Parse(name)
	if err != nil {
		return cli.NotCompared(err)
	}
	rules := profile.Rules()
	for i := range rules {
		if rules[i].In(p) && states[rules[i].Name] == "" {
			return cli.NotCompared(fmt.Errorf("the service says nothing of the rule %s: update the service", rules[i].Name))
		}
	}
	switch {
	case r.Name != name:
		return cli.NotCompared(fmt.Errorf("the service answered about the profile %q, and not %q", r.Name, name))
	case fails:
		return cli.ErrNo
	case unknown || !r.Holds:
		return cli.ExitWith(cli.ExitNotVerifiable)
	default:
		return nil
	}
}

func showProfile(w *cli.Columns, r *v1.SecurityProfile) {
	w.Text("%s: %d of 100: %s, %s, %s", r.Name, r.Score, states(r.Count.Holds, "holds", "hold"), states(r.Count.Fails, "fails", "fail"), states(r.Count.Unknown, "is unknown", "are unknown"))
	w.Gap()
	w.Row("RULE", "STATE", "DETAIL")
	for i := range r.Rules {
		w.Row(r.Rules[i].Rule, strings.ToUpper(r.Rules[i].State), r.Rules[i].Detail)
	}
	for i := range r.Rules {
		f := &r.Rules[i]
		if f.State == v1.RuleHolds {
			continue
		}
		w.Gap()
		w.Text("%s %s: %s", f.Rule, f.State, f.Detail)
		w.Text("  why: %s", f.Why)
		if f.Source != "" && f.At != nil {
			w.Text("  looked at: %s (%s)", f.Source, cli.Stamp(*f.At))
		}
		w.Text("  cure: %s", f.Cure)
	}
}

// states returns such as "1 rule fails" and "2 rules fail".
func states(n int, one, many string) string {
	if n == 1 {
		return "1 rule " + one
	}
	return fmt.Sprintf("%d rules %s", n, many)
}

// ruleRow is a rule as profile rules shows it.
type ruleRow struct {
	Rule  string `json:"rule"`
	First string `json:"first_profile"`
	Why   string `json:"why"`
	Cure  string `json:"cure"`
}

func profileRules(env *cli.Env) *cobra.Command {
	return &cobra.Command{
		Use: "rules", Short: "List the rules of the security profiles", Args: cli.Operands(),
		Long: `List the rules of the security profiles, with the first profile that has each, its reason and its
cure. Each profile has the rules of the one before: general, bare-metal-cloud,
secured-bare-metal-cloud. The command needs no service.`,
		RunE: func(*cobra.Command, []string) error {
			var rows []ruleRow
			for _, r := range profile.Rules() {
				rows = append(rows, ruleRow{r.Name, r.First.String(), r.Why, r.Cure})
			}
			return env.Print(rows, func(w *cli.Columns) {
				w.Row("RULE", "FIRST PROFILE", "WHY")
				for _, r := range rows {
					w.Row(r.Rule, r.First, r.Why)
				}
			})
		},
	}
}
