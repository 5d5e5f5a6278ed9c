package api

import (
	"cmp"
	"context"
	"net/http"
	"reflect"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humachi"
	"github.com/go-chi/chi/v5"

	"portcullis/api/openapi"
	"portcullis/api/problem"
	"portcullis/api/rules"
	"portcullis/api/store"
	v1 "portcullis/api/v1"
)

// Sizes of request bodies in bytes.
const (
	maxBody      = 64 << 10 // everything that is not named below
	maxAdoption  = 1 << 20
	maxPlan      = 8 << 20   // forty thousand hosts, with room
	maxSession   = 128 << 10 // eight certificates of 8 KiB, in base64
	maxEvidence  = 1 << 20
	maxSeal      = 16 << 10
	maxInventory = 32 << 20 // ten thousand hosts of 8 HCAs, with room
)

// newAPI returns an empty document whose operations join r.
func newAPI(r chi.Router) huma.API {
	return humachi.New(r, huma.Config{
		OpenAPI:                      openapi.New(documentDemand),
		Formats:                      map[string]huma.Format{"application/json": strictJSON(), "json": strictJSON()},
		DefaultFormat:                "application/json",
		RejectUnknownQueryParameters: true,
		Transformers:                 []huma.Transformer{finishProblem},
	})
}

// localRoutes registers what a local server answers.
func (s *Server) localRoutes(r chi.Router, hosts HostRemover) *openapi.Document {
	a := newAPI(r)
	if hosts != nil {
		s.removalRoutes(a, hosts)
	}
	s.localSMRoute(a)
	s.seenRoutes(a)
	return openapi.Render(a.OpenAPI())
}

// routes registers every operation of /v1 with r and returns the document.
func (s *Server) routes(r chi.Router) *openapi.Document {
	a := newAPI(r)
	s.attestRoutes(a)
	s.inventoryRoutes(a)
	s.layoutRoutes(a)
	s.deriveRoutes(a)
	s.hostRoutes(a)
	fenceRoute(s, a)
	s.hostAuthorityRoutes(a)
	s.tenancyRoutes(a)
	labelRoutes(s, a)
	planRoute(s, a)
	s.brakeRoutes(a)
	s.clockRoutes(a)
	s.fabricRoutes(a)
	s.leadershipRoutes(a)
	s.topospecRoutes(a)
	s.referenceRoutes(a)
	s.lockRoutes(a)
	s.eventRoutes(a)
	webhookRoutes(s, a)
	s.auditRoutes(a)
	s.backupRoutes(a)
	s.reviewRoutes(a)
	s.resultRoutes(a)
	whoamiRoute(s, a)
	loginRoute(s, a)
	s.seenRoutes(a)
	isolationRoutes(s, a)
	inquiryRoutes(s, a)
	pastRoutes(s, a)
	receiptRoutes(s, a)
	receiptLogRoutes(s, a)
	profileRoutes(s, a)
	adoptionRoutes(s, a)

	// Huma describes its own error shape beside every operation; ours takes
	// its place, so drop what nothing refers to.
	for _, unused := range []string{"ErrorModel", "ErrorDetail"} {
		delete(a.OpenAPI().Components.Schemas.Map(), unused)
	}
	return openapi.Render(a.OpenAPI())
}

// operation is one route, as short as it can be said.
type operation struct {
	id, method, path string
	tag, summary     string
	access           access
	status           int          // of success; 0: 200, or 204 without a body
	maxBody          int64        // 0: maxBody
	maxValues        int          // of the body; 0: maxValues
	honours          bool         // compares If-Match; register finds out
	reason           *reasonField // of the body; register finds it; nil: it has none
	// expects refuses a request that nothing waits for, before its body is read; nil: none.
	expects func(*Server, *http.Request) error
	leader  bool // only the leader of several instances can answer it
	long    bool // it may take as long as a whole store takes to be read

	answer     *huma.Schema // of success, where the type of the output does not say it
	answerType string       // media type of answer; "": JSON
}

