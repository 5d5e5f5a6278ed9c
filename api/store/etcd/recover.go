package etcd

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	bolt "go.etcd.io/bbolt"
	"go.etcd.io/etcd/server/v3/etcdserver/api/membership"
	"go.etcd.io/etcd/server/v3/etcdserver/api/v3client"

	"portcullis/api/store"
)

// recoveringName is the file in the state directory that stands from before a member is made
// the only one until its records were changed accordingly. No member is started meanwhile.
const recoveringName = "recovering"

const (
	// databaseTime bounds the wait for the lock of a member's database.
	databaseTime = 5 * time.Second
	// askTime bounds how long a member may take to accept a connection.
	askTime = 3 * time.Second
)

// MayRecover returns the members that Recover would take out of the cluster, and changes
// nothing. See Recover for what it refuses.
func MayRecover(ctx context.Context, o Options, lost []string) (out []Member, err error) {
	lock, err := lockDir(o.Dir)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, lock.release()) }()
	return recoverable(ctx, o, lost)
}

// Recover makes the member in a state directory, whose cluster lost its quorum permanently, the only member of that
// cluster, and returns its records and the members that were taken out. Members that were taken out are refused by this
// one, and end when they reach it. With an error nothing was changed, or the state directory is not used until Recover was
// called again. done must be called when the records were changed as the loss demands.
//
// It refuses a state directory in use, a member that does not vote, names of lost members other than those of all other
// members, and a member of which anything can still be reached.
func Recover(ctx context.Context, o Options, lost []string) (records *store.Store, out []Member, done func() error, err error) {
	lock, err := lockDir(o.Dir)
	if err != nil {
		return nil, nil, nil, err
	}
	fail := func(err error) (*store.Store, []Member, func() error, error) {
		return nil, nil, nil, errors.Join(err, lock.release())
	}
	if out, err = recoverable(ctx, o, lost); err != nil {
		return fail(err)
	}
	file := filepath.Join(o.Dir, recoveringName)
	if err := os.WriteFile(file, []byte(strings.Join(lost, ",")+"\n"), 0o600); err != nil {
		return fail(err)
	}
	o.alone, o.Cluster = o.Cluster.Name, Cluster{} // no listener before the records were changed
	m, err := runMember(ctx, o)
	if err != nil {
		return fail(err)
	}
	m.lock = lock
	if all := m.etcd.Server.Cluster().Members(); len(all) != 1 || all[0].ID != m.etcd.Server.MemberID() {
		return nil, nil, nil, errors.Join(fmt.Errorf("%s is one of %d members after all others were taken out", o.alone, len(all)), m.stop())
	}
	e := &backend{client: v3client.New(m.etcd.Server), member: m}
	return store.New(e, o.Prefix), out, func() error { return os.Remove(file) }, nil
}

// checkRecovering refuses a state directory whose recovery broke off.
func checkRecovering(o Options) error {
	if o.alone != "" {
		return nil
	}
	name := filepath.Join(o.Dir, recoveringName)
	text, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return fmt.Errorf("state directory %s: the recovery of its cluster broke off: call it again, portcullisd cluster recover --lost %.200s --yes", o.Dir, printable(strings.TrimSpace(string(text))))
}

// recoverable judges whether a member in a locked state directory may become the only one.
func recoverable(ctx context.Context, o Options, lost []string) ([]Member, error) {
	all, err := membersIn(o.Dir)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(all, func(m Member) bool { return m.Name == o.Cluster.Name })
	before, broken := os.ReadFile(filepath.Join(o.Dir, recoveringName))
	if i < 0 {
		return nil, fmt.Errorf("state directory %s: its records name no member %s: this machine has not started as a member yet", o.Dir, o.Cluster.Name)
	}
	if all[i].Learner {
		return nil, fmt.Errorf("%s is a member that does not vote yet, and may lack records: recover one that votes, or restore a backup", o.Cluster.Name)
	}
	others := slices.Delete(slices.Clone(all), i, i+1)
	if broken == nil && len(others) == 0 {
		if was := strings.TrimSpace(string(before)); was != strings.Join(lost, ",") {
			return nil, fmt.Errorf("the recovery that broke off was called with --lost %.200s: call it again so", printable(was))
		}
		return others, nil
	}
	if len(others) == 0 {
		return nil, fmt.Errorf("%s is the only member of its cluster: nothing is to be recovered; start its service", o.Cluster.Name)
	}
	if err := named(others, lost); err != nil {
		return nil, err
	}
	var answering []error
	for _, m := range others {
		answering = append(answering, silent(ctx, &m))
	}
	return others, errors.Join(answering...)
}

// named requires lost to name all other members, each once: only people know that they are gone permanently.
func named(others []Member, lost []string) error {
	var want []string
	for _, m := range others {
		want = append(want, cmp.Or(m.Name, m.Peer))
	}
	slices.Sort(want)
	have := slices.Sorted(slices.Values(lost))
	if !slices.Equal(want, have) {
		return fmt.Errorf("the other members are %s, and %s are named as lost: a cluster is recovered only if all others are lost permanently", strings.Join(want, ", "), cmp.Or(strings.Join(have, ", "), "none"))
	}
	return nil
}

// silent returns an error for a member at whose addresses anything accepts connections.
func silent(ctx context.Context, m *Member) error {
	for _, list := range []string{m.Peer, m.Client} {
		for address := range strings.SplitSeq(list, ",") {
			u, err := url.Parse(address)
			if address == "" || err != nil || u.Host == "" {
				continue // it was never started, or is reached by no other
			}
			asking, cancel := context.WithTimeout(ctx, askTime)
			c, err := (&net.Dialer{}).DialContext(asking, "tcp", u.Host)
			cancel()
			if err != nil {
				continue
			}
			return errors.Join(fmt.Errorf("member %s is not lost: %s accepts connections; start this machine's service and the others', or stop theirs permanently if they are lost",
				cmp.Or(m.Name, m.Peer), address), c.Close())
		}
	}
	return nil
}

// membersIn reads which members a stopped member's records name.
func membersIn(dir string) (out []Member, err error) {
	name := filepath.Join(dir, "etcd", "member", "snap", "db")
	if _, err := os.Stat(name); err != nil {
		return nil, fmt.Errorf("state directory %s holds no records of a member: %w", dir, err)
	}
	db, err := bolt.Open(name, 0o600, &bolt.Options{ReadOnly: true, Timeout: databaseTime})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	err = db.View(func(tx *bolt.Tx) error {
		b := tx.Bucket([]byte("members"))
		if b == nil {
			return errors.New("it names no members")
		}
		return b.ForEach(func(_, value []byte) error {
			var m membership.Member
			if err := json.Unmarshal(value, &m); err != nil {
				return err
			}
			out = append(out, Member{ID: uint64(m.ID), Name: m.Name, Learner: m.IsLearner, Peer: strings.Join(m.PeerURLs, ","), Client: strings.Join(m.ClientURLs, ",")})
			return nil
		})
	})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	slices.SortFunc(out, func(a, b Member) int { return cmp.Or(strings.Compare(a.Name, b.Name), cmp.Compare(a.ID, b.ID)) })
	return out, nil
}
