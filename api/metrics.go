package api

import (
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"portcullis/api/problem"
	"portcullis/api/roles"
)

// metrics are the HTTP layer's own counters.
type metrics struct {
	requests *prometheus.CounterVec
	seconds  *prometheus.HistogramVec
	limited  *prometheus.CounterVec
}

// newMetrics registers the counters with reg.
func newMetrics(reg prometheus.Registerer) *metrics {
	m := &metrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "portcullis_http_requests_total", Help: "HTTP requests answered.",
		}, []string{"method", "route", "status"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "portcullis_http_request_seconds", Help: "Time to answer an HTTP request.",
			Buckets: []float64{.001, .003, .01, .03, .1, .3, 1, 3, 10},
		}, []string{"route"}),
		limited: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "portcullis_http_limited_total", Help: "Connections and requests turned away by a limit.",
		}, []string{"limit"}),
	}
	for _, limit := range []string{"connections", "refusals", "tokens", "requests", "strangers", "bodies", "work"} {
		m.limited.WithLabelValues(limit) // from 0 on: a series that begins at 1 does not count as an increase
	}
	reg.MustRegister(m.requests, m.seconds, m.limited)
	return m
}

func (m *metrics) observe(method, route string, status int, took time.Duration) {
	m.requests.WithLabelValues(knownMethod(method), route, strconv.Itoa(status)).Inc()
	m.seconds.WithLabelValues(route).Observe(took.Seconds())
}

func (m *metrics) refused(limit string) { m.limited.WithLabelValues(limit).Inc() }

// knownMethod keeps the label's values bounded: a client may send any word.
func knownMethod(method string) string {
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete:
		return method
	default:
		return "other"
	}
}

// serveMetrics answers GET /metrics to any operator's credential: counters reveal too much about neighbours to a host on
// the fabric.
func (s *Server) serveMetrics(g prometheus.Gatherer) http.HandlerFunc {
	return s.viewers(promhttp.HandlerFor(g, promhttp.HandlerOpts{}))
}

// viewers admits callers that may see everything.
func (s *Server) viewers(h http.Handler) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if !s.local {
			if _, refused := s.admitPeer(r.Context(), accessView); refused != nil {
				problem.Write(w, refused)
				return
			}
			if _, refused := s.authenticate(r, roles.Metrics, accessView); refused != nil {
				s.noteEnded(r)
				problem.Write(w, refused)
				return
			}
		}
		h.ServeHTTP(w, r)
	}
}

// serveDevices answers GET /metrics/fabric: series for every device and port.
func (s *Server) serveDevices(w http.ResponseWriter, r *http.Request) {
	write, err := s.devices()
	if err != nil {
		p, fault := problem.Of(err)
		noteFault(r.Context(), fault)
		problem.Write(w, p)
		return
	}
	w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	if err := write(&paced{ctx: r.Context(), w: w, rc: http.NewResponseController(w)}); err != nil && r.Context().Err() == nil {
		noteFault(r.Context(), err)
		panic(http.ErrAbortHandler) // so that a part is not taken for the whole
	}
}

func (s *Server) devices() (func(io.Writer) error, error) {
	r, err := s.reader()
	if err != nil {
		return nil, err
	}
	return r.Devices()
}
