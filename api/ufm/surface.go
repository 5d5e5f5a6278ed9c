package ufm

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"

	"github.com/go-chi/chi/v5"
	"github.com/go-chi/chi/v5/middleware"

	"portcullis/api/refusal"
	"portcullis/api/tenancy"
	v1 "portcullis/api/v1"
	"portcullis/fabricsm/ib"
)

// Release is the release of UFM whose surface this is. Clients refuse earlier ones.
const Release = "6.23.1-6"

// Settings are what the surface says of the fabric beside what the services know.
type Settings struct {
	Prefix  uint64 // subnet prefix
	MTU     int    // largest of a link, in bytes
	IPoIB   bool   // partitions of clusters have IPoIB broadcast groups
	Managed bool   // each port has an M_Key of its own
}

// Lifecycle shows hosts, and has them be in clusters or not. Package admission implements it.
type Lifecycle interface {
	Hosts(ctx context.Context, q v1.HostQuery) (*v1.List[v1.Host], error)
	Host(ctx context.Context, id string) (*v1.Host, error)
	Assign(ctx context.Context, actor, host string, a v1.Assignment) (*v1.Host, error)
	Release(ctx context.Context, actor, host string) (*v1.Host, error)
}

// Tenancy keeps tenants and clusters. Package tenancy implements it.
type Tenancy interface {
	Tenants(ctx context.Context, q v1.TenantQuery) (*v1.List[v1.Tenant], error)
	Clusters(ctx context.Context, q v1.ClusterQuery) (*v1.List[v1.Cluster], error)
	CreateCluster(ctx context.Context, actor string, c v1.NewCluster) (*v1.Cluster, error)
	DeleteCluster(ctx context.Context, actor, name string) error
}

// Fabric says what the Subnet Manager last reported. Package admission implements it.
type Fabric interface {
	Fabric(ctx context.Context) (*v1.Fabric, error)
}

// Access is what an endpoint asks of a credential.
type Access uint8

// Accesses.
const (
	Reads     Access = iota + 1 // it shows what the credential may see
	Changes                     // it changes clusters, and which hosts are in them
	TakesAway                   // it changes them, and may take hosts or clusters away
)

// Denial is why a credential does not open an endpoint.
type Denial struct {
	Status       int // of HTTP
	Code, Detail string
}

// Gate judges the credential of a request. The context that it returns has the scope of the credential, and its owner is who
// the audit log names.
type Gate func(r *http.Request, a Access) (ctx context.Context, owner string, denied *Denial)

// Options are what a surface is made of. All are required.
type Options struct {
	Settings  Settings
	Lifecycle Lifecycle
	Tenancy   Tenancy
	Fabric    Fabric
	Gate      Gate
	Charge    func(owner string, orders int) bool    // counts orders as requests of a credential; false: they are too many
	Believes  func() error                           // refuses what would be granted while the clock is not believed
	Fault     func(ctx context.Context, fault error) // notes a fault of the service for the log
	Version   string                                 // of the service
}

// surface answers the requests.
type surface struct{ o Options }

// New returns what is to be mounted at each of Prefixes.
func New(o Options) http.Handler {
	s := &surface{o}
	r := chi.NewRouter()
	r.Use(middleware.StripSlashes)
	r.NotFound(func(w http.ResponseWriter, r *http.Request) {
		s.fail(w, r, refusal.New(refusal.NotFound, v1.CodeNotFound, "docs/operate/ufm.md lists what is served", "no such path"))
	})
	r.MethodNotAllowed(func(w http.ResponseWriter, _ *http.Request) {
		writeError(w, http.StatusMethodNotAllowed, v1.CodeMethodNotAllowed, "this path does not know the method")
	})
	r.Get("/app/ufm_version", s.reads(s.version))
	r.Get("/app/smconf", s.reads(s.smconf))
	r.Get("/resources/ports", s.reads(s.ports))
	r.Get("/resources/ports/{names}", s.reads(s.ports))
	r.Get("/resources/systems", s.reads(s.systems))
	r.Get("/resources/systems/{names}", s.reads(s.systems))
	r.Get("/resources/pkeys", s.reads(s.partitions))
	r.Get("/resources/pkeys/{pkey}", s.reads(s.partition))
	s.changes(r)
	return r
}

// changes adds the paths that change something.
func (s *surface) changes(r chi.Router) {
	r.Post("/resources/pkeys", s.serve(Changes, s.add))
	r.Put("/resources/pkeys", s.serve(TakesAway, s.set))
	r.Post("/resources/pkeys/add", s.serve(Changes, s.addEmpty))
	r.Post("/actions/add_guids_to_pkey", s.serve(Changes, s.add))
	r.Post("/actions/remove_guids_from_pkey", s.serve(TakesAway, s.remove))
	r.Put("/resources/pkeys/qos_conf", s.serve(Changes, s.setQoS))
	r.Post("/resources/pkeys/hosts", s.serve(Changes, s.addHosts))
	r.Delete("/resources/pkeys/{pkey}", s.serve(TakesAway, s.drop))
	r.Delete("/resources/pkeys/{pkey}/guids/{guids}", s.serve(TakesAway, s.removeByPath))
	r.Delete("/resources/pkeys/{pkey}/hosts/{hosts}", s.serve(TakesAway, s.removeHosts))
}

