// Package web has the pages that the service shows in a browser, and serves them.
//
// The pages are fixed files: they hold nothing of the fabric and need no credential. What they show they ask of the API, with
// the credential that the operator enters in the page.
package web

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"html"
	"io/fs"
	"net/http"
	"net/url"
	"path"
	"regexp"
	"strings"
)

// Root is the path below which the pages are.
const Root = "/ui/"

const (
	// policy lets a page run and show only what this service serves. Trusted Types make a browser that knows them refuse to
	// take text as markup. Where people sign in at identity providers, a page may ask these, too.
	policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'%s; " +
		"frame-ancestors 'none'; base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

	// forever is for paths that have the digest of what they lead to.
	forever = "public, max-age=31536000, immutable"
	// asked is for paths whose content is another one after an upgrade: a browser asks whether it still has the right one.
	asked = "no-cache"

	start = "index.html"
	// assets stands in the first page for the folder of all others.
	assets = "/ui/assets/"
)

//go:embed pages
var files embed.FS

// types are the media types of the files, by their endings. A file with another ending is a mistake.
var types = map[string]string{
	".html": "text/html; charset=utf-8",
	".css":  "text/css; charset=utf-8",
	".js":   "text/javascript; charset=utf-8",
	".svg":  "image/svg+xml",
}

// asset is a file as it is served.
type asset struct {
	media, cache, tag string
	data              []byte
}

// Pages serves the pages. It is an http.Handler for GET and HEAD below Root, and answers all else through its own handler of
// paths that do not exist.
type Pages struct {
	assets  map[string]*asset // by path
	policy  string
	missing http.Handler
}

// New reads the pages out of the program. missing answers for paths that lead to none. issuers are the URLs of identity providers at
// which people sign in: their origins are the only ones beside the service itself that a page may ask.
func New(missing http.Handler, issuers []string) *Pages {
	p, err := read(files, missing)
	if err != nil {
		panic(err) // a test makes them
	}
	p.policy = fmt.Sprintf(policy, origins(issuers))
	// A browser may keep the policy of a page that has the same tag, so another policy is another page.
	first := p.assets[Root]
	first.tag = tagOf(first.data, []byte(p.policy))
	return p
}

// host has the characters of names and addresses, with a port, and none that means something in a policy.
var host = regexp.MustCompile(`^[A-Za-z0-9.:\[\]-]+$`)

// origins returns the origins of https URLs, each once, for a policy. Of what is none, a page may ask nothing.
func origins(urls []string) string {
	var out strings.Builder
	for _, text := range urls {
		u, err := url.Parse(text)
		if err != nil || u.Scheme != "https" || !host.MatchString(u.Host) || strings.Contains(out.String()+" ", " https://"+u.Host+" ") {
			continue
		}
		out.WriteString(" https://" + u.Host)
	}
	return out.String()
}

// read makes pages of files. The folder of all but the first page is called by their digest, so that a browser may keep them
// and yet never runs modules of two releases together.
func read(from fs.FS, missing http.Handler) (*Pages, error) {
	p := &Pages{assets: map[string]*asset{}, missing: missing}
	read := map[string][]byte{}
	sum := sha256.New()
	err := fs.WalkDir(from, "pages", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		if types[path.Ext(name)] == "" {
			return fmt.Errorf("page %s: no media type is known for its ending", name)
		}
		data, err := fs.ReadFile(from, name)
		if err != nil {
			return err
		}
		name = strings.TrimPrefix(name, "pages/")
		read[name] = data
		fmt.Fprintf(sum, "%s %d\n%s", name, len(data), data)
		return nil
	})
	if err != nil {
		return nil, err
	}
	if read[start] == nil {
		return nil, fmt.Errorf("pages: there is no %s", start)
	}
	folder := Root + hex.EncodeToString(sum.Sum(nil)[:8]) + "/"
	for name, data := range read {
		if name == start {
			first := []byte(strings.ReplaceAll(string(data), assets, html.EscapeString(folder)))
			p.assets[Root] = newAsset(name, asked, first)
			continue
		}
		p.assets[folder+name] = newAsset(name, forever, data)
	}
	return p, nil
}

func newAsset(name, cache string, data []byte) *asset {
	return &asset{media: types[path.Ext(name)], cache: cache, tag: tagOf(data), data: data}
}

// tagOf returns the entity tag of what is served with these parts.
func tagOf(parts ...[]byte) string {
	sum := sha256.Sum256(bytes.Join(parts, []byte{0}))
	return `"` + hex.EncodeToString(sum[:16]) + `"`
}

// ServeHTTP implements http.Handler.
func (p *Pages) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/" || r.URL.Path == strings.TrimSuffix(Root, "/") {
		http.Redirect(w, r, Root, http.StatusFound)
		return
	}
	a := p.assets[r.URL.Path]
	if a == nil {
		p.missing.ServeHTTP(w, r)
		return
	}
	h := w.Header()
	h.Set("Content-Security-Policy", p.policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Content-Type", a.media)
	h.Set("Cache-Control", a.cache)
	h.Set("ETag", a.tag)
	for known := range strings.SplitSeq(r.Header.Get("If-None-Match"), ",") {
		if known = strings.TrimPrefix(strings.TrimSpace(known), "W/"); known == a.tag || known == "*" {
			w.WriteHeader(http.StatusNotModified)
			return
		}
	}
	_, _ = w.Write(a.data) // the browser may be gone
}
