package api

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humachi"

	"portcullis/api/idempotency"
	"portcullis/api/idempotency/replay"
	"portcullis/api/problem"
	"portcullis/api/rules"
	"portcullis/api/store"
	v1 "portcullis/api/v1"
)

const (
	idempotencyKey = "Idempotency-Key"
	// repeated is set on an answer that was given before.
	repeated = "Idempotency-Replayed"
	// keepTimeout bounds how long an answer waits for the store to keep it.
	keepTimeout = 5 * time.Second
)

// FirstAnswers keeps the first answers to requests. Package idempotency implements it.
type FirstAnswers interface {
	Begin(ctx context.Context, r *idempotency.Request) (*idempotency.Answer, error)
	Finish(ctx context.Context, r *idempotency.Request, a idempotency.Answer) error
	Forget(ctx context.Context, r *idempotency.Request) error
}

// repeatable reports whether the answers of an operation are kept: of those that change something by an operator's
// order, and answer in one document.
func (op *operation) repeatable() bool {
	return op.method != http.MethodGet && (op.access == accessTenancy || op.access == accessOperate) && !op.long && op.answerType == ""
}

// keyParameter documents the header of operations whose answers are kept.
func keyParameter() *huma.Param {
	most, least := idempotency.MaxKey, 1
	return &huma.Param{
		Name: idempotencyKey, In: "header",
		Description: "names this request: sent again with the same name within a day, it changes nothing and is answered as before",
		Schema:      &huma.Schema{Type: "string", MinLength: &least, MaxLength: &most, Pattern: "^[!-~]+$"},
	}
}

// answeredOnce is the middleware of one operation that answers a request which was sent before with its first answer.
func (s *Server) answeredOnce(op *operation) func(huma.Context, func(huma.Context)) {
	keeps := s.answers != nil && !s.local && op.repeatable()
	grows := rules.Grows(op.id)
	return func(ctx huma.Context, next func(huma.Context)) {
		r, w := humachi.Unwrap(ctx)
		keys := r.Header.Values(idempotencyKey)
		switch {
		case len(keys) == 0 || r.Method == http.MethodGet || r.Method == http.MethodHead:
			next(ctx)
		case !keeps:
			problem.Write(w, unsupportedProblem(idempotencyKey))
		case len(keys) > 1 || !idempotency.ValidKey(keys[0]):
			problem.Write(w, problem.New(http.StatusBadRequest, v1.CodeBadRequest, "the header "+idempotencyKey+" is no key",
				"send one, of 1 to "+strconv.Itoa(idempotency.MaxKey)+" printable characters of ASCII without a space, such as a UUID"))
		default:
			base := ctx.Context()
			if grows {
				base = store.Growing(base)
			}
			s.answerOnce(base, ctx, op, keys[0], next)
		}
	}
}

func (s *Server) answerOnce(base context.Context, ctx huma.Context, op *operation, key string, next func(huma.Context)) {
	r, w := humachi.Unwrap(ctx)
	refuse := func(err error) {
		p, fault := problem.Of(err)
		noteFault(base, fault)
		problem.Write(w, p)
	}
	body, refused := readBody(r, op.maxBody, readTimeout)
	if refused != nil {
		unread(w, r, refused)
		return
	}
	id := &idempotency.Request{Caller: actor(base), Key: key, Fingerprint: replay.Fingerprint(r, body)}
	begin, cancel := context.WithTimeout(base, handlerTimeout)
	defer cancel()
	first, err := s.answers.Begin(begin, id)
	if err != nil {
		refuse(err)
		return
	}
	if first != nil {
		w.Header().Set(repeated, "true")
		replay.Send(w, first)
		return
	}
	answer := replay.Hold(w)
	again := r.WithContext(ctx.Context())
	again.Body = io.NopCloser(bytes.NewReader(body))
	next(humachi.NewContext(ctx.Operation(), again, answer))

	// The change is made: whether the client still waits plays no part any more.
	keep, done := context.WithTimeout(context.WithoutCancel(base), keepTimeout)
	defer done()
	a := answer.Whole()
	switch {
	case replay.Undone(&a):
		err = s.answers.Forget(keep, id)
	case !replay.Unknown(&a):
		err = s.answers.Finish(keep, id, a)
	}
	if err != nil {
		s.log.WarnContext(base, "the answer to a request could not be kept, so a repetition is refused", "request_id", requestID(base), "error", err)
	}
	replay.Send(w, &a)
}