// call is a request whose credential was judged.
type call struct {
	*http.Request
	ctx   context.Context
	owner string
}

// param returns a parameter of the path.
func (c *call) param(name string) (string, error) {
	text, err := url.PathUnescape(chi.URLParam(c.Request, name))
	if err != nil {
		return "", invalid("the path is not escaped as it should be")
	}
	return text, nil
}

// pkey returns the P_Key in the path.
func (c *call) pkey() (ib.PKey, error) {
	text, err := c.param("pkey")
	if err != nil {
		return 0, err
	}
	return parsePKey(text)
}

// flag reads a flag of the query.
func (c *call) flag(name string) bool { return isTrue(c.URL.Query().Get(name)) }

// answer writes the body of the answer to a call, or says why there is none.
type answer func(c *call) (any, error)

func (s *surface) reads(a answer) http.HandlerFunc { return s.serve(Reads, a) }

func (s *surface) serve(access Access, a answer) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		ctx, owner, denied := s.o.Gate(r, access)
		if user := userOf(r.Context()); denied == nil && user != "" && user != owner {
			denied = &Denial{http.StatusUnauthorized, v1.CodeUnauthenticated, "the password is the token of another name than the user's"}
		}
		if denied != nil {
			writeError(w, denied.Status, denied.Code, denied.Detail)
			return
		}
		body, err := a(&call{Request: r, ctx: ctx, owner: owner})
		if err != nil {
			s.fail(w, r, err)
			return
		}
		writeJSON(w, http.StatusOK, body)
	}
}

// fail answers with why there is nothing else. What is not meant for clients goes into the log.
func (s *surface) fail(w http.ResponseWriter, r *http.Request, err error) {
	no, ok := errors.AsType[*refusal.Error](err)
	switch {
	case ok && no.Status != refusal.Internal:
		detail := no.Error()
		if no.Hint != "" {
			detail += "; " + no.Hint
		}
		writeError(w, statusOf(no.Status), no.Code, detail)
	case errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded):
		s.o.Fault(r.Context(), err)
		writeError(w, http.StatusServiceUnavailable, v1.CodeUnavailable, "the request was given up before it was done; try again")
	default:
		s.o.Fault(r.Context(), err)
		writeError(w, http.StatusInternalServerError, v1.CodeInternal, "the service met a fault of its own; its log says more")
	}
}

func statusOf(k refusal.Kind) int {
	switch k {
	case refusal.NotFound:
		return http.StatusNotFound
	case refusal.Conflict, refusal.Changed:
		return http.StatusConflict
	case refusal.Invalid:
		return http.StatusBadRequest
	case refusal.Refused:
		return http.StatusForbidden
	case refusal.Limited:
		return http.StatusTooManyRequests
	case refusal.Unavailable:
		return http.StatusServiceUnavailable
	default:
		return http.StatusInternalServerError
	}
}

// writeError writes an error in the form that clients print. Some look for the words that UFM uses for two of them.
func writeError(w http.ResponseWriter, status int, code, detail string) {
	switch status {
	case http.StatusUnauthorized:
		w.Header().Set("WWW-Authenticate", `Basic realm="portcullis"`)
		detail = "Error 401: " + detail
	case http.StatusServiceUnavailable:
		detail = "503 Service Temporarily Unavailable: " + detail
	}
	writeJSON(w, status, map[string]string{"error": code + ": " + detail})
}

func writeJSON(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	// An error here means that the client is gone; there is no receiver for it.
	_ = json.NewEncoder(w).Encode(body)
}

// sees reports whether the credential has to do with a cluster of this P_Key.
func sees(ctx context.Context, k ib.PKey) bool {
	return tenancy.CheckCluster(ctx, &tenancy.Cluster{PKey: k.Base()}) == nil
}

func (s *surface) version(*call) (any, error) {
	return map[string]string{"ufm_release_version": Release, "product": "portcullis", "product_version": s.o.Version}, nil
}

// smconf says whether keys are set, and never one. Each key is a word that clients take for one that is not the default, or the
// default where there is none.
func (s *surface) smconf(*call) (any, error) {
	type conf struct {
		Prefix string `json:"subnet_prefix"`
		MKey   string `json:"m_key"`
		SMKey  string `json:"sm_key"`
		SAKey  string `json:"sa_key"`
		Each   bool   `json:"m_key_per_port"`
	}
	c := conf{"0x" + showGUID(ib.GUID(s.o.Settings.Prefix)), "0x0000000000000000", "protected", "protected", s.o.Settings.Managed}
	if s.o.Settings.Managed {
		c.MKey = "protected"
	}
	return c, nil
}
