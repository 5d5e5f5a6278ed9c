package smrole

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"portcullis/api/fabric/records"
	"portcullis/api/leader"
	"portcullis/api/store"
	"portcullis/api/store/memory"
	"portcullis/api/store/storetest"
	v1 "portcullis/api/v1"
	"portcullis/cmd/portcullisd/leadership"
)

// successor is another instance, which leads after the role of a site and has settled the fabric after a time; 0: never.
type successor struct {
	*leader.Candidate
	store *store.Store
	after time.Duration
}

func newSuccessor(st *store.Store, after time.Duration) *successor {
	return &successor{leader.New(leader.Options{Store: st, Role: leadership.Role, Instance: "b", TTL: 2 * time.Second}), st, after}
}

func (s *successor) run(ctx context.Context, t *testing.T) {
	err := s.Run(ctx, func(ctx context.Context, term *leader.Term) error {
		if s.after > 0 {
			<-time.After(s.after)
			_, err := s.store.Update(ctx, func(tx *store.Tx) error {
				return records.SMs().Put(tx, records.Master, v1.SM{State: "master", GUID: 0x77, Settled: true})
			})
			if err != nil {
				t.Error(err)
			}
		}
		<-ctx.Done()
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// The Subnet Manager of a term that was ended on purpose answers until that of the next term has settled the fabric, for a
// bounded time, and not at all where no other instance could lead.
func TestFormerAnswers(t *testing.T) {
	t.Parallel()
	const (
		stepsDown = iota
		stops
		stopsStoreless
		stopsWithoutMajority
	)
	for _, test := range []struct {
		name  string
		how   int
		after time.Duration // until the next one has settled the fabric; 0: it never does
		alone bool
		takes time.Duration // from the end of the term to that of the answers
	}{
		{"step-down", stepsDown, 3 * time.Second, false, 3 * time.Second},
		{"step-down, the next one does not settle the fabric", stepsDown, 0, false, formerFor},
		{"end of the service", stops, 3 * time.Second, false, 3 * time.Second},
		{"end of the service, the next one does not settle the fabric", stops, 0, false, formerAtEnd},
		{"end of the service, no other instance", stops, 0, true, 0},
		{"end of the service, the store does not answer", stopsStoreless, 0, false, formerAlone},
		{"end of the service, the store has no majority", stopsWithoutMajority, 0, false, formerAlone + formerLooks},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var own *leader.Candidate
				backend := &storetest.Stalling{Backend: memory.New(time.Now)}
				s := newSite(t, func(o *Options) {
					o.Store = store.New(backend, "")
					o.Config.Fabric.SA.Enabled = true
					own = leader.New(leader.Options{Store: o.Store, Role: leadership.Role, Instance: "a", TTL: 2 * time.Second, Log: slog.New(slog.DiscardHandler)})
					o.Candidate, o.Name = own, "a"
				})
				ctx, cancel := context.WithCancel(t.Context())
				done := make(chan error, 1)
				go func() { done <- s.Run(ctx) }()
				<-time.After(10 * time.Second)
				others, stop := context.WithCancel(t.Context())
				defer stop()
				if !test.alone {
					go newSuccessor(s.Store, test.after).run(others, t)
				}
				<-time.After(10 * time.Second)
				if got := s.obstacle(); got != "" {
					t.Fatalf("readiness says %q\n%s", got, s.log)
				}
				began := time.Now()
				switch test.how {
				case stepsDown:
					if err := own.StepDown(ctx, time.Hour); err != nil {
						t.Fatal(err)
					}
				case stops:
					cancel()
				case stopsStoreless:
					cancel()
					synctest.Wait()
					if err := s.Store.Close(); err != nil {
						t.Fatal(err)
					}
				case stopsWithoutMajority:
					backend.Stall(true)
					cancel()
				}
				const begins, ends = "answers the queries of hosts until", "no longer answers the queries of hosts"
				for !strings.Contains(s.log.String(), ends) {
					if time.Since(began) > 2*formerFor {
						t.Fatalf("the log says\n%s", s.log)
					}
					<-time.After(10 * time.Millisecond)
				}
				if took := time.Since(began).Round(time.Second / 2); took != test.takes || !strings.Contains(s.log.String(), begins) {
					t.Errorf("it answered for %v, want %v\n%s", took, test.takes, s.log)
				}
				cancel()
				if err := <-done; err != nil {
					t.Errorf("the role ended with %v", err)
				}
			})
		})
	}
}