// register adds an operation whose handler calls the Backend.
func register[I, O any](s *Server, a huma.API, op operation, handler func(context.Context, *I) (*O, error)) {
	if op.maxBody == 0 {
		op.maxBody = maxBody
	}
	op.leader = op.leader || op.tag == "topospec"
	op.honours, op.reason = honoursMatch[I](), reasonFieldOf[I]()
	if !op.explains() {
		op.reason = nil
	}
	if s.opens == nil {
		s.opens = map[string]access{}
	}
	s.opens[op.id] = op.access
	toProblem := problem.Of
	if op.access == accessHost || op.access == accessStatus {
		toProblem = problem.OfHost
	}
	if op.maxValues != 0 {
		a = manyValues{a, op.maxValues}
	}
	grows, grants := rules.Grows(op.id), rules.Grants(op.id)
	huma.Register(a, s.describe(a, op), func(ctx context.Context, in *I) (*O, error) {
		limit := handlerTimeout
		if op.long {
			limit = longTimeout
			if err := extend(ctx, limit); err != nil {
				return nil, err
			}
		}
		ctx, cancel := context.WithTimeout(ctx, limit)
		defer cancel()
		if grows {
			ctx = store.Growing(ctx)
		}
		var out *O
		var err error
		if grants {
			err = s.believes()
		}
		if err == nil {
			ctx, err = explain(ctx, s, &op, in)
		}
		if err == nil {
			out, err = handler(ctx, in)
		}
		if err != nil {
			p, fault := toProblem(err)
			noteFault(ctx, fault)
			return nil, p
		}
		return out, nil
	})
}

func (s *Server) describe(a huma.API, op operation) huma.Operation {
	o := huma.Operation{
		OperationID: op.id, Method: op.method, Path: op.path, Tags: []string{op.tag}, Summary: op.summary, Description: op.description(s.local),
		DefaultStatus: op.status, MaxBodyBytes: op.maxBody, BodyReadTimeout: readTimeout,
		Middlewares: huma.Middlewares{s.authorize(op.id, op.access), mediaTypes, says(s, &op), s.leads(op), s.answeredOnce(&op), conditions(op.honours, rules.VersionOf(op.id) == rules.MustName)},
		Responses: map[string]*huma.Response{"default": {
			Description: "Problem (RFC 9457)",
			Content: map[string]*huma.MediaType{problem.MediaType: {
				Schema: a.OpenAPI().Components.Schemas.Schema(reflect.TypeFor[v1.Problem](), true, "Problem"),
			}},
		}},
	}
	if op.access == accessHost {
		o.Middlewares = append(o.Middlewares, s.bounded(op))
	}
	if op.repeatable() && !s.local {
		o.Parameters = append(o.Parameters, keyParameter())
	}
	if op.explains() {
		o.Parameters = append(o.Parameters, reasonParameter())
	}
	if op.answer != nil {
		o.Responses["200"] = &huma.Response{
			Description: "OK", Content: map[string]*huma.MediaType{cmp.Or(op.answerType, "application/json"): {Schema: op.answer}},
		}
	}
	if op.access.asksCredential() {
		o.Security = []map[string][]string{{"operator": {}}, {"machine": {}}}
	}
	if op.access == accessStatus {
		o.Security = []map[string][]string{{"status": {}}, {"host": {}}}
	}
	return o
}

// finishProblem is the last step of every answer: huma's own errors become
// ours, and each problem gets the id of its request.
func finishProblem(ctx huma.Context, _ string, v any) (any, error) {
	if e, ok := v.(*huma.ErrorModel); ok {
		v = problem.OfHuma(e)
	}
	if p, ok := v.(*problem.Problem); ok {
		if p.Status == http.StatusInternalServerError && noteOf(ctx.Context()).brokenBody() {
			p = brokenBody()
			v = p
			ctx.SetStatus(p.Status)
		}
		p.ID = requestID(ctx.Context())
	}
	return v, nil
}
