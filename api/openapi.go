package api

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"reflect"
	"slices"
	"sync"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humachi"
	"github.com/go-chi/chi/v5"

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

// document is the OpenAPI document. Each form is rendered once, for the first client that asks for it.
type document struct{ json, yaml func() []byte }

func (d *document) serve(contentType string, body func() []byte) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", contentType)
		// An error here means that the client is gone; there is no receiver for it.
		_, _ = w.Write(body())
	}
}

// newAPI returns an empty document whose operations join r.
func newAPI(r chi.Router) huma.API {
	return humachi.New(r, huma.Config{
		OpenAPI: &huma.OpenAPI{
			OpenAPI: "3.1.0",
			Info: &huma.Info{
				Title: "Portcullis", Version: "v1",
				Description: "Attests bare-metal hosts and admits their InfiniBand ports to partitions.",
				Contact:     &huma.Contact{Name: "Portcullis authors"},
				License:     &huma.License{Name: "Apache-2.0", Identifier: "Apache-2.0"},
			},
			Servers: []*huma.Server{{URL: "/", Description: "The instance that served this document."}},
			Components: &huma.Components{
				Schemas:         huma.NewMapRegistry("#/components/schemas/", huma.DefaultSchemaNamer),
				SecuritySchemes: securitySchemes(),
			},
			Tags:           tags(),
			OnAddOperation: []huma.AddOpFunc{documentDemand},
		},
		Formats:                      map[string]huma.Format{"application/json": strictJSON(), "json": strictJSON()},
		DefaultFormat:                "application/json",
		RejectUnknownQueryParameters: true,
		Transformers:                 []huma.Transformer{finishProblem},
	})
}

// localRoutes registers what a local server answers.
func (s *Server) localRoutes(r chi.Router, hosts HostRemover) *document {
	a := newAPI(r)
	if hosts != nil {
		s.removalRoutes(a, hosts)
	}
	s.localSMRoute(a)
	s.seenRoutes(a)
	return render(a.OpenAPI())
}

// routes registers every operation of /v1 with r and returns the document.
func (s *Server) routes(r chi.Router) *document {
	a := newAPI(r)
	s.attestRoutes(a)
	s.inventoryRoutes(a)
	s.layoutRoutes(a)
	s.deriveRoutes(a)
	s.hostRoutes(a)
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
	return render(a.OpenAPI())
}

func render(o *huma.OpenAPI) *document {
	return &document{
		json: rendered(func() ([]byte, error) { return json.MarshalIndent(o, "", "  ") }),
		yaml: rendered(o.YAML),
	}
}

// rendered renders once. It panics if that is impossible, which depends on the program alone.
func rendered(form func() ([]byte, error)) func() []byte {
	return sync.OnceValue(func() []byte {
		body, err := form()
		if err != nil {
			panic("api: OpenAPI document: " + err.Error())
		}
		return body
	})
}

func securitySchemes() map[string]*huma.SecurityScheme {
	return map[string]*huma.SecurityScheme{
		"operator": {Type: "http", Scheme: "bearer", Description: "An operator's token from the tokens file, or a JWT of an identity provider that the service accepts."},
		"machine":  {Type: "mutualTLS", Description: "The certificate of a machine: a SPIFFE ID or a DNS name that an authority of the configuration vouches for. No Authorization header goes with it."},
		"status":   {Type: "http", Scheme: "bearer", Description: "The status token that accepted evidence earned."},
		"host":     {Type: "mutualTLS", Description: "The certificate of the key that a host brought with its seal."},
	}
}

func tags() []*huma.Tag {
	return []*huma.Tag{
		{Name: "attestation", Description: "For hosts. Refusals are uniform; reasons are in the host's status."},
		{Name: "inventory", Description: "What exists and where it stands: sites, racks, switches, hosts, their HCAs, cables and stock."},
		{Name: "reference", Description: "Reference values of measured boots, by class of hosts."},
		{Name: "lock", Description: "Locks of adapters: epochs of their keys, and adapters that leave."},
		{Name: "results", Description: "Attestation results: signed tokens about hosts, for parties who trust the service."},
		{Name: "hosts", Description: "Where each host stands, and why it is not admitted."},
		{Name: "clock", Description: "The time that decisions rest on, which does not go back."},
		{Name: "credential", Description: "The credential of the caller."},
		{Name: "tenancy", Description: "Tenants, their clusters and the P_Keys of these."},
		{Name: "adoption", Description: "Memberships that the fabric had before, kept until their hosts attest."},
		{Name: "topospec", Description: "Revisions of the declared topology, from draft to rollback."},
		{Name: "audit", Description: "The log of all that was changed, refused and decided, chained entry by entry."},
		{Name: "backup", Description: "Backups of the store, encrypted to recipients whose identities are offline."},
		{Name: "event", Description: "What happened to locks and evidence without a request."},
		{Name: "fabric", Description: "What the subnet manager sees and does."},
	}
}

// operation is one route, as short as it can be said.
type operation struct {
	id, method, path string
	tag, summary     string
	access           access
	status           int   // of success; 0: 200, or 204 without a body
	maxBody          int64 // 0: maxBody
	maxValues        int   // of the body; 0: maxValues
	honours          bool  // compares If-Match; register finds out
	// expects refuses a request that nothing waits for, before its body is read; nil: none.
	expects func(*Server, *http.Request) error
	leader  bool // only the leader of several instances can answer it
	long    bool // it may take as long as a whole store takes to be read

	answer     *huma.Schema // of success, where the type of the output does not say it
	answerType string       // media type of answer; "": JSON
}

// growing are the operations that add records which stay. A store that is short of room
// refuses them and takes all others, so that removals are still recorded.
var growing = []string{
	"import-inventory", "open-session", "submit-evidence", "assign-host", "create-tenant", "create-cluster", "use-cluster",
	"label-host", "label-cluster", "label-tenant",
	"learn-reference", "waive-reference", "draft-topospec-revision", "draft-topospec-from-inventory", "start-rma",
}

// register adds an operation whose handler calls the Backend.
func register[I, O any](s *Server, a huma.API, op operation, handler func(context.Context, *I) (*O, error)) {
	if op.maxBody == 0 {
		op.maxBody = maxBody
	}
	op.leader = op.leader || op.tag == "topospec"
	op.honours = honoursMatch[I]()
	toProblem := problemOf
	if op.access == accessHost || op.access == accessStatus {
		toProblem = hostProblemOf
	}
	if op.maxValues != 0 {
		a = manyValues{a, op.maxValues}
	}
	grows, grants := slices.Contains(growing, op.id), slices.Contains(granting, op.id)
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
		Middlewares: huma.Middlewares{s.authorize(op.id, op.access), mediaTypes, s.leads(op), s.answeredOnce(&op), conditions(op.honours, versionRules[op.id] == mustName)},
		Responses: map[string]*huma.Response{"default": {
			Description: "Problem (RFC 9457)",
			Content: map[string]*huma.MediaType{problemType: {
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
		v = problemOfHuma(e)
	}
	if p, ok := v.(*problem); ok {
		if p.Status == http.StatusInternalServerError && noteOf(ctx.Context()).brokenBody() {
			p = brokenBody()
			v = p
			ctx.SetStatus(p.Status)
		}
		p.ID = requestID(ctx.Context())
	}
	return v, nil
}
