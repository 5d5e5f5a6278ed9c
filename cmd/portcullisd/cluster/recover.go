package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"portcullis/api/audit"
	"portcullis/api/instances"
	"portcullis/api/leader"
	"portcullis/api/review"
	"portcullis/api/store"
	"portcullis/api/store/etcd"
	"portcullis/cmd/internal/version"
	"portcullis/cmd/portcullisd/command"
	"portcullis/cmd/portcullisd/journal"
	"portcullis/cmd/portcullisd/leadership"
)

// SkippedEpochs is by how much the epoch of leaders rises at a recovery. Terms of which this
// member has no record were fewer.
const SkippedEpochs = 1000

// openLimit bounds the opening of the store.
const openLimit = 2 * time.Minute

// recover makes this member, whose cluster lost its quorum permanently, the only one. Its records are in review then: the
// others may have had later ones.
func (c *clusterCommand) recover(ctx context.Context) (err error) {
	if err := c.member(); err != nil {
		return err
	}
	conf := c.config
	dir := conf.Path(conf.StateDir)
	if err := ownedByUs(dir); err != nil {
		return err
	}
	o := etcd.Options{Dir: dir, Cluster: conf.Member(), Prefix: conf.Etcd.Prefix, Log: journal.New(os.Stderr, conf.Level()), Version: version.Short(), Quota: conf.StoreQuota << 20}
	lost := namesIn(c.lost)
	if !c.yes {
		others, err := etcd.MayRecover(ctx, o, lost)
		if err != nil {
			return notRecovered(err)
		}
		fmt.Fprintf(c.stdout, "Would make %s the only member of its cluster, take out %s permanently, and have the state reviewed. Say --yes to do it.\n", conf.Cluster.Name, describeMembers(others))
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, openLimit)
	defer cancel()
	st, others, done, err := etcd.Recover(ctx, o, lost)
	if err != nil {
		return notRecovered(err)
	}
	epoch, err := c.recovered(ctx, st, lost)
	if err != nil {
		return command.Hint(errors.Join(fmt.Errorf("%s is the only member, and its records do not say so yet: %w", conf.Cluster.Name, err), st.Close()),
			"call it again; no service starts on the state directory before that")
	}
	if err := errors.Join(st.Close(), done()); err != nil {
		return err
	}
	fmt.Fprintf(c.stdout, `%[1]s is the only member of its cluster. Taken out: %[2]s. The next epoch of leaders is %[3]d.
1. Start the service, and compare its state with the fabric: portcullis restore review
2. On the machine with ca.key, for each lost member: portcullisd cluster revoke --name NAME
3. Invite others: portcullisd cluster invite
4. Restart the services without a member (roles: [api]) that use this cluster.
`, conf.Cluster.Name, cmp.Or(describeMembers(others), c.lost), epoch)
	return nil
}

func notRecovered(err error) error {
	if inUse, ok := errors.AsType[*etcd.InUseError](err); ok {
		return command.Hint(inUse, "systemctl stop portcullisd, then call it again; start the service again if you do not")
	}
	return command.Hint(err, "nothing was changed; portcullisd cluster list, on a machine whose service runs, shows which members answer")
}

// recovered brings the records up to what happened, all at once: leaders of the lost members
// are fenced by a higher epoch, and the state is in review, since a member that is left may
// lack what was acknowledged last.
func (c *clusterCommand) recovered(ctx context.Context, st *store.Store, lost []string) (epoch uint64, err error) {
	now := c.now.UTC().Round(0)
	_, err = st.Update(ctx, func(tx *store.Tx) error {
		last, err := leader.Skip(ctx, tx, leadership.Role, SkippedEpochs)
		if err != nil {
			return err
		}
		epoch = last + SkippedEpochs + 1
		mark, err := recoveredMark(ctx, tx)
		if err != nil {
			return err
		}
		mark.Recovered, mark.Clearing = lost, true
		if mark.Since.IsZero() {
			mark.Since = now
		}
		for _, name := range lost {
			instances.Forget(tx, name)
		}
		return errors.Join(review.Marks().Put(tx, review.Key, *mark), audit.Append(ctx, tx, audit.Entry{
			Time: now, Actor: command.OperatorHere(), Action: "cluster.recover", Object: "cluster/" + c.config.Cluster.Name,
			Detail: fmt.Sprintf("the quorum was lost permanently: %s lost; the only member from now on; the epoch of leaders rises from %d to %d; in review from now on", strings.Join(lost, ", "), last, epoch),
		}))
	})
	return epoch, err
}

// recoveredMark returns the mark of the review that goes on, or of a new one.
func recoveredMark(ctx context.Context, r store.Reader) (*review.Mark, error) {
	mark, err := review.Current(ctx, r)
	if err != nil || mark != nil {
		return mark, err
	}
	mark = &review.Mark{}
	if mark.Audit, err = audit.Latest(ctx, r); err != nil || mark.Audit.Seq == 0 {
		return mark, err
	}
	if mark.Origin, err = audit.Origin(ctx, r); err != nil {
		return mark, err
	}
	e, err := audit.Get(ctx, r, mark.Audit.Seq)
	if err == nil {
		mark.Taken = e.Time
	}
	return mark, err
}

// namesIn splits a list with commas.
func namesIn(list string) (out []string) {
	for name := range strings.SplitSeq(list, ",") {
		if name = strings.TrimSpace(name); name != "" && !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	return out
}

func describeMembers(list []etcd.Member) string {
	var out []string
	for _, m := range list {
		out = append(out, fmt.Sprintf("%s (%s)", cmp.Or(m.Name, "not started"), m.Peer))
	}
	return strings.Join(out, ", ")
}

// ownedByUs refuses a state directory of another user, because that user could not write to it any more.
func ownedByUs(dir string) error {
	info, err := os.Stat(dir)
	if err != nil {
		return err
	}
	if is, ok := info.Sys().(*syscall.Stat_t); ok && int(is.Uid) != os.Geteuid() {
		return command.Hint(fmt.Errorf("state directory %s belongs to user %d, and this is user %d", dir, is.Uid, os.Geteuid()), "runuser -u portcullis -- portcullisd cluster recover ...")
	}
	return nil
}
