package api

import (
	"net/http"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humachi"

	"portcullis/api/problem"
	"portcullis/api/strictjson"
	v1 "portcullis/api/v1"
)

// mediaTypes is a middleware of every operation. It refuses a body that does not say that it is JSON in UTF-8, which is
// what it is read as: two readers could else understand it differently.
func mediaTypes(ctx huma.Context, next func(huma.Context)) {
	r, w := humachi.Unwrap(ctx)
	if r.Body == nil || r.Body == http.NoBody || r.ContentLength == 0 || strictjson.IsJSON(mediaType(r.Method), r.Header.Values("Content-Type")) {
		next(ctx)
		return
	}
	unread(w, r, problem.New(http.StatusUnsupportedMediaType, v1.CodeMediaType,
		"the Content-Type of the body is not "+mediaType(r.Method)+" in UTF-8", "send the body as Content-Type: "+mediaType(r.Method)))
}

// mediaType returns that of the bodies of a method. What PATCH does depends on it (RFC 5789).
func mediaType(method string) string {
	if method == http.MethodPatch {
		return "application/merge-patch+json"
	}
	return "application/json"
}

// closeAfterChunks has the connection end with the answer to an HTTP/1 request whose body came in chunks. Such a request
// may have had a Content-Length, too, which net/http removes. A proxy that goes by that sees the next request at another
// place, and the data that its client wrote there must not count as a request.
func closeAfterChunks(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ProtoMajor == 1 && len(r.TransferEncoding) > 0 {
			w.Header().Set("Connection", "close")
		}
		next.ServeHTTP(w, r)
	})
}
