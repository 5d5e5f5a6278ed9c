package identity

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	v1 "portcullis/api/v1"
	"portcullis/cmd/internal/session"
	"portcullis/cmd/portcullis/cli"
)

func whoami(env *cli.Env) *cobra.Command {
	return &cobra.Command{
		Use: "whoami", Short: "Show the credential in use: its name, role, scope, end and limits", Args: cli.Operands(),
		Long: `Show the credential that the service sees: its name, how it was authenticated, its role, scope,
end and limits. The output holds no secret.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := env.Connect()
			if err != nil {
				return err
			}
			w, err := c.WhoAmI(cmd.Context())
			if err != nil {
				return err
			}
			s := env.Session()
			return env.Print(whoAmI{w, sessionOf(s)}, func(out *cli.Columns) {
				show(out, w)
				if s != nil {
					out.Row("SESSION", ending(s)+"; signed in at "+cli.Stamp(s.SignedIn))
				}
			})
		},
	}
}

// whoAmI is what the service says, and which session of this machine it was asked with.
type whoAmI struct {
	*v1.WhoAmI
	Session *sessionView `json:"session,omitempty"`
}

type sessionView struct {
	Provider string    `json:"provider"`
	Issuer   string    `json:"issuer"`
	SignedIn time.Time `json:"signed_in"`
	Expires  time.Time `json:"token_expires"`
	Renewed  bool      `json:"renewed"`
}

func sessionOf(s *session.Session) *sessionView {
	if s == nil {
		return nil
	}
	return &sessionView{s.Provider, s.Settings.Issuer, s.SignedIn.UTC(), s.Tokens.Expires.UTC(), !s.Tokens.Refresh.IsZero()}
}

func show(out *cli.Columns, w *v1.WhoAmI) {
	method := "token of the tokens file"
	switch w.Method {
	case "oidc":
		method = "identity provider " + w.Provider
	case "x509":
		method = "client certificate of the authority " + w.Provider
	}
	out.Row("NAME", w.Name)
	out.Row("AUTHENTICATED BY", method)
	out.Row("ROLE", w.Role)
	out.Row("SCOPE", scope(&w.Scope))
	out.Row("CREATED", stamp(w.Created))
	ends := stamp(w.Expires)
	if w.Expires == nil {
		ends = "never"
	}
	out.Row("EXPIRES", ends)
	out.Row("LIMIT", fmt.Sprintf("%g requests per second, %d at once", w.Limits.PerSecond, w.Limits.Burst))
}

func scope(s *v1.Scope) string {
	var out []string
	for _, l := range []struct {
		name string
		list []string
	}{{"tenants", s.Tenants}, {"P_Keys", s.PKeys}, {"hosts", s.Hosts}} {
		if len(l.list) > 0 {
			out = append(out, l.name+" "+strings.Join(l.list, " "))
		}
	}
	if len(out) == 0 {
		return "everything"
	}
	return strings.Join(out, "; ")
}

func stamp(t *time.Time) string {
	if t == nil {
		return ""
	}
	return cli.Stamp(*t)
}
