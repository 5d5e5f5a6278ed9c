package api

import (
	"net/http"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"portcullis/api/problem"
	"portcullis/api/rules"
	v1 "portcullis/api/v1"
)

// documentDemand says in the document that an operation is refused without If-Match.
func documentDemand(_ *huma.OpenAPI, op *huma.Operation) {
	if rules.VersionOf(op.OperationID) != rules.MustName {
		return
	}
	for _, p := range op.Parameters {
		if p.Name == "If-Match" {
			p.Required, p.Description = true, "versions of the object that the request is for, as ETag has them; *: any"
			p.Schema.Description = p.Description
		}
	}
}

// versionMissing refuses a request that takes something away, and does not say of which version of the object.
func versionMissing(r *http.Request) *problem.Problem {
	return problem.New(http.StatusPreconditionRequired, v1.CodeVersionMissing,
		"the request takes something away, and has no If-Match that says which version of the object it means; nothing was done",
		"GET "+objectOf(r)+` and send its ETag, such as If-Match: "7"; If-Match: * means the object as it is when the request arrives`)
}

// objectOf returns the path of the object that a request changes: /v1, its kind and its name.
func objectOf(r *http.Request) string {
	parts := strings.SplitN(r.URL.EscapedPath(), "/", 5)
	return strings.Join(parts[:min(len(parts), 4)], "/")
}
