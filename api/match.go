package api

import (
	"net/http"
	"reflect"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humachi"

	"portcullis/api/ifmatch"
	"portcullis/api/problem"
	v1 "portcullis/api/v1"
)

// MatchInput is the part of a request that says which version of the object it is about. It is exported because huma looks into no other embedded type.
type MatchInput struct {
	IfMatch string `header:"If-Match" maxLength:"512" doc:"versions of the object that the request is for, as ETag has them; none: any"`
}

// honoursMatch reports whether operations with the input I compare If-Match.
func honoursMatch[I any]() bool {
	t := reflect.TypeFor[I]()
	if t.Kind() != reflect.Struct {
		return false
	}
	f, ok := t.FieldByName("IfMatch")
	return ok && f.Tag.Get("header") == "If-Match"
}

// unsupported names a condition of r that the operation would not keep. A caller that sends one relies on it, so it is
// refused, never ignored. Conditions that RFC 9110 has a client send to a GET for its cache do not count: the answer
// without them is right.
func unsupported(r *http.Request, honours bool) string {
	conditions := []string{"If-Unmodified-Since"}
	if !honours {
		conditions = append(conditions, "If-Match")
	}
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		conditions = append(conditions, "If-None-Match", "If-Modified-Since")
	}
	for _, name := range conditions {
		if len(r.Header.Values(name)) > 0 {
			return name
		}
	}
	return ""
}

func unsupportedProblem(name string) *problem.Problem {
	return problem.New(http.StatusBadRequest, v1.CodeCondition, "this operation does not compare "+name+", so nothing was done",
		"leave "+name+" out; If-Match is for operations that have it in /openapi.yaml")
}

// conditions is the middleware of one operation that reads If-Match where the operation honours it. It refuses conditions
// that the operation does not compare, and a request without If-Match where the operation demands it.
func conditions(honours, demands bool) func(huma.Context, func(huma.Context)) {
	return func(ctx huma.Context, next func(huma.Context)) {
		r, w := humachi.Unwrap(ctx)
		if name := unsupported(r, honours); name != "" {
			problem.Write(w, unsupportedProblem(name))
			return
		}
		header := r.Header.Values("If-Match")
		if len(header) == 0 {
			if demands {
				problem.Write(w, versionMissing(r))
			} else {
				next(ctx)
			}
			return
		}
		versions, any, ok := ifmatch.Parse(strings.Join(header, ","))
		switch {
		case !ok:
			problem.Write(w, problem.New(http.StatusBadRequest, v1.CodeBadRequest, "the header If-Match is no list of entity tags",
				`send the ETag of the object as it is, in quotes: If-Match: "7"`))
		case any:
			next(ctx)
		default:
			next(huma.WithContext(ctx, ifmatch.With(ctx.Context(), versions)))
		}
	}
}

// unconditional is conditions for what is answered outside the document.
func unconditional(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if name := unsupported(r, false); name != "" {
			problem.Write(w, unsupportedProblem(name))
			return
		}
		next.ServeHTTP(w, r)
	})
}
