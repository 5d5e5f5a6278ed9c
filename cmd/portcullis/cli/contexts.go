package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/google/renameio/v2"
	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v4"

	"portcullis/cmd/internal/input"
	"portcullis/fabricsm/strictyaml"
)

// envContext names a context.
const envContext = "PORTCULLIS_CONTEXT"

const maxContexts = 256

var contextName = regexp.MustCompile(`^[a-z0-9][a-z0-9._-]{0,62}$`)

// Context is a service with the files by which it is asked. It has no secret: token and private key are in files of their own.
type Context struct {
	Name      string `yaml:"name" json:"name"`
	Service   string `yaml:"service,omitempty" json:"service,omitempty"`
	CA        string `yaml:"ca,omitempty" json:"ca,omitempty"`
	TokenFile string `yaml:"token_file,omitempty" json:"token_file,omitempty"`
	CertFile  string `yaml:"client_cert,omitempty" json:"client_cert,omitempty"`
	KeyFile   string `yaml:"client_key,omitempty" json:"client_key,omitempty"`
	Socket    string `yaml:"socket,omitempty" json:"socket,omitempty"`
}

// Contexts is the file of contexts.
type Contexts struct {
	Current string    `yaml:"current,omitempty" json:"current,omitempty"`
	List    []Context `yaml:"contexts" json:"contexts"`

	file string
}

// LoadContexts reads the file of contexts. Where there is none, the list is empty.
func LoadContexts() (*Contexts, error) {
	dir, err := os.UserConfigDir()
	if err != nil {
		return &Contexts{}, nil // no home: there are no contexts
	}
	c := &Contexts{file: filepath.Join(dir, "portcullis", "contexts.yaml")}
	data, err := input.ReadFile(c.file, input.Small)
	if errors.Is(err, fs.ErrNotExist) {
		return c, nil
	}
	if err != nil {
		return nil, fmt.Errorf("contexts: %w", err)
	}
	if strictyaml.Blank(data) {
		return c, nil
	}
	root, err := strictyaml.Document("contexts "+c.file, data, input.Small)
	if err == nil {
		err = strictyaml.Load("contexts "+c.file, data, input.Small, c)
	}
	if err != nil {
		return nil, Hint(err, "it may have current and a list contexts, whose elements may have name, service, ca, token_file, client_cert, client_key and socket")
	}
	if err := c.check(root); err != nil {
		return nil, err
	}
	if err := c.checkMode(); err != nil {
		return nil, err
	}
	dir = filepath.Dir(c.file)
	for i := range c.List {
		for _, p := range []*string{&c.List[i].CA, &c.List[i].TokenFile, &c.List[i].CertFile, &c.List[i].KeyFile, &c.List[i].Socket} {
			if *p != "" && !filepath.IsAbs(*p) {
				*p = filepath.Join(dir, *p)
			}
		}
	}
	return c, nil
}

// check reports every mistake with its line; root is the document, nil for contexts that are not in a file yet.
func (c *Contexts) check(root *yaml.Node) error {
	var errs []error
	wrong := func(text string, path ...string) {
		place := "contexts " + c.file
		if line := strictyaml.LineOf(root, path...); line > 0 {
			place += ":" + strconv.Itoa(line)
		}
		errs = append(errs, fmt.Errorf("%s: %s: %s", place, strings.Join(path, "."), text))
	}
	if len(c.List) > maxContexts {
		wrong(fmt.Sprintf("%d of them: remove some, at most %d are read", len(c.List), maxContexts), "contexts")
	}
	for i := range c.List {
		x, n := &c.List[i], strconv.Itoa(i)
		switch {
		case !contextName.MatchString(x.Name):
			wrong(fmt.Sprintf("%.64q is no name: choose 1 to 63 small letters, digits, dots, hyphens and underscores", x.Name), "contexts", n, "name")
		case slices.ContainsFunc(c.List[:i], func(o Context) bool { return o.Name == x.Name }):
			wrong(x.Name+" is there twice: rename or remove one", "contexts", n, "name")
		}
		switch {
		case (x.Service == "") == (x.Socket == ""):
			wrong("write either service: https://HOST:PORT or socket: PATH", "contexts", n)
		case x.Service != "" && !strings.HasPrefix(x.Service, "https://"):
			wrong(fmt.Sprintf("%.128q: write https://HOST:PORT", x.Service), "contexts", n, "service")
		case x.Socket != "" && x.CA+x.TokenFile+x.CertFile+x.KeyFile != "":
			wrong("a socket needs neither ca nor a credential (token_file, client_cert, client_key): remove them", "contexts", n)
		}
		if text := (&credentialFiles{x.TokenFile, x.CertFile, x.KeyFile}).wrong(); text != "" {
			wrong(text, "contexts", n)
		}
	}
	if _, ok := c.Find(c.Current); c.Current != "" && !ok {
		wrong(fmt.Sprintf("%.64q is not in the list: choose one of it with portcullis context use", c.Current), "current")
	}
	return errors.Join(errs...)
}

