package inquiring

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"portcullis/api/audit"
	"portcullis/api/refusal"
	"portcullis/api/store"
	v1 "portcullis/api/v1"
	"portcullis/cmd/portcullisd/placekeys"
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/inquiry"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sm"
	"portcullis/fabricsm/transport"
	"portcullis/fabricsm/vault"
)

const (
	// maxSessions bounds the inquiries at a time, and maxOwn those of one person or program.
	maxSessions, maxOwn = 16, 4
	// perSecond is how many requests are sent in a second, of all inquiries together.
	perSecond = 2000
	// auditTimeout is how long the end of an inquiry waits for the audit log.
	auditTimeout = 10 * time.Second
)

// Options are what a Service is made of. All but Root are required.
type Options struct {
	Store *store.Store
	Log   *slog.Logger
	Now   func() time.Time
	// Open attaches to the port, beside the Subnet Manager.
	Open func(ctx context.Context) (transport.Port, error)
	// View returns the newest view of the Subnet Manager of this process.
	View func() (*sm.View, error)
	// Sealed returns all facts that are stored, in which keys are sealed, and Root what opens them; nil: devices have no keys.
	Sealed func() ([]sm.Fact, error)
	Root   func() (vault.Root, error)
	// Timeout is how long a device may take to answer.
	Timeout time.Duration
}

// Service implements api.Inquirer.
type Service struct {
	o    Options
	pace *rate.Limiter

	mu   sync.Mutex
	open map[string]*session
}

// New returns a Service without inquiries.
func New(o Options) *Service {
	return &Service{o: o, pace: rate.NewLimiter(perSecond, 2*v1.MaxInquiryMADs), open: map[string]*session{}}
}

// request is a request of a tool.
type request struct {
	lid ib.LID
	mad mad.MAD
}

// Begin implements api.Inquirer. What is asked for is in the audit log before anything is sent.
func (s *Service) Begin(ctx context.Context, actor string, n v1.NewInquiry) (*v1.Inquiry, error) {
	if n.Seconds < 1 || n.Seconds > v1.MaxInquirySeconds {
		return nil, refusal.New(refusal.Invalid, "inquiry_time", "", "an inquiry of %d s: want 1 to %d", n.Seconds, v1.MaxInquirySeconds)
	}
	v, err := s.master()
	if err != nil {
		return nil, err
	}
	in := &session{actor: actor, tool: n.Tool, until: s.o.Now().Add(time.Duration(n.Seconds) * time.Second), sent: map[string]int{}}
	var id [16]byte
	_, _ = rand.Read(id[:]) // it never fails
	in.id = hex.EncodeToString(id[:])
	if err := s.reserve(in); err != nil {
		return nil, err
	}
	if err := s.start(ctx, in, v, &n); err != nil {
		s.forget(in)
		return nil, err
	}
	s.o.Log.Warn("a diagnostic tool reads devices through the service", "actor", actor, "tool", n.Tool, "reason", n.Reason, "until", in.until)
	return &v1.Inquiry{ID: in.id, GUID: in.own, Until: in.until.UTC()}, nil
}

// start attaches to the port, and has the beginning on record.
func (s *Service) start(ctx context.Context, in *session, v *sm.View, n *v1.NewInquiry) error {
	in.mu.Lock()
	defer in.mu.Unlock()
	if err := s.refresh(in); err != nil {
		return err
	}
	port, err := s.o.Open(ctx)
	if err != nil {
		return unreached(err)
	}
	in.own = port.GUID()
	in.ways, in.of = inquiry.NewWays(v.Fabric, in.own), v.Fabric
	if err := s.record(ctx, &audit.Entry{Actor: in.actor, Action: "fabric.inquiry.begin", Detail: fmt.Sprintf("%s, until %s: %s", n.Tool, in.until.UTC().Format(time.RFC3339), n.Reason)}); err != nil {
		return errors.Join(err, port.Close())
	}
	in.wire = newWire(port)
	in.expire = time.AfterFunc(time.Until(in.until), func() { s.expire(in) })
	return nil
}

// master returns the view of the Subnet Manager, which is to be master here.
func (s *Service) master() (*sm.View, error) {
	v, err := s.o.View()
	if err == nil && v.State != ib.SMMaster {
		err = fmt.Errorf("its state is %v", v.State)
	}
	if err != nil {
		return nil, &refusal.Error{
			Code: v1.CodeUnavailable, Status: refusal.Unavailable, Err: err, Detail: fmt.Sprintf("the Subnet Manager of this instance is not master: %v", err),
			Hint: "portcullis sm status shows which instance leads; begin again when it does",
		}
	}
	return v, nil
}

// reserve counts an inquiry.
func (s *Service) reserve(in *session) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	own := 0
	for _, o := range s.open {
		if o.actor == in.actor {
			own++
		}
	}
	if len(s.open) >= maxSessions || own >= maxOwn {
		return refusal.New(refusal.Conflict, "inquiries_many", "end one, or wait until one ends", "%d inquiries are under way, %d of them of this credential: at most %d and %d may be", len(s.open), own, maxSessions, maxOwn)
	}
	s.open[in.id] = in
	return nil
}

func (s *Service) forget(in *session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.open, in.id)
}

