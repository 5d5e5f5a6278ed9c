package driver

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"portcullis/fabricsm/pause"
	"portcullis/fabricsm/sa"
	"portcullis/fabricsm/transport"
)

// Asker has the subnet administration of a running driver answer questions that come by no port, see [sa.Aside]. The zero value is ready.
// It is for one driver at a time: Options.Asker.
type Asker struct {
	at atomic.Pointer[administration]

	mu   sync.Mutex // one series of questions at a time
	side *sa.Aside
	of   *administration // that side is of
}

// Errors of Asker.
var (
	ErrNoAdministration = errors.New("no subnet administration runs here")
	ErrNotAnswering     = errors.New("subnet administration answers no host now")
)

// askPause is how long a question waits for its next turn where an answer takes several.
const askPause = time.Millisecond

// Ask returns what is answered to questions, each as if it had come from the port with its LID. Requests of hosts are answered in
// between. It fails if no host is answered now, and if ctx ends.
func (q *Asker) Ask(ctx context.Context, questions []transport.Packet) ([]sa.Heard, error) {
	a := q.at.Load()
	if a == nil {
		return nil, ErrNoAdministration
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.of != a {
		side, err := a.aside()
		if err != nil {
			return nil, err
		}
		q.side, q.of = side, a
	}
	heard := make([]sa.Heard, len(questions))
	for i := range questions {
		var err error
		if heard[i], err = a.inquire(ctx, q.side, &questions[i]); err != nil {
			q.of = nil // the question may be under way
			return nil, err
		}
	}
	return heard, nil
}

func (a *administration) aside() (*sa.Aside, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.agent.Aside()
}

// inquire has one question answered.
func (a *administration) inquire(ctx context.Context, aside *sa.Aside, p *transport.Packet) (sa.Heard, error) {
	q, err := a.question(aside, p)
	if err != nil {
		return sa.Heard{}, err
	}
	for {
		done, err := a.step(q)
		if done || err != nil {
			return q.Heard(), err
		}
		select {
		case <-ctx.Done():
			return sa.Heard{}, context.Cause(ctx)
		case <-a.ended:
			return sa.Heard{}, ErrNoAdministration
		default:
		}
		if q.Waits() && !pause.For(ctx, askPause) {
			return sa.Heard{}, context.Cause(ctx)
		}
	}
}

func (a *administration) question(aside *sa.Aside, p *transport.Packet) (*sa.Inquiry, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return aside.Question(p)
}

// step goes on with a question, unless hosts are not answered now.
func (a *administration) step(q *sa.Inquiry) (done bool, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.agent.Serving() || a.barred() {
		return false, ErrNotAnswering
	}
	return q.Step(time.Now())
}
