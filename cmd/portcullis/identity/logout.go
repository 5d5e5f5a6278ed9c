package identity

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"portcullis/cmd/internal/session"
	"portcullis/cmd/internal/signin"
	"portcullis/cmd/portcullis/cli"
)

// signedOut is what logout prints.
type signedOut struct {
	Session   string `json:"session"`
	SignedOut bool   `json:"signed_out"` // false: there was no session
	Revoked   bool   `json:"revoked"`
}

func logout(env *cli.Env) *cobra.Command {
	return &cobra.Command{
		Use: "logout", Short: "Sign out: revoke the session at its provider, and remove it", Args: cli.Operands(),
		Long: `Sign out: have the identity provider revoke the session of the context in use, or of --service, and
remove its tokens from this machine. They are removed also where the provider can't be asked; the exit code is 1 then.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			at, err := env.SignInPlace()
			if err != nil {
				return err
			}
			return signOut(cmd.Context(), env, at)
		},
	}
}

// signOut ends a session. One that can't be read is removed.
func signOut(ctx context.Context, env *cli.Env, at *cli.SignInPlace) error {
	if s, err := at.Read(); s == nil && err == nil {
		return env.Print(signedOut{Session: at.String()}, func(w *cli.Columns) { w.Text("there is no session of %s", at) })
	}
	out, said := signedOut{Session: at.String(), SignedOut: true}, "signed out of "+at.String()
	err := at.End(ctx, func(s *session.Session) error {
		p, err := signin.Discover(ctx, s.Settings)
		if err != nil {
			return notRevoked(s, err)
		}
		done, err := p.Revoke(ctx, &s.Tokens)
		switch {
		case err != nil:
			return notRevoked(s, err)
		case done:
			out.Revoked = true
			said += ", and revoked at the provider " + s.Provider
		default:
			said += "; the provider " + s.Provider + " revokes nothing, so that its token is good until " + cli.Stamp(s.Tokens.Expires)
		}
		return nil
	})
	if err != nil {
		return err
	}
	return env.Print(out, func(w *cli.Columns) { w.Text("%s", said) })
}

func notRevoked(s *session.Session, err error) error {
	return cli.Hint(fmt.Errorf("the session is removed here, and not revoked at the provider %s: %w", s.Provider, err),
		"end it on the account's page of the provider; its token is good until "+cli.Stamp(s.Tokens.Expires))
}
