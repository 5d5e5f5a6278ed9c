package identity

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"portcullis/api/client"
	v1 "portcullis/api/v1"
	"portcullis/cmd/internal/input"
	"portcullis/cmd/internal/session"
	"portcullis/cmd/internal/signin"
	"portcullis/cmd/portcullis/cli"
	"portcullis/fabricsm/ib"
)

// revokeWithin is how long a provider may take to revoke tokens whose end no person awaits.
const revokeWithin = 5 * time.Second

// signedIn is what login prints.
type signedIn struct {
	Session  string     `json:"session"`
	Provider string     `json:"provider"`
	Name     string     `json:"name"`
	Role     string     `json:"role"`
	Expires  *time.Time `json:"token_expires,omitempty"`
	Renewed  bool       `json:"renewed"`
}

func login(env *cli.Env) *cobra.Command {
	var provider, caFile string
	var browser bool
	c := &cobra.Command{
		Use: "login", Short: "Sign in at an identity provider of the service", Args: cli.Operands(),
		Long: `Sign in at an identity provider of the service. The service says which providers there are.

A page and a code are shown, for a browser on any machine. With --browser the answer comes to a
browser on this machine instead. The tokens are kept for the context in use, or for --service, in
~/.config/portcullis/sessions, and renewed while the provider allows it. A file of a token and a client
certificate come before a session.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			at, err := env.SignInPlace()
			if err != nil {
				return err
			}
			if at.TokenFile != "" {
				return &cli.UsageError{
					Msg:  "the token in " + at.TokenFile + " comes before a session of " + at.String(),
					Hint: "leave out --token-file and " + cli.EnvTokenFile + ", and token_file of the context or of the configuration",
				}
			}
			if at.CertFile != "" {
				return &cli.UsageError{
					Msg:  "the client certificate in " + at.CertFile + " comes before a session of " + at.String(),
					Hint: "leave out --client-cert, --client-key and " + cli.EnvClientCert + ", and client_cert of the context or of the configuration",
				}
			}
			if _, err := at.Read(); err != nil {
				return err // the new session could not be kept either
			}
			stranger, err := env.Stranger()
			if err != nil {
				return err
			}
			chosen, settings, err := chosen(cmd.Context(), stranger, provider, caFile)
			if err != nil {
				return err
			}
			p, err := signin.Discover(cmd.Context(), *settings)
			if err != nil {
				return err
			}
			fmt.Fprintf(env.Err, "Sign in at %s, for the client %s. The service names both.\n", cli.Plain(settings.Issuer), cli.Plain(settings.ClientID))
			var tokens *signin.Tokens
			if browser {
				tokens, err = p.Browser(cmd.Context(), func(url string) { showPage(cmd.Context(), env, url) })
			} else {
				tokens, err = p.Device(cmd.Context(), func(c *signin.Code) { showCode(env, c) })
			}
			if errors.Is(err, signin.ErrInterrupted) {
				err = fmt.Errorf("%w: nothing was signed in", err)
			}
			if err != nil {
				return err
			}
			who, err := accepted(cmd.Context(), stranger, tokens)
			if err != nil {
				revokeQuietly(cmd.Context(), p, tokens)
				return err
			}
			return keep(cmd.Context(), env, at, p, &session.Session{
				Service: at.Service, Provider: chosen.Name, Settings: *settings, Tokens: *tokens, SignedIn: time.Now().UTC().Truncate(time.Second),
			}, who)
		},
	}
	c.Flags().StringVar(&provider, "provider", "", "identity provider, where the service has several")
	c.Flags().StringVar(&caFile, "provider-ca", "", "PEM file of the CA of the provider's certificate, instead of what the service says")
	c.Flags().BoolVar(&browser, "browser", false, "sign in with a browser on this machine, without a code")
	return c
}

// chosen asks the service at which provider to sign in, and how.
func chosen(ctx context.Context, stranger *client.Client, name, caFile string) (*v1.LoginProvider, *signin.Settings, error) {
	all, err := stranger.Logins(ctx)
	if err != nil {
		return nil, nil, err
	}
	p, err := choose(all.Providers, name)
	if err != nil {
		return nil, nil, err
	}
	s := &signin.Settings{Issuer: p.Issuer, ClientID: p.ClientID, Scopes: p.Scopes, UseID: p.Token == "id", Audience: p.Audience, CA: []byte(p.CA)}
	if caFile != "" {
		if s.CA, err = input.ReadFile(caFile, input.Small); err != nil {
			return nil, nil, fmt.Errorf("read --provider-ca: %w", err)
		}
		if len(s.CA) == 0 {
			return nil, nil, &cli.UsageError{Msg: "--provider-ca " + caFile + " is empty", Hint: "name a PEM file of the CA of the provider's certificate"}
		}
	}
	return p, s, nil
}

func choose(all []v1.LoginProvider, name string) (*v1.LoginProvider, error) {
	var names []string
	for i := range all {
		if all[i].Name == name || name == "" && len(all) == 1 {
			return &all[i], nil
		}
		names = append(names, all[i].Name)
	}
	switch {
	case len(all) == 0:
		return nil, cli.Hint(errors.New("the service names no identity provider for people who sign in"),
			"have its operator add login: {client_id: ...} to one of oidc in its configuration; until then use --token-file")
	case name == "":
		return nil, &cli.UsageError{Msg: "the service has several identity providers", Hint: "choose one with --provider: " + strings.Join(names, ", ")}
	default:
		return nil, &cli.UsageError{Msg: fmt.Sprintf("the service has no identity provider %q", name), Hint: "choose one with --provider: " + strings.Join(names, ", ")}
	}
}

// showCode says where a person enters a code. It goes to standard error: standard output has the result.
func showCode(env *cli.Env, c *signin.Code) {
	fmt.Fprintf(env.Err, "Open %s in a browser, on any machine, and enter the code %s\n", cli.Plain(c.URL), cli.Plain(c.Code))
	if c.Complete != "" {
		fmt.Fprintf(env.Err, "This page has the code already; compare it: %s\n", cli.Plain(c.Complete))
	}
	fmt.Fprintf(env.Err, "The code ends at %s.\n", cli.Stamp(c.Expires))
}

// showPage has a browser open a page, where there is a display, and shows its address.
func showPage(ctx context.Context, env *cli.Env, page string) {
	fmt.Fprintf(env.Err, "Open this page in a browser on this machine:\n%s\n", cli.Plain(page))
	if os.Getenv("DISPLAY") == "" && os.Getenv("WAYLAND_DISPLAY") == "" {
		return
	}
	cmd := exec.CommandContext(context.WithoutCancel(ctx), "xdg-open", page)
	if cmd.Start() == nil { // without it the person opens the page
		_ = cmd.Process.Release() // a browser may live longer than this program
	}
}

// accepted asks the service for the owner of a token.
func accepted(ctx context.Context, stranger *client.Client, t *signin.Tokens) (*v1.WhoAmI, error) {
	who, err := stranger.WithSource(func(context.Context) (ib.SecretText, error) { return t.Bearer, nil }).WhoAmI(ctx)
	if p, ok := errors.AsType[*v1.Problem](err); ok {
		return nil, cli.Hint(fmt.Errorf("the provider signed you in, and the service does not accept its token: %w", err), p.Hint)
	}
	return who, err
}

// revokeQuietly takes back tokens that are of no use, also after the command was interrupted. That this fails says nothing new.
func revokeQuietly(ctx context.Context, p *signin.Provider, t *signin.Tokens) {
	within, cancel := context.WithTimeout(context.WithoutCancel(ctx), revokeWithin)
	defer cancel()
	_, _ = p.Revoke(within, t)
}

// keep keeps a session in place of an earlier one, and says so. The earlier one of another person is revoked. That of the same person is
// not: a provider may end all that it granted to the person and the client then (RFC 7009, section 2.1), the new session too.
func keep(ctx context.Context, env *cli.Env, at *cli.SignInPlace, p *signin.Provider, s *session.Session, who *v1.WhoAmI) error {
	var earlier *session.Session
	err := at.Change(ctx, func(was *session.Session) (*session.Session, error) {
		earlier = was
		return s, nil
	})
	if err != nil {
		revokeQuietly(ctx, p, &s.Tokens)
		return err
	}
	if earlier != nil && earlier.Settings.Issuer == s.Settings.Issuer && earlier.Settings.ClientID == s.Settings.ClientID && earlier.Tokens.Subject != s.Tokens.Subject {
		revokeQuietly(ctx, p, &earlier.Tokens)
	}
	out := signedIn{at.String(), s.Provider, who.Name, who.Role, who.Expires, !s.Tokens.Refresh.IsZero()}
	return env.Print(out, func(w *cli.Columns) {
		w.Text("signed in for %s as %s, role %s; %s", out.Session, out.Name, out.Role, ending(s))
	})
}

// ending says when a session ends.
func ending(s *session.Session) string {
	if s.Tokens.Refresh.IsZero() {
		return "ends at " + cli.Stamp(s.Tokens.Expires)
	}
	return "token until " + cli.Stamp(s.Tokens.Expires) + ", then renewed while the provider allows it"
}
