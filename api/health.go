package api

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	"github.com/go-chi/chi/v5"

	"portcullis/api/problem"
	"portcullis/api/roles"
	v1 "portcullis/api/v1"
)

// readyPart answers for one part of the service, so that a load balancer sends callers where they are served although
// another part is not ready.
func (s *Server) readyPart(w http.ResponseWriter, r *http.Request) {
	s.answerReady(w, r, chi.URLParam(r, "part"))
}

// livez answers as long as the process serves requests at all.
func (s *Server) livez(w http.ResponseWriter, _ *http.Request) {
	writeJSON(w, http.StatusOK, map[string]bool{"live": true})
}

// readyz reports whether the service can do its job. Every caller learns which check fails. The reason, which may name
// files and addresses, goes only to a caller with an operator's credential.
func (s *Server) readyz(w http.ResponseWriter, r *http.Request) {
	s.answerReady(w, r, r.URL.Query().Get("part"))
}

// answerReady answers for a part, "" for all of them.
func (s *Server) answerReady(w http.ResponseWriter, r *http.Request, part string) {
	answer := v1.Readiness{Ready: true, Checks: s.ready(r.Context())}
	if part != "" {
		all := answer.Checks
		answer.Checks = slices.DeleteFunc(slices.Clone(all), func(c v1.Condition) bool { return c.Name != part })
		if len(answer.Checks) == 0 {
			problem.Write(w, problem.New(http.StatusNotFound, v1.CodeNotFound, "this process has no such part", partsHint(all)))
			return
		}
	}
	_, refused := s.authenticate(r, roles.Conditions, accessView)
	for i, c := range answer.Checks {
		answer.Ready = answer.Ready && c.OK
		if refused != nil {
			answer.Checks[i].Detail = ""
		}
	}
	status := http.StatusOK
	if !answer.Ready {
		status = http.StatusServiceUnavailable
	}
	writeJSON(w, status, answer)
}

// partsHint names the parts there are.
func partsHint(all []v1.Condition) string {
	var names []string
	for _, c := range all {
		names = append(names, c.Name)
	}
	return "its parts are: " + strings.Join(names, ", ")
}

// versionz says what is running.
func (s *Server) versionz(w http.ResponseWriter, _ *http.Request) {
	writeJSON(w, http.StatusOK, v1.Version{Version: s.version, API: "v1"})
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	// An error here means that the client is gone; there is no receiver for it.
	_ = json.NewEncoder(w).Encode(v)
}
