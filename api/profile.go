package api

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"portcullis/api/problem"
	"portcullis/api/profile"
	v1 "portcullis/api/v1"
)

// SecurityProfiler compares the installation with security profiles. Errors are as those of FabricOperator.
type SecurityProfiler interface {
	Profile(ctx context.Context, p profile.Profile) (*v1.SecurityProfile, error)
}

type profileInput struct{ v1.ProfileQuery }

func profileRoutes(s *Server, a huma.API) {
	register(s, a, operation{
		id: "get-profile", method: http.MethodGet, path: "/v1/profile", tag: "fabric", access: accessAudit, leader: true,
		summary: "Compare the installation with a security profile: which rules hold, fail or are unknown, with evidence and cure",
	}, func(ctx context.Context, in *profileInput) (*bodyOutput[v1.SecurityProfile], error) {
		p, err := profile.Parse(in.Name)
		if err != nil {
			return nil, problem.New(http.StatusUnprocessableEntity, v1.CodeInvalid, err.Error(), "GET /openapi.yaml lists the profiles")
		}
		if s.profiler == nil {
			return nil, problem.New(http.StatusServiceUnavailable, v1.CodeSMElsewhere, "this process collects no facts about the installation", "ask an instance of portcullisd")
		}
		body, err := s.profiler.Profile(ctx, p)
		return &bodyOutput[v1.SecurityProfile]{body}, err
	})
}
