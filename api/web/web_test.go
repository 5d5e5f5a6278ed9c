package web_test

import (
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"regexp"
	"strings"
	"testing"

	"portcullis/api"
	"portcullis/api/apitest"
	v1 "portcullis/api/v1"
	"portcullis/api/web"
)

// asked sends a request to a service with pages, or without.
func asked(t *testing.T, pages bool) func(method, path string, header ...string) *http.Response {
	t.Helper()
	o, operator, viewer, err := apitest.Options(apitest.NewBackend())
	if err != nil {
		t.Fatal(err)
	}
	o.Pages = pages
	server := api.New(o)
	return func(method, path string, header ...string) *http.Response {
		r := httptest.NewRequest(method, path, http.NoBody)
		for i := 0; i < len(header); i += 2 {
			r.Header.Set(header[i], header[i+1])
		}
		w := httptest.NewRecorder()
		server.ServeHTTP(w, r)
		for _, secret := range []string{operator, viewer} {
			if strings.Contains(w.Body.String(), secret) {
				t.Errorf("%s %s shows a token", method, path)
			}
		}
		return w.Result()
	}
}

func body(t *testing.T, r *http.Response) string {
	t.Helper()
	data, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

var inIndex = regexp.MustCompile(`(?:src|href)="(/ui/[^"]+)"`)

// folder returns the folder of what the first page needs.
func folder(t *testing.T, ask func(string, string, ...string) *http.Response) string {
	t.Helper()
	found := inIndex.FindAllStringSubmatch(body(t, ask("GET", "/ui/")), -1)
	if len(found) != 3 {
		t.Fatalf("the first page names %q, want icon, style and program", found)
	}
	for _, f := range found {
		if path.Dir(f[1]) != path.Dir(found[0][1]) {
			t.Errorf("%s is not beside %s", f[1], found[0][1])
		}
	}
	return path.Dir(found[0][1]) + "/"
}

// Each file is served to a caller without a credential, with headers that let a browser run and show nothing but these files.
func TestHeaders(t *testing.T) {
	t.Parallel()
	ask := asked(t, true)
	in := folder(t, ask)
	if !regexp.MustCompile(`^/ui/[0-9a-f]{16}/$`).MatchString(in) {
		t.Errorf("the files are below %s, want a digest", in)
	}
	media := map[string]string{".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8", ".svg": "image/svg+xml", ".html": "text/html; charset=utf-8"}
	files, err := os.ReadDir("pages")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		at, cache := in+f.Name(), "public, max-age=31536000, immutable"
		if f.Name() == "index.html" {
			at, cache = "/ui/", "no-cache"
		}
		get := ask("GET", at)
		want := map[string]string{
			"Content-Type": media[path.Ext(f.Name())], "Cache-Control": cache, "X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer",
			"Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Resource-Policy": "same-origin", "Set-Cookie": "",
			"Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
				"frame-ancestors 'none'; base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'; trusted-types 'none'",
		}
		for name, value := range want {
			if got := get.Header.Get(name); got != value {
				t.Errorf("%s: %s is %q, want %q", at, name, got, value)
			}
		}
		data, err := os.ReadFile("pages/" + f.Name())
		if err != nil {
			t.Fatal(err)
		}
		if got := body(t, get); get.StatusCode != http.StatusOK || strings.ReplaceAll(got, in, "/ui/assets/") != string(data) {
			t.Errorf("%s: status %d, and not the file as it is", at, get.StatusCode)
		}
		tag := get.Header.Get("ETag")
		if again := ask("GET", at, "If-None-Match", `"x", W/`+tag); again.StatusCode != http.StatusNotModified || body(t, again) != "" {
			t.Errorf("%s: status %d for a browser that has it, want 304 and no body", at, again.StatusCode)
		}
		if again := ask("GET", at, "If-None-Match", `"0"`); again.StatusCode != http.StatusOK {
			t.Errorf("%s: status %d for a browser that has another one, want 200", at, again.StatusCode)
		}
		if head := ask("HEAD", at); head.StatusCode != http.StatusOK || head.Header.Get("ETag") != tag {
			t.Errorf("HEAD %s: status %d", at, head.StatusCode)
		}
	}
}

// What is no page is answered as any other path that does not exist, and all of it is off where it is switched off.
func TestPaths(t *testing.T) {
	t.Parallel()
	ask := asked(t, true)
	in := folder(t, ask)
	for _, at := range []string{"/", "/ui"} {
		if r := ask("GET", at); r.StatusCode != http.StatusFound || r.Header.Get("Location") != "/ui/" {
			t.Errorf("GET %s: status %d to %q, want 302 to /ui/", at, r.StatusCode, r.Header.Get("Location"))
		}
	}
	for _, at := range []string{in, in + "index.html", in + "../web.go", "/ui/assets/app.js", "/ui/index.html", "/ui/0000000000000000/app.js", "/ui/app.js", "/ui//", "/favicon.ico"} {
		r := ask("GET", at)
		if text := body(t, r); r.StatusCode != http.StatusNotFound || !strings.Contains(text, v1.CodeNotFound) {
			t.Errorf("GET %s: status %d, %s; want 404", at, r.StatusCode, text)
		}
	}
	for _, method := range []string{"POST", "PUT", "DELETE"} {
		if r := ask(method, "/ui/"); r.StatusCode != http.StatusMethodNotAllowed {
			t.Errorf("%s /ui/: status %d, want 405", method, r.StatusCode)
		}
	}
	off := asked(t, false)
	for _, at := range []string{"/", "/ui", "/ui/", in + "app.js"} {
		if r := off("GET", at); r.StatusCode != http.StatusNotFound {
			t.Errorf("GET %s without pages: status %d, want 404", at, r.StatusCode)
		}
	}
}

