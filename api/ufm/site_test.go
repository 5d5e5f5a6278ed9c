package ufm_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"portcullis/api"
	"portcullis/api/apitest"
	"portcullis/api/audit"
	"portcullis/api/credential"
	"portcullis/api/ufm"
	v1 "portcullis/api/v1"
)

// site is a service with the surface of UFM, over the services that really decide.
type site struct {
	*apitest.Site
	server *api.Server
	tokens map[string]string // by name
}

// Names of the credentials of a site.
const (
	confined = "slurm" // P_Keys 0x1 to 0xff, hosts gpu-*
	watcher  = "watch" // the same, as viewer
	everyone = "olga"  // operator without a scope
)

// newSite makes a site with hosts gpu-0, gpu-1, gpu-2 and login-0, a tenant of the confined credential, and a cluster "theirs" with the P_Key
// 0x200 of another tenant, with the host login-0.
func newSite(t *testing.T, edit ...func(*api.Options)) *site {
	t.Helper()
	s := &site{Site: apitest.NewSite(t), tokens: map[string]string{}}
	s.Register("gpu-0", "gpu-1", "gpu-2", "login-0")
	o, _, _, err := apitest.Options(s.Site)
	if err != nil {
		t.Fatal(err)
	}
	text := "tokens:\n"
	for name, more := range map[string]string{
		confined: "role: operator, p_keys: [0x0001-0x00ff], hosts: ['gpu-*']", watcher: "role: viewer, p_keys: [0x0001-0x00ff], hosts: ['gpu-*']",
		everyone: "role: operator", "makes": "role: operator, p_keys: [0x0200]",
	} {
		token, digest := credential.New()
		s.tokens[name] = token
		text += fmt.Sprintf("- {name: %s, sha256: %s, %s}\n", name, digest, more)
	}
	if o.Tokens, err = credential.Parse("tokens.yaml", []byte(text)); err != nil {
		t.Fatal(err)
	}
	o.UFM = &ufm.Settings{Prefix: 0xfe80000000000000, MTU: 4096, IPoIB: true, Managed: true}
	for _, e := range edit {
		e(&o)
	}
	s.server = api.New(o)
	s.own(t, "POST", "/v1/tenants", everyone, `{"name":"batch","p_keys":["0x0001-0x00ff"]}`, 201)
	s.own(t, "POST", "/v1/tenants", "makes", `{"name":"others"}`, 201)
	s.own(t, "POST", "/v1/clusters", "makes", `{"name":"theirs","tenant":"others","p_key":"0x0200"}`, 201)
	s.own(t, "POST", "/v1/hosts/login-0/assign", everyone, `{"cluster":"theirs"}`, 202)
	return s
}

// own sends a request to our own API.
func (s *site) own(t *testing.T, method, path, name, body string, want int) string {
	t.Helper()
	return s.send(t, method, path, "Bearer "+s.tokens[name], body, want)
}

// do sends a request to the surface as a client with user name and password does.
func (s *site) do(t *testing.T, method, path, name, body string, want int) string {
	t.Helper()
	return s.send(t, method, "/ufmRest"+path, basic(name, s.tokens[name]), body, want)
}

func (s *site) send(t *testing.T, method, path, authorization, body string, want int) string {
	t.Helper()
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	r.Header.Set("Authorization", authorization)
	if body != "" {
		r.Header.Set("Content-Type", "application/json; charset=utf-8")
	}
	if method != http.MethodGet && strings.HasPrefix(path, "/v1/") {
		r.Header.Set("Content-Type", "application/json")
	}
	w := httptest.NewRecorder()
	s.server.ServeHTTP(w, r)
	if w.Code != want {
		t.Fatalf("%s %s %s: status %d, want %d: %s", method, path, body, w.Code, want, w.Body)
	}
	return w.Body.String()
}

func basic(user, password string) string {
	return "Basic " + base64.StdEncoding.EncodeToString([]byte(user+":"+password))
}

// guids returns the GUIDs of the ports of a host, as clients write them.
func (s *site) guids(t *testing.T, host string) (out []string) {
	t.Helper()
	for _, a := range s.Host(host).HCAs {
		for _, p := range a.Ports {
			out = append(out, fmt.Sprintf("%016x", uint64(p.GUID)))
		}
	}
	return out
}

// orderOf returns the body that ib-kubernetes sends.
func orderOf(key string, guids ...string) string {
	text, _ := json.Marshal(append([]string{}, guids...))
	return fmt.Sprintf(`{"pkey":%q,"index0":true,"ip_over_ib":true,"membership":"full","guids":%s}`, key, text)
}

// partition is what a client reads of one.
type partition struct {
	Partition string `json:"partition"`
	IPoIB     *bool  `json:"ip_over_ib"`
	GUIDs     []struct {
		GUID       string `json:"guid"`
		Index0     *bool  `json:"index0"`
		Membership string `json:"membership"`
	} `json:"guids"`
	QoS *struct {
		MTU   int     `json:"mtu_limit"`
		Rate  float64 `json:"rate_limit"`
		Level int     `json:"service_level"`
	} `json:"qos_conf"`
	Membership string `json:"membership"`
}

// members returns the GUIDs of a partition, in a line.
func (s *site) members(t *testing.T, key, name string) string {
	t.Helper()
	var p partition
	decode(t, s.do(t, "GET", "/resources/pkeys/"+key+"?guids_data=true", name, "", 200), &p)
	var out []string
	for _, g := range p.GUIDs {
		out = append(out, g.GUID)
	}
	return strings.Join(out, " ")
}

func decode(t *testing.T, text string, to any) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), to); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
}

// audited returns the entries of the audit log that an actor has, as "action object code", the newest first.
func (s *site) audited(t *testing.T, actor string) (out []string) {
	t.Helper()
	l, err := audit.Book{Store: s.Store}.List(t.Context(), v1.AuditQuery{Actor: actor, Limit: v1.MaxPage})
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range l.Items {
		out = append(out, strings.TrimSpace(e.Action+" "+e.Object+" "+e.Code))
	}
	return out
}