// find returns an inquiry of an actor. That of another one does not exist.
func (s *Service) find(actor, id string) (*session, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	in := s.open[id]
	if in == nil || in.actor != actor || !s.o.Now().Before(in.until) {
		return nil, gone()
	}
	return in, nil
}

// gone is the refusal where there is no such inquiry.
func gone() error {
	return refusal.New(refusal.NotFound, "inquiry_unknown", "begin another one", "there is no such inquiry: it ended, or another instance leads by now")
}

// Ask implements api.Inquirer.
func (s *Service) Ask(ctx context.Context, actor, id string, q v1.InquiryMADs) (*v1.InquiryAnswers, error) {
	in, err := s.find(actor, id)
	if err != nil {
		return nil, err
	}
	if n := len(q.MADs); n < 1 || n > v1.MaxInquiryMADs {
		return nil, refusal.New(refusal.Invalid, "inquiry_mads", "", "%d requests: want 1 to %d", n, v1.MaxInquiryMADs)
	}
	requests := make([]request, len(q.MADs))
	for i := range q.MADs {
		if len(q.MADs[i].MAD) != mad.Size {
			return nil, refusal.New(refusal.Invalid, "inquiry_mads", "", "request %d has %d bytes: a MAD has %d", i, len(q.MADs[i].MAD), mad.Size)
		}
		requests[i].lid = q.MADs[i].LID
		copy(requests[i].mad[:], q.MADs[i].MAD)
	}
	v, err := s.master()
	if err != nil {
		return nil, err
	}
	if err := s.pace.WaitN(ctx, len(requests)); err != nil {
		return nil, err
	}
	if err := s.current(in, v); err != nil {
		return nil, err
	}
	seen, refused, err := in.ask(ctx, requests, s.o.Timeout)
	switch {
	case errors.Is(err, errOver):
		return nil, gone()
	case err != nil:
		return nil, unreached(err)
	}
	out := &v1.InquiryAnswers{Answers: make([]v1.InquiryAnswer, len(requests))}
	for i := range seen {
		out.Answers[i].Refused = refused[i]
		if seen[i] != nil {
			out.Answers[i].MAD = seen[i][:]
		}
	}
	return out, nil
}

// current has an inquiry go by the newest fabric and by keys that are not old.
func (s *Service) current(in *session, v *sm.View) error {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.over {
		return gone()
	}
	if in.of != v.Fabric {
		in.ways, in.of = inquiry.NewWays(v.Fabric, in.own), v.Fabric
	}
	return s.refresh(in)
}

// refresh reads the keys again if they are old.
func (s *Service) refresh(in *session) error {
	now := s.o.Now()
	if in.keys != nil && now.Sub(in.opened) < keysFor {
		return nil
	}
	keys, err := placekeys.Open(s.o.Sealed, s.o.Root)
	if err != nil {
		return unreached(err)
	}
	in.keys, in.opened = keys, now
	return nil
}

// End implements api.Inquirer.
func (s *Service) End(ctx context.Context, actor, id string) error {
	in, err := s.find(actor, id)
	if err != nil {
		return err
	}
	return s.finish(ctx, in)
}

// expire ends an inquiry whose time is over.
func (s *Service) expire(in *session) {
	ctx, cancel := context.WithTimeout(context.Background(), auditTimeout)
	defer cancel()
	if err := s.finish(ctx, in); err != nil {
		s.o.Log.Warn("the end of an inquiry was not recorded", "actor", in.actor, "tool", in.tool, "error", err)
	}
}

// finish detaches from the port, and records what was asked. Only the first call does anything.
func (s *Service) finish(ctx context.Context, in *session) error {
	in.mu.Lock()
	if in.over || in.wire == nil { // or it never began
		in.mu.Unlock()
		return nil
	}
	in.over = true
	in.keys, in.ways, in.of = nil, nil, nil
	detail := in.tool + ": " + in.summary()
	in.mu.Unlock()
	in.expire.Stop()
	s.forget(in)
	err := in.wire.close()
	s.o.Log.Info("a diagnostic tool does not read devices through the service any more", "actor", in.actor, "what", detail)
	return errors.Join(err, s.record(ctx, &audit.Entry{Actor: in.actor, Action: "fabric.inquiry.end", Detail: detail}))
}

// Close ends all inquiries.
func (s *Service) Close() {
	s.mu.Lock()
	var all []*session
	for _, in := range s.open {
		all = append(all, in)
	}
	s.mu.Unlock()
	for _, in := range all {
		s.expire(in)
	}
}

func (s *Service) record(ctx context.Context, e *audit.Entry) error {
	e.Time, e.Object = s.o.Now(), "fabric"
	if _, err := s.o.Store.Update(ctx, func(tx *store.Tx) error { return audit.Append(ctx, tx, *e) }); err != nil {
		return &refusal.Error{
			Code: v1.CodeUnavailable, Status: refusal.Unavailable, Err: err,
			Detail: "the audit log cannot be written", Hint: "look at /readyz, then ask again",
		}
	}
	return nil
}

// unreached is the refusal where the fabric is not reached.
func unreached(err error) error {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return &refusal.Error{
		Code: "fabric_unread", Status: refusal.Unavailable, Err: err, Detail: fmt.Sprintf("the fabric was not asked: %v", err),
		Hint: "portcullis sm status shows how the Subnet Manager reaches the fabric; ask again when it does",
	}
}
