// Package setup makes the files of an installation, and renews them: CA, certificates, operator tokens, roots and configuration.
package setup

import (
	"bytes"
	"cmp"
	"crypto/rand"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"portcullis/api/ca"
	"portcullis/api/credential"
	"portcullis/api/profile"
	"portcullis/cmd/portcullisd/command"
	"portcullis/cmd/portcullisd/config"
	"portcullis/cmd/portcullisd/newfile"
	"portcullis/fabricsm/keys"
	"portcullis/fabricsm/vault"
)

// newFile is one file of a fresh installation.
type newFile struct {
	name string
	data []byte
	mode fs.FileMode
}

// Init makes what a fresh installation needs, in one directory. It never
// overwrites: when any of the files exists, nothing is written. Root files are
// the exception: a purge leaves them, since they open what the state holds, and
// then they are kept and the rest is made.
func Init(args []string, stdout, stderr io.Writer) error {
	fl := flag.NewFlagSet("portcullisd init", flag.ContinueOnError)
	dir := fl.String("dir", filepath.Dir(command.DefaultConfigFile), "directory to fill")
	names := fl.String("names", defaultNames(), "DNS names and addresses of the service, with commas between")
	listen := fl.String("listen", "", "listen address to write into the configuration")
	stateDir := fl.String("state-dir", "", "state directory to write into the configuration")
	port := fl.String("fabric-port", "", "fabric port to write into the configuration")
	wanted := profile.SecuredBareMetal
	fl.Func("profile", "security profile whose settings to write into the configuration: general, bare-metal-cloud or secured-bare-metal-cloud (the default)", func(s string) (err error) {
		wanted, err = profile.Parse(s)
		return err
	})
	if err := command.Parse(fl, "", args, stdout, stderr); err != nil {
		return err
	}
	values := settings(wanted)
	for key, value := range map[string]string{
		"listen": *listen, "state_dir": *stateDir, "fabric/  port": *port, "fabric/    root": keysRoot, "locks/  root": locksRoot,
		"host_certificates/  ca_root": hostsRoot, "results/  root": resultsRoot, "results/  issuer": issuerOf(*names, *listen),
	} {
		if value != "" {
			values[key] = strconv.Quote(value)
		}
	}
	config, err := freshConfig(values)
	if err != nil {
		return command.Hint(err, "nothing was written; --listen, --state-dir and --fabric-port set these values")
	}
	files, err := freshFiles(strings.Split(*names, ","), config, time.Now())
	if err != nil {
		return err
	}
	files, kept, err := keepRoots(*dir, files)
	if err != nil {
		return err
	}
	if err := writeFresh(*dir, files); err != nil {
		return err
	}
	for _, name := range kept {
		fmt.Fprintf(stdout, "Kept %s, which was there.\n", filepath.Join(*dir, name))
	}
	fmt.Fprintf(stdout, `Made in %[1]s:
  portcullisd.yaml  configuration; still to be named: attestation.ek.roots
  tls/              CA, and a certificate for %[2]s; keep ca.key offline
  tokens.yaml       operator tokens, as digests
  operator.token    the token of the first operator; keep it secret
  keys.root         opens the sealed keys of devices; back it up, apart from the state
  locks.root        all lock keys of adapters are derived from it: without it no locked
                    adapter can ever be opened; back it up in two places
  hosts.root        opens the sealed key of the authority for certificates of hosts
  results.root      opens the keys that attestation results are signed by
  sm.key            proves this Subnet Manager to others that are allowed
The settings are those of the security profile %[3]v. What else it wants is to be done on the fabric:
portcullis profile check --profile %[3]v says what, and how.
Start the service with: portcullisd --config %[1]s/portcullisd.yaml
Ask it with:            portcullis --service https://HOST:PORT --ca %[1]s/tls/ca.pem --token-file %[1]s/operator.token host list
`, *dir, *names, wanted)
	return nil
}

const (
	// keysRoot is the file with what opens the sealed keys of devices.
	keysRoot = "keys.root"
	// locksRoot is the file that lock keys of adapters are derived from.
	locksRoot = "locks.root"
	// hostsRoot is the file with what opens the key of the authority for hosts.
	hostsRoot = "hosts.root"
	// resultsRoot is the file with what opens the keys of attestation results.
	resultsRoot = "results.root"
	// smKey is the file with the SM_Key.
	smKey = "sm.key"
)

// settings returns the settings of a security profile that differ from the defaults, by key as [freshConfig] takes them. Those of
// classes cost an installation something: requests of these classes by tools without the keys are refused.
func settings(p profile.Profile) map[string]string {
	out := map[string]string{}
	for _, s := range []struct {
		first      profile.Profile
		key, value string
	}{
		{profile.General, "fabric/  sm_key_file", smKey},
		{profile.BareMetal, "fabric/    allowed_sms", "[none]"},
		{profile.SecuredBareMetal, "fabric/    cc_key_enable", "enable"},
		{profile.SecuredBareMetal, "fabric/    vs_key_enable", "enable"},
		{profile.SecuredBareMetal, "fabric/    n2n_key_enable", "enable"},
	} {
		if s.first <= p {
			out[s.key] = s.value
		}
	}
	return out
}

