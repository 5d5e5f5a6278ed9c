package api

import (
	"context"
	"log/slog"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/go-chi/chi/v5"
	"github.com/prometheus/client_golang/prometheus"

	"portcullis/api/credential"
	"portcullis/api/limit"
	"portcullis/api/openapi"
	"portcullis/api/pinned"
	"portcullis/api/preauth"
	"portcullis/api/problem"
	"portcullis/api/tracecontext"
	"portcullis/api/ufm"
	v1 "portcullis/api/v1"
	"portcullis/api/web"
)

// ChannelBinding says whether evidence must come over a TLS connection that
// ends at this service.
type ChannelBinding string

// Channel bindings. There is no "when present": an attacker would strip it.
const (
	ChannelRequired ChannelBinding = "required" // RFC 9266 tls-exporter goes into the quote
	ChannelOff      ChannelBinding = "off"      // a TLS proxy stands in front of the service
)

// Limits are the rates that requests are held to. The zero Limits admits
// nothing; start from DefaultLimits.
type Limits struct {
	// For each source address.
	Connections  limit.Rate // new connections, checked before the TLS handshake
	Requests     limit.Rate // requests that show no known token
	Attestations limit.Rate // requests that open a session or bring evidence
	// Refusals are of requests that show no known token and are refused: one token each, and one more for each 8 KiB of
	// a malformed body. An address that used them up is refused before anything of a request is read, and opens one connection a second. With
	// ChannelOff nothing counts.
	Refusals limit.Rate

	Strangers limit.Rate // all of Requests and Attestations together, from all addresses
	Tokens    limit.Rate // requests of each known token, whatever address they come from
}

// DefaultLimits suit hosts that each have their own address, and a simulator
// where a hundred hosts share one.
func DefaultLimits() Limits {
	return Limits{
		Connections:  limit.Rate{PerSecond: 50, Burst: 200},
		Requests:     limit.Rate{PerSecond: 100, Burst: 400},
		Attestations: limit.Rate{PerSecond: 20, Burst: 100},
		Refusals:     limit.Rate{PerSecond: 3, Burst: 60},
		Strangers:    limit.Rate{PerSecond: 2000, Burst: 8000},
		Tokens:       limit.Rate{PerSecond: 1000, Burst: 4000},
	}
}

// Options are what a Server is made of. All fields but Fabric, Operator, Remover, Isolation, Inquirer, Past, Profiler, Topospec, Derived, Planner,
// Reference, Locks, Events, Webhooks, Audit, Breaks, Backups, Results, Receipts, Hosts, Leadership, Ended, Clock, Answers, UFM, Pages, Verifier, Machines, Logins, RequireReason and Ready are
// required.
type Options struct {
	Backend        Backend
	Tenancy        Tenancy
	Planner        Planner          // nil: this process makes no plans
	Fabric         FabricReader     // nil: the sm role is in another process
	Operator       FabricOperator   // nil with Fabric
	Remover        HostRemover      // nil with Fabric; fences hosts
	Isolation      IsolationProver  // nil with Fabric
	Inquirer       Inquirer         // nil with Fabric
	Past           Historian        // nil with Fabric
	Profiler       SecurityProfiler // nil: no facts are collected
	Topospec       TopospecKeeper   // nil: no revisions are kept
	RMA            Replacer         // nil with Topospec
	Adopter        Adopter          // nil: this process adopts nothing
	Derived        Deriver          // nil with Topospec
	Reference      ReferenceKeeper  // nil: no reference values are kept
	Locks          LockKeeper       // nil: no adapters are locked
	Events         EventLister      // nil: none are kept
	Webhooks       WebhookKeeper    // nil: events are sent to none
	Audit          AuditReader      // nil: the audit log is not read here
	Breaks         AuditVerifier    // nil: it is not verified here
	Backups        BackupKeeper     // nil: no backups are made
	Results        ResultKeeper     // nil: no attestation results are signed
	Receipts       ReceiptIssuer    // nil: no receipts are issued
	Hosts          HostAuthority    // nil: hosts get no certificates
	Leadership     Leadership       // nil: this is the only instance
	Ended          EndedTokens      // nil: tokens that have ended are not recorded
	Clock          Clock            // nil: the time is believed
	Answers        FirstAnswers     // nil: a request that has an Idempotency-Key is refused
	UFM            *ufm.Settings    // nil: the surface of UFM is not served
	Pages          bool             // the pages for browsers are served
	RequireReason  []string         // classes of operations (package rules) that are refused without a reason
	Tokens         *credential.Tokens
	Verifier       TokenVerifier      // nil: no tokens of identity providers are accepted
	Machines       MachineVerifier    // nil: clients authenticate by tokens alone
	Logins         []v1.LoginProvider // at which people sign in; nil: none
	ChannelBinding ChannelBinding
	Limits         Limits
	Version        string
	Log            *slog.Logger
	Registry       *prometheus.Registry                 // the HTTP counters join it; served at /metrics
	Ready          func(context.Context) []v1.Condition // a fresh slice for each call; nil: always ready
}

