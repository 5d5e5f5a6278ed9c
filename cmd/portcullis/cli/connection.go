package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"portcullis/api/client"
	"portcullis/cmd/internal/input"
	"portcullis/cmd/internal/version"
	"portcullis/fabricsm/strictyaml"
)

// connection says which service to ask, and with which credentials.
type connection struct {
	service, ca string
	credentialFiles
	socket     string
	configFile string
	context    string // of the option
	used       string // context that is in use; "": none
	done       bool   // nothing is left open
}

// Environment variables; they name places, never secrets.
const (
	EnvService    = "PORTCULLIS_SERVICE"
	EnvCA         = "PORTCULLIS_CA"
	EnvTokenFile  = "PORTCULLIS_TOKEN_FILE"
	EnvClientCert = "PORTCULLIS_CLIENT_CERT"
	envClientKey  = "PORTCULLIS_CLIENT_KEY"
	envSocket     = "PORTCULLIS_SOCKET"
)

// Connect returns a client for the service that flags, environment or configuration name, in this order.
func (env *Env) Connect() (*client.Client, error) {
	if env.client != nil {
		return env.client, nil
	}
	c, err := env.dial()
	if err == nil {
		env.client = c
	}
	return c, err
}

func (env *Env) dial() (*client.Client, error) {
	if err := env.conn.complete(); err != nil {
		return nil, err
	}
	if err := env.reason.check(); err != nil {
		return nil, err
	}
	if env.conn.socket != "" {
		return client.New(client.Options{Socket: env.conn.socket, UserAgent: "portcullis/" + version.Short(), Reason: env.reason.text})
	}
	o, err := env.options()
	if err != nil {
		return nil, err
	}
	switch {
	case env.conn.certFile != "":
		if err := input.CheckPrivate(env.conn.keyFile); err != nil {
			return nil, err
		}
		o.Certificate = client.CertificateFiles(env.conn.certFile, env.conn.keyFile)
		if _, err := o.Certificate(); err != nil {
			return nil, err
		}
	case env.conn.tokenFile == "":
		if err := env.useSession(&o); err != nil {
			return nil, err
		}
	default:
		token, err := input.ReadFile(env.conn.tokenFile, input.Small)
		if err != nil {
			return nil, fmt.Errorf("read token: %w", err)
		}
		env.warnReadable(env.conn.tokenFile)
		o.Token = string(bytes.TrimSpace(token))
	}
	c, err := client.New(o)
	if err != nil {
		return nil, Hint(err, fmt.Sprintf("check --service %s, --ca %s and --token-file %s", env.conn.service, env.conn.ca, env.conn.tokenFile))
	}
	return c, nil
}

// options returns what a client needs to ask the service, without a credential.
func (env *Env) options() (client.Options, error) {
	o := client.Options{URL: env.conn.service, UserAgent: "portcullis/" + version.Short(), Reason: env.reason.text}
	if env.conn.ca != "" {
		pem, err := input.ReadFile(env.conn.ca, input.Small)
		if err != nil {
			return o, fmt.Errorf("read CA: %w", err)
		}
		o.CA = pem
	}
	return o, nil
}

// warnReadable warns when others can read the token.
func (env *Env) warnReadable(file string) {
	info, err := os.Stat(file)
	if err == nil && info.Mode().IsRegular() && info.Mode().Perm()&0o004 != 0 {
		fmt.Fprintf(env.Err, "portcullis: warning: all users of this machine can read the token in %s\nportcullis: hint: chmod o-r %s\n", file, file)
	}
}

// complete fills what flags left open, once.
func (c *connection) complete() error {
	if c.done {
		return nil
	}
	file, err := c.settings()
	if err != nil {
		return err
	}
	first := func(values ...string) string {
		for _, v := range values {
			if v != "" {
				return v
			}
		}
		return ""
	}
	if c.service != "" && c.socket != "" {
		return &UsageError{Msg: "--service and --socket exclude each other", Hint: "leave one out"}
	}
	if c.socket = c.localSocket(&file); c.socket != "" {
		c.done = true
		return nil
	}
	c.service = first(c.service, os.Getenv(EnvService), file.Service)
	c.ca = first(c.ca, os.Getenv(EnvCA), file.CA)
	if c.credentialFiles, err = c.chooseCredential(&file); err != nil {
		return err
	}
	if c.service == "" {
		return &UsageError{
			Msg:  "no service is named",
			Hint: "use --service https://HOST:PORT or --context NAME, set " + EnvService + ", or write service: into " + c.configFile,
		}
	}
	c.done = true
	return nil
}

// localSocket returns the socket to ask, or "" for the service. Flags come before the environment, and that before the
// file; at one place the socket comes first.
func (c *connection) localSocket(file *fileConfig) string {
	for _, place := range [][2]string{
		{c.socket, c.service}, {os.Getenv(envSocket), os.Getenv(EnvService)}, {file.Socket, file.Service},
	} {
		if place[0] != "" || place[1] != "" {
			return place[0]
		}
	}
	return ""
}

// fileConfig is the configuration file. Relative paths in it are relative to
// the file.
type fileConfig struct {
	Service   string `yaml:"service"`
	CA        string `yaml:"ca"`
	TokenFile string `yaml:"token_file"`
	CertFile  string `yaml:"client_cert"`
	KeyFile   string `yaml:"client_key"`
	Socket    string `yaml:"socket"`
}

func (c *connection) readConfig() (fileConfig, error) {
	var f fileConfig
	named := c.configFile != ""
	if !named {
		dir, err := os.UserConfigDir()
		if err != nil {
			return f, nil // no home: nothing to read
		}
		c.configFile = filepath.Join(dir, "portcullis", "config.yaml")
	}
	data, err := input.ReadFile(c.configFile, input.Small)
	if errors.Is(err, fs.ErrNotExist) && !named {
		return f, nil
	}
	if err != nil {
		return f, fmt.Errorf("configuration: %w", err)
	}
	if err := strictyaml.LoadOptional("configuration "+c.configFile, data, input.Small, &f); err != nil {
		return f, Hint(err, "it may have service, ca, token_file, client_cert, client_key and socket")
	}
	dir := filepath.Dir(c.configFile)
	for _, p := range []*string{&f.CA, &f.TokenFile, &f.CertFile, &f.KeyFile, &f.Socket} {
		if *p != "" && !filepath.IsAbs(*p) {
			*p = filepath.Join(dir, *p)
		}
	}
	return f, nil
}