// Roots are the files that a purge leaves.
var Roots = []string{keysRoot, locksRoot, hostsRoot, resultsRoot}

// keepRoots returns the files that are to be made, and the names of root files that are there already.
func keepRoots(dir string, files []newFile) (missing []newFile, kept []string, _ error) {
	for _, f := range files {
		if slices.Contains(Roots, f.name) {
			info, err := os.Lstat(filepath.Join(dir, f.name))
			if err == nil && info.Mode().IsRegular() {
				kept = append(kept, f.name)
				continue
			}
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				return nil, nil, err
			}
		}
		missing = append(missing, f)
	}
	return missing, kept, nil
}

// issuerOf names the service by its first name and the port it listens at.
func issuerOf(names, listen string) string {
	first, _, _ := strings.Cut(names, ",")
	_, port, err := net.SplitHostPort(cmp.Or(listen, config.Default().Listen))
	if err != nil {
		return "https://" + first // the address is refused for itself
	}
	return "https://" + net.JoinHostPort(first, port)
}

// defaultNames are the names a service on this machine goes by.
func defaultNames() string {
	names := []string{"localhost", "127.0.0.1", "::1"}
	if host, err := os.Hostname(); err == nil && host != "localhost" {
		names = append([]string{host}, names...)
	}
	return strings.Join(names, ",")
}

// freshConfig is the reference configuration with the given keys changed to YAML values: those within
// a section are named with it, a slash, and as they are indented.
func freshConfig(changes map[string]string) ([]byte, error) {
	lines := strings.SplitAfter(string(config.Reference), "\n")
	section := ""
	for i, line := range lines {
		if name, ok := strings.CutSuffix(line, ":\n"); ok && !strings.HasPrefix(name, " ") {
			section = name + "/"
		}
		key, _, ok := strings.Cut(line, ": ")
		name := key
		if strings.HasPrefix(key, " ") {
			name = section + key
		}
		if value := changes[name]; ok && value != "" {
			lines[i] = fmt.Sprintf("%s: %s\n", key, value)
		}
	}
	data := []byte(strings.Join(lines, ""))
	if _, err := config.Parse("portcullisd.yaml", data); err != nil {
		return nil, err
	}
	return data, nil
}

func freshFiles(names []string, config []byte, now time.Time) ([]newFile, error) {
	root, err := ca.New("Portcullis CA", now)
	if err != nil {
		return nil, err
	}
	rootPair, err := root.PEM()
	if err != nil {
		return nil, err
	}
	server, err := root.IssueServer(names, now)
	if err != nil {
		return nil, err
	}
	secret, err := vault.NewSecret(rand.Reader)
	if err != nil {
		return nil, err
	}
	lockSecret, err := vault.NewSecret(rand.Reader)
	if err != nil {
		return nil, err
	}
	hostsSecret, err := vault.NewSecret(rand.Reader)
	if err != nil {
		return nil, err
	}
	resultsSecret, err := vault.NewSecret(rand.Reader)
	if err != nil {
		return nil, err
	}
	own, err := keys.Draw(rand.Reader)
	if err != nil {
		return nil, err
	}
	token, digest := credential.New()
	tokens := bytes.NewBufferString("# Operator tokens. \"portcullisd token\" makes another entry.\ntokens:\n")
	tokens.WriteString(tokenEntry("operator", credential.Operator, digest, now, firstTokenDays))
	return []newFile{
		{"tls/ca.pem", rootPair.Cert, 0o644},
		{"tls/ca.key", rootPair.Key, 0o600},
		{"tls/server.pem", server.Cert, 0o644},
		{"tls/server.key", server.Key, 0o600},
		{"tokens.yaml", tokens.Bytes(), 0o600},
		{"operator.token", []byte(token + "\n"), 0o600},
		{keysRoot, secret, 0o600},
		{locksRoot, lockSecret, 0o600},
		{hostsRoot, hostsSecret, 0o600},
		{resultsRoot, resultsSecret, 0o600},
		{smKey, fmt.Appendf(nil, "0x%016x\n", own.Reveal()), 0o600},
		{"portcullisd.yaml", config, 0o644},
	}, nil
}

func writeFresh(dir string, files []newFile) error {
	var exist []error
	for _, f := range files {
		path := filepath.Join(dir, f.name)
		if _, err := os.Lstat(path); err == nil {
			exist = append(exist, fmt.Errorf("%s exists", path))
		} else if !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	if err := errors.Join(exist...); err != nil {
		return command.Hint(err, "nothing was written; name an empty directory with --dir, or remove the files first")
	}
	if err := os.MkdirAll(filepath.Join(dir, "tls"), 0o755); err != nil {
		return err
	}
	for i, f := range files {
		if err := newfile.Write(filepath.Join(dir, f.name), f.data, f.mode); err != nil {
			for _, made := range files[:i] {
				err = errors.Join(err, os.Remove(filepath.Join(dir, made.name)))
			}
			return command.Hint(err, "no file was left behind; correct that and call it again")
		}
	}
	return nil
}
