package api

import (
	"encoding/json"
	"net/http"

	v1 "portcullis/api/v1"
)

// livez answers as long as the process serves requests at all.
func (s *Server) livez(w http.ResponseWriter, _ *http.Request) {
	writeJSON(w, http.StatusOK, map[string]bool{"live": true})
}

// readyz says whether the service can do its job. Which check fails is told to
// everybody; why, which may name files and addresses, only to a caller with an
// operator's credential.
func (s *Server) readyz(w http.ResponseWriter, r *http.Request) {
	answer := v1.Readiness{Ready: true, Checks: s.ready(r.Context())}
	_, refused := s.authenticate(r.Header.Get("Authorization"), accessView)
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

// versionz says what is running.
func (s *Server) versionz(w http.ResponseWriter, _ *http.Request) {
	writeJSON(w, http.StatusOK, v1.Version{Version: s.version, API: "v1"})
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	// An error here means that the client is gone; there is nobody to tell.
	_ = json.NewEncoder(w).Encode(v)
}