// checkMode refuses a file by which others could send a token elsewhere, or find one.
func (c *Contexts) checkMode() error {
	info, err := os.Stat(c.file)
	if err != nil {
		return fmt.Errorf("contexts: %w", err)
	}
	mode := info.Mode().Perm()
	switch {
	case mode&0o022 != 0:
		err = fmt.Errorf("contexts %s has mode %04o: others can change to which service a token is sent", c.file, mode)
	case mode&0o077 != 0 && slices.ContainsFunc(c.List, func(x Context) bool { return x.TokenFile+x.KeyFile != "" }):
		err = fmt.Errorf("contexts %s has mode %04o, and it names files of tokens or keys", c.file, mode)
	default:
		return nil
	}
	return Hint(err, "chmod 600 "+c.file)
}

// Find returns the context of a name.
func (c *Contexts) Find(name string) (*Context, bool) {
	i := slices.IndexFunc(c.List, func(x Context) bool { return x.Name == name })
	if i < 0 {
		return nil, false
	}
	return &c.List[i], true
}

// Must returns the context of a name, or an error that says what to do.
func (c *Contexts) Must(name string) (*Context, error) {
	x, ok := c.Find(name)
	if !ok {
		return nil, &UsageError{
			Msg:  fmt.Sprintf("there is no context %q in %s", name, c.file),
			Hint: "portcullis context list names them, and portcullis context add makes one",
		}
	}
	return x, nil
}

// Save checks the contexts and writes them, whole or not at all.
func (c *Contexts) Save() error {
	if c.file == "" {
		return &UsageError{Msg: "there is no folder for contexts: neither XDG_CONFIG_HOME nor HOME is set", Hint: "set one of them"}
	}
	if err := c.check(nil); err != nil {
		return err
	}
	var out bytes.Buffer
	data, err := yaml.Dump(c)
	if err != nil {
		return fmt.Errorf("contexts %s: %w", c.file, err)
	}
	out.WriteString("# portcullis context writes this file.\n")
	out.Write(data)
	if err := os.MkdirAll(filepath.Dir(c.file), 0o700); err != nil {
		return fmt.Errorf("contexts: %w", err)
	}
	if err := renameio.WriteFile(c.file, out.Bytes(), 0o600); err != nil {
		return fmt.Errorf("contexts: %w", err)
	}
	return nil
}

// ContextOfFlags returns a context of the options of the connection, for a command that keeps it.
func (env *Env) ContextOfFlags(name string) (Context, error) {
	x := Context{Name: name, Service: env.conn.service, CA: env.conn.ca, TokenFile: env.conn.tokenFile, CertFile: env.conn.certFile, KeyFile: env.conn.keyFile, Socket: env.conn.socket}
	if wrong := env.conn.wrong(); wrong != "" {
		return x, &UsageError{Msg: "the command line " + wrong, Hint: hintCredential}
	}
	for _, p := range []*string{&x.CA, &x.TokenFile, &x.CertFile, &x.KeyFile, &x.Socket} {
		if *p == "" {
			continue
		}
		abs, err := filepath.Abs(*p)
		if err != nil {
			return x, fmt.Errorf("context %s: %w", name, err)
		}
		*p = abs
	}
	return x, nil
}

// ContextName returns the name of the context that commands use, "" without one: of --context, of the environment, or the
// current one of the file.
func (env *Env) ContextName(c *Contexts) string { return env.conn.contextName(c) }

func (c *connection) contextName(all *Contexts) string {
	for _, name := range []string{c.context, os.Getenv(envContext)} {
		if name != "" {
			return name
		}
	}
	return all.Current
}

// settings returns what a file says of the connection: the context in use, or the configuration file. The files of a context
// are for its service alone, so it counts only where neither an option nor the environment names another one.
func (c *connection) settings() (fileConfig, error) {
	if c.context != "" && c.configFile != "" {
		return fileConfig{}, &UsageError{Msg: "--context and --config exclude each other", Hint: "leave one out"}
	}
	elsewhere := ""
	for _, place := range [][2]string{
		{c.service, "--service"}, {c.socket, "--socket"}, {os.Getenv(EnvService), EnvService}, {os.Getenv(envSocket), envSocket},
	} {
		if place[0] != "" {
			elsewhere = place[1]
			break
		}
	}
	switch {
	case c.context != "" && elsewhere != "":
		return fileConfig{}, &UsageError{
			Msg:  "--context " + c.context + " names a service, and " + elsewhere + " names one too",
			Hint: "leave out --context, or " + elsewhere,
		}
	case elsewhere != "" || c.configFile != "":
		return c.readConfig()
	}
	all, err := LoadContexts()
	if err != nil {
		return fileConfig{}, err
	}
	name := c.contextName(all)
	if name == "" {
		return c.readConfig()
	}
	x, err := all.Must(name)
	if err != nil {
		return fileConfig{}, err
	}
	c.configFile, c.used = all.file, name
	return fileConfig{Service: x.Service, CA: x.CA, TokenFile: x.TokenFile, CertFile: x.CertFile, KeyFile: x.KeyFile, Socket: x.Socket}, nil
}

// CompleteContexts offers the names of contexts to a shell.
func CompleteContexts(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	all, err := LoadContexts()
	if err != nil || len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var names []string
	for i := range all.List {
		names = append(names, all.List[i].Name)
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}
