// Package cluster is "portcullisd cluster": it changes which machines keep the store together.
package cluster

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"
	"time"

	"portcullis/api/instances"
	"portcullis/api/store"
	"portcullis/api/store/etcd"
	"portcullis/cmd/internal/input"
	"portcullis/cmd/portcullisd/command"
	"portcullis/cmd/portcullisd/config"
)

const clusterUsage = `Usage:
  portcullisd cluster init --name NAME --peer URL --client URL    make this machine the first member
  portcullisd cluster invite --name NAME --peer URL --client URL --out FILE
                                               write an invitation for another machine
  portcullisd cluster join --invitation FILE   have this machine join
  portcullisd cluster list                     list the members, and how they are
  portcullisd cluster remove --name NAME [--yes]
                                               take a member out permanently
  portcullisd cluster replace --name NAME --out FILE [--peer URL] [--client URL] [--yes]
                                               take out one that is lost, and invite another in its place
  portcullisd cluster recover --lost NAME,NAME [--yes]
                                               make this member, which is left without a quorum, the only one
  portcullisd cluster client --name NAME --out DIR
                                               make a certificate for a machine without a member
  portcullisd cluster revoke --name NAME       have no certificate of a member or client taken any more
  portcullisd cluster renew                    renew this member's certificate

Each takes --config FILE (/etc/portcullis/portcullisd.yaml), and --ca-key FILE where it
signs (ca.key beside cluster.ca).
`

// clusterCommand is what the commands have in common.
type clusterCommand struct {
	config *config.Config
	stdout io.Writer
	now    time.Time

	file, name, peer, client, out, invitation, caKey, lost string
	yes                                                    bool
}

// clusterVerbs lists the commands with the options of each, and those it cannot do without.
var clusterVerbs = map[string]struct {
	run            func(*clusterCommand, context.Context) error
	takes, demands string
}{
	"init":    {(*clusterCommand).begin, "name peer client ca-key", "name peer client"},
	"invite":  {(*clusterCommand).invite, "name peer client out ca-key", "name peer client out"},
	"join":    {(*clusterCommand).join, "invitation", "invitation"},
	"list":    {(*clusterCommand).list, "", ""},
	"remove":  {(*clusterCommand).remove, "name yes ca-key", "name"},
	"replace": {(*clusterCommand).replace, "name peer client out yes ca-key", "name out"},
	"recover": {(*clusterCommand).recover, "lost yes", "lost"},
	"client":  {(*clusterCommand).makeClient, "name out ca-key", "name out"},
	"revoke":  {(*clusterCommand).revoke, "name ca-key", "name"},
	"renew":   {(*clusterCommand).renew, "ca-key", ""},
}

// Run changes which machines keep the store together.
func Run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	if len(args) == 0 || args[0] == "--help" || args[0] == "-h" || args[0] == "-help" {
		fmt.Fprint(stdout, clusterUsage)
		if len(args) == 0 {
			return command.ErrUsage
		}
		return nil
	}
	verb, ok := clusterVerbs[args[0]]
	if !ok {
		command.Report(stderr, command.Hint(fmt.Errorf("unknown command cluster %q", args[0]), "portcullisd cluster --help"))
		return command.ErrUsage
	}
	c := &clusterCommand{stdout: stdout, now: time.Now()}
	fs := flag.NewFlagSet("portcullisd cluster "+args[0], flag.ContinueOnError)
	fs.StringVar(&c.file, "config", command.DefaultConfigFile, "configuration `file`")
	for option, add := range map[string]func(name string){
		"name": func(n string) { fs.StringVar(&c.name, n, "", "`name` of the member or client") },
		"peer": func(n string) {
			fs.StringVar(&c.peer, n, "", "`url` at which other members reach it: https://HOST:PORT")
		},
		"client":     func(n string) { fs.StringVar(&c.client, n, "", "`url` at which clients reach it: https://HOST:PORT") },
		"out":        func(n string) { fs.StringVar(&c.out, n, "", "`file` or directory to write, which must not exist") },
		"invitation": func(n string) { fs.StringVar(&c.invitation, n, "", "`file` of portcullisd cluster invite") },
		"ca-key":     func(n string) { fs.StringVar(&c.caKey, n, "", "`file` with the key of the cluster's authority") },
		"lost": func(n string) {
			fs.StringVar(&c.lost, n, "", "`names` of all other members, with commas: they are lost permanently")
		},
		"yes": func(n string) { fs.BoolVar(&c.yes, n, false, "do it; without, say what would be done") },
	} {
		if strings.Contains(" "+verb.takes+" ", " "+option+" ") {
			add(option)
		}
	}
	if err := command.Parse(fs, "", args[1:], stdout, stderr); err != nil {
		return err
	}
	for option := range strings.FieldsSeq(verb.demands) {
		if fs.Lookup(option).Value.String() == "" {
			command.Report(stderr, command.Hint(fmt.Errorf("--%s is missing", option), fs.Name()+" --help"))
			return command.ErrUsage
		}
	}
	var err error
	if c.config, err = config.Load(c.file); err != nil {
		return err
	}
	return verb.run(c, ctx)
}

