package ufm

import (
	"context"
	"encoding/base64"
	"net/http"
	"strings"
)

// Prefixes are the paths that the surface is served below. What a caller may do depends on the credential alone.
var Prefixes = []string{"/ufmRest", "/ufmRestV2", "/ufmRestV3"}

// maxHeader bounds an Authorization header that is looked at.
const maxHeader = 2048

// Owns reports whether path is one of the surface.
func Owns(path string) bool {
	rest, ok := strings.CutPrefix(path, "/ufmRest")
	if !ok {
		return false
	}
	version, _, _ := strings.Cut(rest, "/")
	return version == "" || version == "V2" || version == "V3"
}

type userKey struct{}

// Bearer is the middleware that turns the credentials of UFM's clients into ours, on paths of the surface: a token after
// "Basic", and a user name with a token as password. It comes before what counts and limits requests by their tokens, and
// decides nothing.
func Bearer(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !Owns(r.URL.Path) {
			next.ServeHTTP(w, r)
			return
		}
		user, token := parse(r.Header.Get("Authorization"))
		header := r.Header.Clone()
		header.Del("Authorization")
		if token != "" {
			header.Set("Authorization", "Bearer "+token)
		}
		r = r.WithContext(context.WithValue(r.Context(), userKey{}, user))
		r.Header = header
		next.ServeHTTP(w, r)
	})
}

// parse returns the token of an Authorization header, and the user name that came with it. A token after "Basic" differs from
// user name and password: it is not base64 of something with a colon.
func parse(header string) (user, token string) {
	if len(header) > maxHeader {
		return "", ""
	}
	scheme, value, _ := strings.Cut(header, " ")
	value = strings.TrimSpace(value)
	switch {
	case strings.EqualFold(scheme, "Bearer"):
		return "", value
	case !strings.EqualFold(scheme, "Basic"):
		return "", ""
	}
	pair, err := base64.StdEncoding.DecodeString(value)
	if err != nil {
		return "", value
	}
	user, password, ok := strings.Cut(string(pair), ":")
	switch {
	case !ok:
		return "", value
	case user == "" || strings.ContainsAny(password, " \r\n\x00"):
		return "", ""
	default:
		return user, password
	}
}

// userOf returns the user name that came with the token, "": none.
func userOf(ctx context.Context) string {
	user, _ := ctx.Value(userKey{}).(string)
	return user
}
