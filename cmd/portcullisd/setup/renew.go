package setup

import (
	"cmp"
	"crypto/tls"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"portcullis/api/ca"
	"portcullis/api/servercert"
	"portcullis/cmd/internal/input"
	"portcullis/cmd/portcullisd/command"
	"portcullis/cmd/portcullisd/config"
	"portcullis/cmd/portcullisd/newfile"
)

// Certificate makes the service's next TLS certificate, with the CA that init made. The key stays, so that one file is
// replaced and certificate and key belong together at each moment.
func Certificate(args []string, stdout, stderr io.Writer) error {
	if len(args) == 1 && strings.HasPrefix(args[0], "-") {
		args = []string{"renew", args[0]} // --help, or what is no option of it either
	}
	if len(args) == 0 || args[0] != "renew" {
		command.Report(stderr, command.Hint(errors.New("want: portcullisd certificate renew"), "portcullisd --help"))
		return command.ErrUsage
	}
	fs := flag.NewFlagSet("portcullisd certificate renew", flag.ContinueOnError)
	file := fs.String("config", command.DefaultConfigFile, "configuration file, which names certificate and key")
	caFile := fs.String("ca", "", "`file` with the CA certificate; ca.pem beside the certificate by default")
	keyFile := fs.String("ca-key", "", "`file` with the CA key; ca.key beside the certificate by default")
	if err := command.Parse(fs, "", args[1:], stdout, stderr); err != nil {
		return err
	}
	c, err := config.Load(*file)
	if err != nil {
		return err
	}
	certFile := c.Path(c.TLS.Cert)
	dir := filepath.Dir(certFile)
	names, ends, err := Renew(certFile, c.Path(c.TLS.Key), cmp.Or(*caFile, filepath.Join(dir, "ca.pem")), cmp.Or(*keyFile, filepath.Join(dir, "ca.key")), time.Now())
	if err != nil {
		return command.Hint(err, "nothing was written; if another authority issues the certificate, have it issue the next one")
	}
	fmt.Fprintf(stdout, "%s: a certificate for %s until %s\nHave the service take it with: systemctl reload portcullisd\n", certFile, strings.Join(names, ", "), ends.UTC().Format(time.RFC3339))
	return nil
}

// Renew replaces a certificate, and returns its names and when it ends.
func Renew(certFile, keyFile, caFile, caKeyFile string, now time.Time) (names []string, ends time.Time, err error) {
	pair, err := tls.LoadX509KeyPair(certFile, keyFile)
	if err != nil {
		return nil, ends, fmt.Errorf("the certificate in use: %w", err)
	}
	if err := input.CheckPrivate(caKeyFile); err != nil {
		return nil, ends, err
	}
	caCert, err := os.ReadFile(caFile)
	if err != nil {
		return nil, ends, fmt.Errorf("read CA: %w", err)
	}
	caKey, err := os.ReadFile(caKeyFile)
	if err != nil {
		return nil, ends, fmt.Errorf("read CA: %w", err)
	}
	authority, err := ca.ParsePEM(caCert, caKey)
	if err != nil {
		return nil, ends, fmt.Errorf("%s with %s: %w", caFile, caKeyFile, err)
	}
	cert, ends, err := authority.RenewServer(pair.Leaf, now)
	if err != nil {
		return nil, ends, err
	}
	names = append(names, pair.Leaf.DNSNames...)
	for _, ip := range pair.Leaf.IPAddresses {
		names = append(names, ip.String())
	}
	return names, ends, replaceFile(certFile, keyFile, cert, now)
}

// replaceFile puts a certificate in the place of another one at once, with the same owner and mode, after it was tried
// with the key.
func replaceFile(certFile, keyFile string, cert []byte, now time.Time) (err error) {
	old, err := os.Stat(certFile)
	if err != nil {
		return err
	}
	next := certFile + ".next"
	if err := os.Remove(next); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err // of a run that was interrupted
	}
	if err := newfile.Write(next, cert, old.Mode().Perm()); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(next))
		}
	}()
	if owner, ok := old.Sys().(*syscall.Stat_t); ok {
		if err := os.Chown(next, int(owner.Uid), int(owner.Gid)); err != nil {
			return err
		}
	}
	tried, err := servercert.Load(next, keyFile)
	if err == nil {
		err = tried.Usable(now)
	}
	if err != nil {
		return fmt.Errorf("the new certificate: %w", err)
	}
	if err := os.Rename(next, certFile); err != nil {
		return err
	}
	return syncDir(filepath.Dir(certFile))
}

// syncDir has what a directory names survive a loss of power.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