// TestPolicyOfIssuers: pages may ask the origins of identity providers, each once, and what is no https address adds nothing.
func TestPolicyOfIssuers(t *testing.T) {
	t.Parallel()
	tags := map[string]string{} // of policies
	for name, tt := range map[string]struct {
		issuers []string
		want    string
	}{
		"none":      {nil, "connect-src 'self';"},
		"one":       {[]string{"https://idp.example.org/realms/corp"}, "connect-src 'self' https://idp.example.org;"},
		"two":       {[]string{"https://[::1]:8443/a", "https://idp.example.org"}, "connect-src 'self' https://[::1]:8443 https://idp.example.org;"},
		"same host": {[]string{"https://idp.example.org/a", "https://idp.example.org/b"}, "connect-src 'self' https://idp.example.org;"},
		"prefix":    {[]string{"https://idp.example.org:8443", "https://idp.example.org"}, "connect-src 'self' https://idp.example.org:8443 https://idp.example.org;"},
		"no https":  {[]string{"http://idp.example.org", "data:x", "://", ""}, "connect-src 'self';"},
		"path":      {[]string{"https://idp.example.org;script-src/x", "https://idp.example.org/a;script-src 'unsafe-inline'"}, "connect-src 'self' https://idp.example.org;"},
		"hostile":   {[]string{"https://idp.example.org;script-src", "https://*", "https://a,b", "https://'unsafe-eval'", "https://user@"}, "connect-src 'self';"},
	} {
		w := httptest.NewRecorder()
		web.New(http.NotFoundHandler(), tt.issuers).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/ui/", http.NoBody))
		if got := w.Header().Get("Content-Security-Policy"); !strings.Contains(got, " "+tt.want) || strings.Count(got, ";") != 9 {
			t.Errorf("%s: the policy is %q, want %q in it", name, got, tt.want)
		}
		tag := w.Header().Get("ETag")
		if was := tags[tt.want]; was != "" && was != tag {
			t.Errorf("%s: the page with the same policy has the tags %s and %s", name, was, tag)
		}
		tags[tt.want] = tag
	}
	// A browser may keep the policy of a page that has the same tag.
	different := map[string]bool{}
	for _, tag := range tags {
		different[tag] = true
	}
	if len(different) != len(tags) || len(tags) < 4 {
		t.Errorf("%d policies have the tags %v, want as many", len(tags), different)
	}
}

// forbidden are ways to take text for markup or for a program, to keep something, and to ask another service.
var forbidden = regexp.MustCompile(`(?i)innerHTML|outerHTML|insertAdjacentHTML|document\.write|createContextualFragment|setHTML|DOMParser|` +
	`\beval\b|new Function|localStorage|sessionStorage|indexedDB|document\.cookie|https?://|\bstyle=|<style|javascript:|\son[a-z]+="|postMessage|\bopen\(`)

// imported are the modules that a module imports.
var imported = regexp.MustCompile(`(?m)^import .* from '([^']+)';$`)

// TestSources: what the browser's policy refuses, and what would undo that text is only text, is not even there.
func TestSources(t *testing.T) {
	t.Parallel()
	modules := 0
	err := fs.WalkDir(os.DirFS("pages"), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile("pages/" + name)
		if err != nil {
			return err
		}
		text := strings.ReplaceAll(string(data), "http://www.w3.org/2000/svg", "")
		if name == "signin.js" { // keeps what belongs to one attempt to sign in, while the browser is at the provider
			text = strings.NewReplacer("sessionStorage.setItem(kept, JSON.stringify(attempt))", "", "sessionStorage.getItem(kept)", "", "sessionStorage.removeItem(kept)", "").Replace(text)
		}
		if found := forbidden.FindString(text); found != "" {
			t.Errorf("%s has %q", name, found)
		}
		if name == "index.html" && strings.Count(text, "<script") != strings.Count(text, `<script type="module" src="/ui/assets/`) {
			t.Errorf("%s has a script in it", name)
		}
		if lines := strings.Count(text, "\n"); lines > 450 {
			t.Errorf("%s has %d lines, want 450 at most", name, lines)
		}
		for _, m := range imported.FindAllStringSubmatch(text, -1) {
			modules++
			if _, err := os.Stat(path.Join("pages", m[1])); err != nil || !strings.HasPrefix(m[1], "./") {
				t.Errorf("%s imports %s: %v", name, m[1], err)
			}
		}
		return nil
	})
	if err != nil || modules == 0 {
		t.Errorf("%d imports of modules, %v", modules, err)
	}
}