// Server answers the API. It is an http.Handler; Serve adds the listener's
// side.
type Server struct {
	backend      Backend
	tenancy      Tenancy
	planner      Planner
	fabric       FabricReader
	operator     FabricOperator
	remover      HostRemover
	isolation    IsolationProver
	inquirer     Inquirer
	past         Historian
	profiler     SecurityProfiler
	topospec     TopospecKeeper
	rma          Replacer
	adopter      Adopter
	derived      Deriver
	reference    ReferenceKeeper
	locks        LockKeeper
	events       EventLister
	webhooks     WebhookKeeper
	audit        AuditReader
	breaks       AuditVerifier
	backups      BackupKeeper
	results      ResultKeeper
	receipts     ReceiptIssuer
	hosts        HostAuthority
	leadership   Leadership
	clock        Clock
	answers      FirstAnswers
	peers        pinned.Transports
	channel      ChannelBinding
	version      string
	log          *slog.Logger
	metrics      *metrics
	ready        func(context.Context) []v1.Condition
	requests     *limit.Limiter[netip.Addr]
	attestations *limit.Limiter[netip.Addr]
	refusals     *limit.Limiter[netip.Addr] // of requests without a known token
	everybody    *limit.Limiter[struct{}]   // requests without a known token, from all addresses
	known        *limit.Limiter[string]     // requests by the name of their token
	ended        EndedTokens
	shown        *limit.Limiter[string]     // tokens that have ended, by name
	strangers    *limit.Limiter[netip.Addr] // refusals that the log has
	bodies       preauth.Places[holder]
	preauth      *preauth.Bounds
	connections  limit.Rate
	wantsReason  []string          // classes of operations
	opens        map[string]access // by operation
	local        bool              // any caller that can connect may do all that is there
	handler      http.Handler
	document     *openapi.Document

	tokens      atomic.Pointer[credential.Tokens]
	verifier    TokenVerifier   // nil: none
	machines    MachineVerifier // nil: none
	credentials generation      // of tokens and authorities of client certificates
	logins      v1.Logins
}

// New builds the routes. It panics when two of them clash, which a test finds.
func New(o Options) *Server {
	s := &Server{
		backend: o.Backend, tenancy: o.Tenancy, planner: o.Planner, fabric: o.Fabric, operator: o.Operator, remover: o.Remover, isolation: o.Isolation, inquirer: o.Inquirer, past: o.Past, profiler: o.Profiler, topospec: o.Topospec, rma: o.RMA, adopter: o.Adopter, derived: o.Derived, reference: o.Reference, locks: o.Locks, events: o.Events, webhooks: o.Webhooks, audit: o.Audit, breaks: o.Breaks, backups: o.Backups, results: o.Results, receipts: o.Receipts, hosts: o.Hosts, leadership: o.Leadership, clock: o.Clock, answers: o.Answers, channel: o.ChannelBinding, version: o.Version, log: o.Log,
		metrics: newMetrics(o.Registry), ready: o.Ready, connections: o.Limits.Connections,
		requests: limit.New[netip.Addr](o.Limits.Requests), attestations: limit.New[netip.Addr](o.Limits.Attestations),
		refusals: limit.New[netip.Addr](o.Limits.Refusals), everybody: limit.New[struct{}](o.Limits.Strangers), known: limit.New[string](o.Limits.Tokens),
		ended: o.Ended, shown: limit.New[string](limit.Rate{PerSecond: 1.0 / 60, Burst: 1}),
		strangers: limit.New[netip.Addr](limit.Rate{PerSecond: 1, Burst: 120}),
		preauth:   preauth.New(preauth.HalfOfCPUs()),
	}
	if s.ready == nil {
		s.ready = func(context.Context) []v1.Condition { return nil }
	}
	s.wantsReason = slices.Clone(o.RequireReason)
	s.tokens.Store(o.Tokens)
	s.verifier, s.machines = o.Verifier, o.Machines
	s.logins.Providers = append([]v1.LoginProvider{}, o.Logins...)

	r := chi.NewRouter()
	r.Use(s.observe, closeAfterChunks, tracecontext.Middleware)
	if o.UFM != nil {
		r.Use(ufm.Bearer)
	}
	r.Use(s.limitRequests, s.limitBodies)
	r.NotFound(func(w http.ResponseWriter, r *http.Request) {
		problem.Write(w, problem.New(http.StatusNotFound, v1.CodeNotFound, "no such path", problem.HintOf(http.StatusNotFound)))
	})
	r.MethodNotAllowed(func(w http.ResponseWriter, r *http.Request) {
		problem.Write(w, problem.New(http.StatusMethodNotAllowed, v1.CodeMethodNotAllowed,
			"this path does not know the method "+knownMethod(r.Method), problem.HintOf(http.StatusMethodNotAllowed)))
	})
	plain := r.With(unconditional)
	plain.Get("/livez", s.livez)
	plain.Get("/readyz", s.readyz)
	plain.Get("/readyz/{part}", s.readyPart)
	plain.Get("/version", s.versionz)
	plain.Get("/metrics", s.serveMetrics(o.Registry))
	plain.Get("/metrics/fabric", s.viewers(http.HandlerFunc(s.serveDevices)))
	s.document = s.routes(r)
	plain.Get("/openapi.json", s.document.Serve("application/openapi+json", s.document.JSON))
	plain.Get("/openapi.yaml", s.document.Serve("application/openapi+yaml", s.document.YAML))
	if o.UFM != nil {
		mountUFM(s, r, *o.UFM)
	}
	if o.Pages {
		var issuers []string
		for n := range o.Logins {
			issuers = append(issuers, o.Logins[n].Issuer)
		}
		pages := web.New(r.NotFoundHandler(), issuers)
		for _, path := range []string{"/", strings.TrimSuffix(web.Root, "/"), web.Root + "*"} {
			plain.Get(path, pages.ServeHTTP)
			plain.Head(path, pages.ServeHTTP)
		}
	}
	s.handler = r
	return s
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.handler.ServeHTTP(w, r) }

// SetTokens replaces the known operator tokens, for a reload. Streams of those that are good no more end.
func (s *Server) SetTokens(t *credential.Tokens) {
	s.tokens.Store(t)
	s.credentials.renew()
}

// OpenAPI returns the OpenAPI 3.1 document of the API in YAML.
func (s *Server) OpenAPI() []byte { return s.document.YAML() }
