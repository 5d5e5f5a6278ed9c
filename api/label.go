package api

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"portcullis/api/label"
	v1 "portcullis/api/v1"
)

// LabelKeeper keeps the labels of the objects of one kind. Packages tenancy and hostlabel implement it. Errors and actors are as
// those of [Backend].
type LabelKeeper interface {
	Labels(ctx context.Context, name string) (*v1.Labels, error)
	// PatchLabels sets and removes labels, all or none.
	PatchLabels(ctx context.Context, actor, name string, p label.Patch) (*v1.Labels, error)
}

// Labels keeps the labels of the objects of all kinds that have some.
type Labels struct{ Hosts, Clusters, Tenants LabelKeeper }

// labelPatch is a label.Patch on its way through huma, whose schema of a pointer in a map does not take null.
type labelPatch label.Patch

// Schema implements huma.SchemaProvider.
func (labelPatch) Schema(huma.Registry) *huma.Schema {
	most := label.MostPatch
	s := &huma.Schema{
		Type: huma.TypeObject, MaxProperties: &most, AdditionalProperties: &huma.Schema{Type: huma.TypeString, Nullable: true},
		Description: "a value sets the label of its key, null removes it",
	}
	s.PrecomputeMessages()
	return s
}

// labelBody is the body of a request that changes labels.
type labelBody struct {
	Labels labelPatch `json:"labels"`
}

type hostLabelsInput struct {
	MatchInput
	ID   string    `path:"id" maxLength:"128" doc:"host id as in inventory"`
	Body labelBody `contentType:"application/merge-patch+json"`
}

type labelsInput struct {
	MatchInput
	Name string    `path:"name" maxLength:"127" doc:"name of the tenant or cluster"`
	Body labelBody `contentType:"application/merge-patch+json"`
}

// taggedLabels answers labels with their version.
func taggedLabels(l *v1.Labels, err error) (*taggedOutput[v1.Labels], error) {
	if err != nil {
		return nil, err
	}
	return &taggedOutput[v1.Labels]{quoted(l.Version), l}, nil
}

func labelRoutes(s *Server, a huma.API) {
	of := s.backend.Labels
	labelRoutesOf(s, a, "host", "hosts", "{id}", of.Hosts, func(in *hostInput) string { return in.ID },
		func(in *hostLabelsInput) (string, labelPatch) { return in.ID, in.Body.Labels })
	patched := func(in *labelsInput) (string, labelPatch) { return in.Name, in.Body.Labels }
	labelRoutesOf(s, a, "cluster", "tenancy", "{name}", of.Clusters, func(in *nameInput) string { return in.Name }, patched)
	labelRoutesOf(s, a, "tenant", "tenancy", "{name}", of.Tenants, func(in *nameInput) string { return in.Name }, patched)
}

// labelRoutesOf registers the routes of the labels of one kind of object. name and patch return what a request names.
func labelRoutesOf[R, W any](s *Server, a huma.API, kind, tag, object string, k LabelKeeper, name func(*R) string, patch func(*W) (string, labelPatch)) {
	path := "/v1/" + kind + "s/" + object + "/labels"
	register(s, a, operation{
		id: "get-" + kind + "-labels", method: http.MethodGet, path: path, tag: tag, summary: "Show the labels of a " + kind, access: accessView,
	}, func(ctx context.Context, in *R) (*taggedOutput[v1.Labels], error) {
		return taggedLabels(k.Labels(ctx, name(in)))
	})
	register(s, a, operation{
		id: "label-" + kind, method: http.MethodPatch, path: path, tag: tag, access: accessTenancy,
		summary: "Set and remove labels of a " + kind + ", by a JSON merge patch (RFC 7396); labels grant nothing",
	}, func(ctx context.Context, in *W) (*taggedOutput[v1.Labels], error) {
		id, p := patch(in)
		return taggedLabels(k.PatchLabels(ctx, actor(ctx), id, label.Patch(p)))
	})
}
