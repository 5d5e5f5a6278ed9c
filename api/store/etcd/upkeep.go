package etcd

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"portcullis/api/store"
)

const (
	// tidyEvery is the shortest time between two compactions because of size.
	tidyEvery = 10 * time.Second
	// tidyTime bounds one, with the defragmentation that follows.
	tidyTime = time.Minute
)

// upkeep keeps one member within its disk and its quota.
type upkeep struct {
	s     *supervised
	b     *backend
	heard time.Time // when the member said anything last
	tidy  time.Time // when it was compacted last because of size
}

// turn looks at disk and member once.
func (u *upkeep) turn(ctx context.Context) {
	if u.s.look(u.b) {
		u.s.o.Log.Warn("the disk of the state directory is nearly full; its reserve is given back")
	}
	probe, cancel := context.WithTimeout(ctx, probeTime)
	defer cancel()
	status, err := serve(probe, u.b, func(ctx context.Context) (*clientv3.StatusResponse, error) {
		return u.b.client.Status(ctx, u.b.client.Endpoints()[0])
	})
	if err != nil {
		u.silent(ctx, err)
		return
	}
	u.heard = time.Now()
	_, err = u.b.Read(probe, "portcullis", false, 0)
	if ctx.Err() != nil || u.b.Err() != nil {
		return
	}
	u.s.set(func(h *Health) {
		h.Size, h.InUse, h.Quota = status.DbSize, status.DbSizeInUse, status.DbSizeQuota
		h.Away = nil
		if err != nil {
			h.Away = fmt.Errorf("%w: it does not answer within %v%s: %v", store.ErrAway, probeTime, leaderless(status), err)
		}
	}, u.b)
	if err == nil {
		u.shrink(ctx, status)
	}
}

// leaderless says that a member knows no leader, where that is the cause. A slow disk is another one.
func leaderless(status *clientv3.StatusResponse) string {
	if status.Leader == 0 {
		return ", and its member has no connection to a leader of a majority"
	}
	return ""
}

// silent notes that the member does not answer, and ends one that has not for long.
func (u *upkeep) silent(ctx context.Context, err error) {
	if ctx.Err() != nil || u.b.Err() != nil {
		return
	}
	u.s.set(func(h *Health) {
		h.Away = fmt.Errorf("%w: its member does not answer within %v, as when the disk hangs: %v", store.ErrAway, probeTime, err)
	}, u.b)
	c, ours := u.b.member.(*child)
	if !ours || time.Since(u.heard) < hungTime {
		return
	}
	u.heard = time.Now()
	u.s.o.Log.Error("the store's member said nothing for long and is started again", "after", hungTime)
	if err := c.kill(); err != nil {
		u.s.o.Log.Error("the store's member was not ended", "error", err)
	}
}

// shrink compacts and defragments a database that comes near its quota, and clears the
// alarm of one that reached it.
func (u *upkeep) shrink(ctx context.Context, status *clientv3.StatusResponse) {
	h := u.s.Health()
	alarmed := false
	for _, e := range status.Errors {
		alarmed = alarmed || e != ""
	}
	if !alarmed && !h.above(status.DbSize, warnShare) || time.Since(u.tidy) < tidyEvery {
		return
	}
	u.tidy = time.Now()
	ctx, cancel := context.WithTimeout(ctx, tidyTime)
	defer cancel()
	after, err := u.compact(ctx)
	if err == nil && alarmed {
		err = u.disarm(ctx, after)
	}
	log := u.s.o.Log.With("size_mib", status.DbSize>>20, "quota_mib", h.Quota>>20)
	if err != nil {
		log.Error("the store was not made smaller", "error", err)
		return
	}
	log.Warn("the store came near its quota and was compacted", "now_mib", after>>20, "alarm_cleared", alarmed)
}

// compact drops old revisions, frees their space, and returns the size then.
func (u *upkeep) compact(ctx context.Context) (int64, error) {
	size, err := serve(ctx, u.b, func(ctx context.Context) (int64, error) {
		c, endpoint := u.b.client, u.b.client.Endpoints()[0]
		now, err := c.Get(ctx, "portcullis")
		if err != nil {
			return 0, err
		}
		// Only the newest revision stays. Watches that lag behind start again.
		if _, err := c.Compact(ctx, now.Header.Revision, clientv3.WithCompactPhysical()); err != nil && !errors.Is(explain(err), store.ErrCompacted) {
			return 0, err
		}
		if _, err := c.Defragment(ctx, endpoint); err != nil {
			return 0, err
		}
		status, err := c.Status(ctx, endpoint)
		if err != nil {
			return 0, err
		}
		return status.DbSize, nil
	})
	return size, explain(err)
}

// disarm clears the alarm of a database that is smaller again.
func (u *upkeep) disarm(ctx context.Context, size int64) error {
	h := u.s.Health()
	if h.above(size, clearShare) {
		return fmt.Errorf("%w: %d of %d MiB are in use after compaction: raise store_quota and start the service again",
			store.ErrFull, size>>20, h.Quota>>20)
	}
	_, err := serve(ctx, u.b, func(ctx context.Context) (*clientv3.AlarmResponse, error) {
		list, err := u.b.client.AlarmList(ctx)
		if err != nil {
			return nil, err
		}
		for _, a := range list.Alarms {
			if a.Alarm != etcdserverpb.AlarmType_NOSPACE {
				continue
			}
			if _, err := u.b.client.AlarmDisarm(ctx, &clientv3.AlarmMember{MemberID: a.MemberID, Alarm: a.Alarm}); err != nil {
				return nil, err
			}
		}
		return list, nil
	})
	return explain(err)
}

// look finds out how much room the disk has, and frees the reserve or takes it again. It reports whether it freed it.
func (s *supervised) look(member *backend) (given bool) {
	free, err := freeSpace(s.o.Dir)
	if err != nil {
		s.set(func(h *Health) { h.Free = -1 }, member)
		return false
	}
	held := s.disk.held()
	switch {
	case held && free < direSpace:
		given = s.disk.release() == nil
		held = !given
	case !held && free >= reserveSize+amplySpace:
		held = s.disk.take() == nil
	}
	if now, err := freeSpace(s.o.Dir); err == nil {
		free = now
	}
	s.set(func(h *Health) { h.Free, h.Reserve = int64(free), held }, member)
	return given
}
