package api

import (
	"context"
	"net/http"
	"reflect"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humachi"

	"portcullis/api/problem"
	"portcullis/api/reason"
	"portcullis/api/rules"
	v1 "portcullis/api/v1"
)

// explains reports whether a request for the operation may say why it is sent: by an operator's order.
func (op *operation) explains() bool {
	return op.method != http.MethodGet && op.access.asksCredential()
}

// reasonParameter documents the header that says why a request is sent.
func reasonParameter() *huma.Param {
	most, least := v1.MaxReasonHeader, 1
	return &huma.Param{
		Name: v1.ReasonHeader, In: "header",
		Description: "why the request is sent, for the audit log: at most " + strconv.Itoa(v1.MaxReason) + " printable characters, in one line, in percent-encoded UTF-8",
		Schema:      &huma.Schema{Type: "string", MinLength: &least, MaxLength: &most, Pattern: "^[ -~]+$"},
	}
}

// says is the middleware of one operation that reads why a request is sent. Where the site demands a reason, it refuses a request without
// one, unless the body may have it.
func says(s *Server, op *operation) func(huma.Context, func(huma.Context)) {
	return func(ctx huma.Context, next func(huma.Context)) {
		r, w := humachi.Unwrap(ctx)
		if r.Method == http.MethodGet || r.Method == http.MethodHead {
			next(ctx)
			return
		}
		text, refused := reasonOf(r)
		switch {
		case refused == nil && text != "" && !op.explains():
			refused = problem.New(http.StatusBadRequest, v1.CodeCondition, "this operation does not record "+v1.ReasonHeader+", so nothing was done",
				"leave "+v1.ReasonHeader+" out")
		case refused == nil && text == "" && op.reason == nil && demandsReason(s, op.id):
			refused = noReason()
		}
		switch {
		case refused != nil:
			unread(w, r, refused)
		case text != "":
			next(huma.WithContext(ctx, reason.With(ctx.Context(), text)))
		default:
			next(ctx)
		}
	}
}

// reasonOf returns the reason in the header of a request, "" without one.
func reasonOf(r *http.Request) (string, *problem.Problem) {
	values := r.Header.Values(v1.ReasonHeader)
	if len(values) == 0 {
		return "", nil
	}
	if len(values) > 1 {
		return "", badReason("it is there " + strconv.Itoa(len(values)) + " times")
	}
	text, err := v1.DecodeReason(values[0])
	if err != nil {
		return "", badReason(err.Error())
	}
	return text, nil
}

func badReason(why string) *problem.Problem {
	return problem.New(http.StatusBadRequest, v1.CodeBadRequest, "the header "+v1.ReasonHeader+" is no reason: "+why+"; nothing was done",
		"send one line of 1 to "+strconv.Itoa(v1.MaxReason)+" printable characters, in percent-encoded UTF-8: "+v1.ReasonHeader+": ticket 88, T%C3%BCr")
}

func demandsReason(s *Server, id string) bool { return rules.DemandsReason(s.wantsReason, id) }

func noReason() *problem.Problem {
	return problem.New(http.StatusUnprocessableEntity, v1.CodeNoReason,
		"this service demands a reason of such a request (api.require_reason), and there is none; nothing was done",
		"say why: the header "+v1.ReasonHeader+", or --reason TEXT of portcullis")
}

// reasonField is the field Reason of the body of an operation.
type reasonField struct {
	body, field []int
	most        int // characters; 0: no bound
}

// reasonFieldOf returns the field of the body of operations with the input I that says why; nil: they have none.
func reasonFieldOf[I any]() *reasonField {
	t := reflect.TypeFor[I]()
	if t.Kind() != reflect.Struct {
		return nil
	}
	body, ok := t.FieldByName("Body")
	if !ok {
		return nil
	}
	shape := body.Type
	if shape.Kind() == reflect.Pointer { // it may be left out
		shape = shape.Elem()
	}
	if shape.Kind() != reflect.Struct {
		return nil
	}
	f, ok := shape.FieldByName("Reason")
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	if !ok || f.Type.Kind() != reflect.String || name != "reason" {
		return nil
	}
	most, _ := strconv.Atoi(f.Tag.Get("maxLength"))
	return &reasonField{body: body.Index, field: f.Index, most: most}
}

// explain has the header and the body of a request say the same: what one of them leaves out, it takes from the other. The context has
// the reason for the audit log. in points to the input.
func explain(ctx context.Context, s *Server, op *operation, in any) (context.Context, error) {
	if op.reason == nil {
		return ctx, nil
	}
	body, inHeader := reflect.ValueOf(in).Elem().FieldByIndex(op.reason.body), reason.Of(ctx)
	if body.Kind() == reflect.Pointer {
		if body.IsNil() {
			body.Set(reflect.New(body.Type().Elem()))
		}
		body = body.Elem()
	}
	field := body.FieldByIndex(op.reason.field)
	inBody := strings.TrimSpace(field.String())
	switch {
	case inBody == "" && inHeader == "":
		if demandsReason(s, op.id) {
			return ctx, noReason()
		}
		return ctx, nil
	case inBody == "":
		if n := utf8.RuneCountInString(inHeader); op.reason.most > 0 && n > op.reason.most {
			return ctx, badReason("it has " + strconv.Itoa(n) + " characters: want at most " + strconv.Itoa(op.reason.most) + " for this operation")
		}
		field.SetString(inHeader)
		return ctx, nil
	case inHeader != "" && inHeader != inBody:
		return ctx, problem.New(http.StatusBadRequest, v1.CodeBadRequest, "the header "+v1.ReasonHeader+" and the body have two different reasons; nothing was done",
			"leave the header out: this operation takes its reason from the body")
	}
	if err := v1.ReasonText(inBody); err != nil {
		return ctx, problem.New(http.StatusUnprocessableEntity, v1.CodeInvalid, "body.reason is refused: "+err.Error()+"; nothing was done",
			"write one line of characters that can be printed")
	}
	field.SetString(inBody) // a line break around it would be in the records of the object
	return reason.With(ctx, inBody), nil
}