// member demands that this machine is in a cluster.
func (c *clusterCommand) member() error {
	if c.config.Cluster.Name != "" {
		return nil
	}
	return command.Hint(fmt.Errorf("%s: cluster.name is empty: this machine is in no cluster", c.file),
		"portcullisd cluster init makes it the first member, and portcullisd cluster join one more")
}

// administer connects to the cluster by this member, and by those it knew when it joined.
func (c *clusterCommand) administer(ctx context.Context) (*etcd.Admin, error) {
	if err := c.member(); err != nil {
		return nil, err
	}
	m := c.config.Member()
	r := etcd.Remote{Endpoints: append([]string{m.Client}, knownClients(c.config.JoinFile())...)}
	var err error
	if r.TLS, err = config.LoadClientTLS("cluster", m.CA, m.Cert, m.Key, c.now); err != nil {
		return nil, err
	}
	a, err := etcd.Administer(ctx, r, slog.New(slog.DiscardHandler))
	if err != nil {
		return nil, command.Hint(err, "start the service of this machine, or call it on another member; without a quorum no member can be changed")
	}
	return a, nil
}

func (c *clusterCommand) list(ctx context.Context) (err error) {
	a, err := c.administer(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, a.Close()) }()
	members, err := a.Members(ctx)
	if err != nil {
		return err
	}
	w := tabwriter.NewWriter(c.stdout, 0, 8, 2, ' ', 0)
	fmt.Fprintln(w, "NAME\tSTATE\tRECORDS\tPEER\tCLIENT")
	voters, reachable := 0, 0
	for _, m := range members {
		if !m.Learner {
			voters++
			if m.Err == nil {
				reachable++
			}
		}
		fmt.Fprintf(w, "%s\t%s\t%d KiB\t%s\t%s\n", cmp.Or(m.Name, "-"), memberState(&m), m.Size>>10, m.Peer, cmp.Or(m.Client, "-"))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	for _, m := range members {
		if m.Err != nil {
			fmt.Fprintf(c.stdout, "%s: %v\n", cmp.Or(m.Name, m.Peer), m.Err)
		}
	}
	fmt.Fprintf(c.stdout, "%d of %d voting members are reachable; a quorum is %d.\n", reachable, voters, voters/2+1)
	return nil
}

func memberState(m *etcd.Member) string {
	switch {
	case m.Client == "":
		return "not started"
	case m.Err != nil:
		return "unreachable"
	case m.Learner:
		return "learner"
	case m.Leader:
		return "leader"
	}
	return "follower"
}

func (c *clusterCommand) remove(ctx context.Context) (err error) {
	a, err := c.administer(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, a.Close()) }()
	if ok, err := c.removeFrom(ctx, a); !ok || err != nil {
		return err
	}
	fmt.Fprintf(c.stdout, "Removed %s: its records are void. Stop its service.\n", c.name)
	return c.revokeIn(ctx, a)
}

// removeFrom takes the member out. It returns false where it only said what it would do.
func (c *clusterCommand) removeFrom(ctx context.Context, a *etcd.Admin) (done bool, _ error) {
	m, err := a.MayRemove(ctx, c.name)
	if err != nil {
		return false, err
	}
	if !c.yes {
		fmt.Fprintf(c.stdout, "Would remove %s (%s, %s) permanently, and revoke its certificate. Say --yes to do it.\n", c.name, memberState(m), m.Peer)
		return false, nil
	}
	if err := a.Remove(ctx, c.name); err != nil {
		return true, err
	}
	_, err = a.Records(c.config.Etcd.Prefix).Update(ctx, func(tx *store.Tx) error { instances.Forget(tx, c.name); return nil })
	return true, err
}

