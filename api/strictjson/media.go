package strictjson

import (
	"mime"
	"strings"
)

// IsJSON reports whether the values of Content-Type are one, and that is want, a form of JSON, in UTF-8.
func IsJSON(want string, values []string) bool {
	if len(values) != 1 {
		return false
	}
	kind, params, err := mime.ParseMediaType(values[0])
	if err != nil || kind != want {
		return false
	}
	charset, named := params["charset"]
	return len(params) == 0 || named && len(params) == 1 && strings.EqualFold(charset, "utf-8")
}
