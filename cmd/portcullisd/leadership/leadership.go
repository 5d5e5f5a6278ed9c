// Package leadership answers which of several instances manages the fabric, announces this one, and has another one lead where
// this one cannot manage the fabric.
package leadership

import (
	"context"
	"errors"
	"net/url"
	"time"

	"portcullis/api"
	"portcullis/api/audit"
	"portcullis/api/instances"
	"portcullis/api/leader"
	"portcullis/api/refusal"
	"portcullis/api/store"
	v1 "portcullis/api/v1"
)

// Service says which of several instances manages the fabric. It implements
// api.Leadership.
type Service struct {
	Store     *store.Store
	Candidate *leader.Candidate // nil without the sm role
}

// Leadership implements api.Leadership.
func (l *Service) Leadership(ctx context.Context) (v1.Leadership, error) {
	now, err := leader.Current(ctx, l.Store, Role)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return v1.Leadership{}, err
	}
	out := v1.Leadership{Leader: now.Instance, Epoch: now.Epoch, Since: now.Since}
	all, err := instances.List(ctx, l.Store, time.Now())
	for _, i := range all {
		row := v1.Instance{Name: i.Name, API: i.API, Manages: i.Manages, Port: i.Port, Seen: i.Seen}
		if !i.Place.IsZero() {
			row.Place = i.Place.String()
		}
		out.Instances = append(out.Instances, row)
	}
	return out, err
}

// StepDown implements api.Leadership.
func (l *Service) StepDown(ctx context.Context, actor, reason string) error {
	if l.Candidate == nil {
		return noLeader("this instance has no role sm, and the leader has no API")
	}
	_, err := l.Store.Update(ctx, func(tx *store.Tx) error {
		return audit.Append(ctx, tx, audit.Entry{Time: time.Now(), Actor: actor, Action: "sm.step-down", Object: "sm", Detail: reason})
	})
	if err != nil {
		return err
	}
	if err := l.Candidate.StepDown(ctx, 0); err != nil {
		return noLeader(err.Error())
	}
	return nil
}

// Leader implements api.Leadership.
func (l *Service) Leader(ctx context.Context) (*api.Peer, error) {
	if l.Candidate != nil {
		if now, _ := l.Candidate.State(); now.Leads {
			return nil, nil
		}
	}
	now, err := leader.Current(ctx, l.Store, Role)
	if errors.Is(err, store.ErrNotFound) {
		return nil, noLeader("no instance leads as Subnet Manager at this moment")
	}
	if err != nil {
		return nil, err
	}
	all, err := instances.List(ctx, l.Store, time.Now())
	if err != nil {
		return nil, err
	}
	peer := &api.Peer{Name: now.Instance}
	for _, i := range all {
		if i.Name == now.Instance && i.API != "" {
			if peer.URL, err = url.Parse(i.API); err != nil {
				return nil, err
			}
			peer.Pin = i.Pin
		}
	}
	return peer, nil
}

func noLeader(detail string) error {
	return &refusal.Error{Code: v1.CodeNoLeader, Status: refusal.Unavailable, Detail: detail, Hint: "ask again; portcullis sm status shows who leads"}
}

// Role is the role in which one of several instances leads: it manages the fabric.
const Role = "sm"