func (c *clusterCommand) replace(ctx context.Context) (err error) {
	a, err := c.administer(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, a.Close()) }()
	lost, err := a.MayRemove(ctx, c.name)
	if err != nil {
		return err
	}
	c.peer, c.client = cmp.Or(c.peer, lost.Peer), cmp.Or(c.client, lost.Client)
	for _, u := range []string{c.peer, c.client} {
		if err := etcd.CheckURL(u); err != nil {
			return command.Hint(err, "name the URLs of the new machine: --peer and --client")
		}
	}
	if c.yes {
		// Before anything is removed: the files needed to invite are there.
		if _, err := c.authority(); err != nil {
			return err
		}
		if _, err := input.ReadFile(c.issuedFile(c.name), config.MaxRevoked); err != nil {
			return command.Hint(fmt.Errorf("nothing was removed: the certificate of %s could not be revoked, since it is not known here: %w", c.name, err),
				"call it on the machine where that was made, or bring cluster/issued/ from there; if it is lost: portcullisd cluster remove, then invite")
		}
		if err := absent(c.out); err != nil {
			return err
		}
	}
	if ok, err := c.removeFrom(ctx, a); !ok || err != nil {
		return err
	}
	fmt.Fprintf(c.stdout, "Removed %s.\n", c.name)
	if err := c.revokeIn(ctx, a); err != nil {
		return err
	}
	return c.invite(ctx)
}

func (c *clusterCommand) join(ctx context.Context) (err error) {
	conf := c.config
	if conf.Cluster.Name != "" {
		return fmt.Errorf("%s: this machine is member %s of a cluster already", c.file, conf.Cluster.Name)
	}
	if len(conf.Etcd.Endpoints) > 0 {
		return fmt.Errorf("%s: etcd.endpoints names an etcd: a member keeps the records itself", c.file)
	}
	if err := etcd.CheckFresh(conf.Path(conf.StateDir)); err != nil {
		return err
	}
	inv, err := readInvitation(c.invitation)
	if err != nil {
		return err
	}
	section := map[string]string{"name": inv.Name, "peer": inv.Peer, "client": inv.Client}
	changed, err := withSection(c.file, "cluster", section)
	if err != nil {
		return err
	}
	dir := filepath.Dir(conf.Path(conf.Cluster.CA))
	made, err := writeMember(conf, inv.files(conf))
	if err != nil {
		return err
	}
	undo := func(err error) error { return errors.Join(err, removeAll(made)) }
	r := etcd.Remote{Endpoints: inv.Clients}
	if r.TLS, err = config.LoadClientTLS("cluster", conf.Path(conf.Cluster.CA), conf.Path(conf.Cluster.Cert), conf.Path(conf.Cluster.Key), c.now); err != nil {
		return undo(err)
	}
	a, err := etcd.Administer(ctx, r, slog.New(slog.DiscardHandler))
	if err != nil {
		return undo(command.Hint(err, "this machine must reach the client URL of a member"))
	}
	defer func() { err = errors.Join(err, a.Close()) }()
	begin, err := a.Add(ctx, inv.Name, inv.Peer)
	if err != nil {
		return undo(err)
	}
	data, err := encodeJoin(begin, inv.Clients)
	if err == nil {
		err = writeWhole(filepath.Join(dir, "join.json"), data, 0o600)
	}
	if err == nil {
		err = writeWhole(c.file, changed, 0o640)
	}
	if err != nil {
		return command.Hint(undo(err), "call it again: the cluster has room for this machine")
	}
	fmt.Fprintf(c.stdout, `Joined as %[1]s: the cluster has room for this machine. Start its service; it votes once it has
all records (portcullisd cluster list). Remove %[2]s, which holds its key.
`, inv.Name, c.invitation)
	return nil
}

func absent(name string) error {
	if _, err := os.Lstat(name); !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("%s exists: name a file that does not", name)
	}
	return nil
}
