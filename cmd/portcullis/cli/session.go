package cli

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	"portcullis/api/client"
	v1 "portcullis/api/v1"
	"portcullis/cmd/internal/session"
	"portcullis/cmd/internal/signin"
)

// SignInPlace is where a person signs in: which service the tokens are for, and where they are kept.
type SignInPlace struct {
	session.Place
	Service   string
	TokenFile string // that comes before a session; "": none
	CertFile  string // likewise, of a client certificate
}

// SignInPlace returns where a person signs in, by the same options, environment and files as those of Connect.
func (env *Env) SignInPlace() (*SignInPlace, error) {
	if err := env.conn.complete(); err != nil {
		return nil, err
	}
	if env.conn.socket != "" {
		return nil, &UsageError{Msg: "a subnet manager on this machine asks for no credential", Hint: "name a service: --service or --context"}
	}
	place, err := env.conn.place()
	if err != nil {
		return nil, err
	}
	return &SignInPlace{place, env.conn.canonical(), env.conn.tokenFile, env.conn.certFile}, nil
}

// Stranger returns a client for the service that shows no credential.
func (env *Env) Stranger() (*client.Client, error) {
	if err := env.conn.complete(); err != nil {
		return nil, err
	}
	o, err := env.options()
	if err != nil {
		return nil, err
	}
	return client.New(o)
}

// Session returns the session whose token the client of Connect shows; nil without one.
func (env *Env) Session() *session.Session {
	if env.signed == nil {
		return nil
	}
	return env.signed.Session()
}

// SessionOf returns where the session of a context is.
func SessionOf(x *Context) (session.Place, error) {
	c := connection{used: x.Name, service: x.Service}
	return c.place()
}

// useSession has a client show the token of the session, if there is one.
func (env *Env) useSession(o *client.Options) error {
	place, err := env.conn.place()
	if err != nil {
		return nil // no home: there are no sessions
	}
	if env.signed, err = session.Open(place, env.conn.canonical()); err != nil {
		return err
	}
	if env.signed != nil {
		o.Source = env.signed.Token
	}
	return nil
}

// canonical returns the URL of the service as sessions have it.
func (c *connection) canonical() string { return strings.TrimRight(c.service, "/") }

// place returns where the session of this connection is: that of the context in use; without one, of the service.
func (c *connection) place() (session.Place, error) {
	dir, err := os.UserConfigDir()
	if err != nil {
		return session.Place{}, &UsageError{Msg: "there is no folder for sessions: neither XDG_CONFIG_HOME nor HOME is set", Hint: "set one of them"}
	}
	return session.Of(filepath.Join(dir, "portcullis"), c.used, c.canonical()), nil
}

// LoginCommand returns the command by which a person signs in for this connection.
func (env *Env) LoginCommand() string {
	if env.conn.used != "" {
		return "portcullis login --context " + env.conn.used
	}
	return "portcullis login --service " + env.conn.canonical()
}

// signInHint returns how to handle an error about a credential, "" for others.
func (env *Env) signInHint(err error) string {
	if e, ok := errors.AsType[*signin.Error](err); ok {
		return e.Hint
	}
	if _, ok := errors.AsType[*session.Ended](err); ok {
		return env.LoginCommand()
	}
	p, ok := errors.AsType[*v1.Problem](err)
	switch {
	case !ok || p.Status != http.StatusUnauthorized:
		return ""
	case env.signed != nil:
		return env.LoginCommand()
	case env.conn.certFile != "":
		return p.Hint
	case env.conn.tokenFile != "" || env.conn.service == "":
		return "name a file with a known token: --token-file FILE"
	default:
		return fmt.Sprintf("sign in with %s, or name a file with a known token: --token-file FILE", env.LoginCommand())
	}
}
