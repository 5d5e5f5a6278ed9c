package ufm_test

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"portcullis/api"
)

// TestNotServedByDefault: without the setting there is no such path.
func TestNotServedByDefault(t *testing.T) {
	t.Parallel()
	s := newSite(t, func(o *api.Options) { o.UFM = nil })
	s.send(t, "GET", "/ufmRest/app/ufm_version", "Bearer "+s.tokens[everyone], "", 404)
}

// TestCredentials: each form that clients send is the same credential below every prefix, and nothing else opens a path.
func TestCredentials(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	token := s.tokens[confined]
	for _, prefix := range []string{"/ufmRest", "/ufmRestV2", "/ufmRestV3"} {
		for _, tt := range []struct {
			name, header string
			want         int
		}{
			{"user and password", basic(confined, token), 200},
			{"token after Basic", "Basic " + token, 200},
			{"token after Bearer", "Bearer " + token, 200},
			{"lower case", "basic " + token, 200},
			{"nothing", "", 401},
			{"empty", " ", 401},
			{"token of another user", basic(everyone, token), 401},
			{"no user", basic("", token), 401},
			{"another password", basic(confined, token+"x"), 401},
			{"UFM's default", basic("admin", "123456"), 401},
			{"unknown token", "Basic pcop_x", 401},
			{"Kerberos", "Negotiate YII", 401},
			{"digest", "Digest " + token, 401},
		} {
			for _, path := range []string{"/app/ufm_version", "/resources/pkeys", "/resources/pkeys/"} {
				body := s.send(t, "GET", prefix+path, tt.header, "", tt.want)
				if tt.want == 401 && !strings.Contains(body, "Error 401") {
					t.Errorf("%s: %s, want the words that clients look for", tt.name, body)
				}
				if strings.Contains(body, token) {
					t.Errorf("%s: the answer has the token", tt.name)
				}
			}
		}
	}
	s.send(t, "GET", "/v1/tenants", basic(everyone, s.tokens[everyone]), "", 401) // our own API takes no password
	s.send(t, "GET", "/ufmRestX/app/ufm_version", "Bearer "+token, "", 404)
}

// TestSMConf: no answer has a key, and clients take what stands for keys for one that is set.
func TestSMConf(t *testing.T) {
	t.Parallel()
	for managed, mkey := range map[bool]string{true: "protected", false: "0x0000000000000000"} {
		s := newSite(t, func(o *api.Options) { o.UFM.Managed = managed })
		var got map[string]any
		decode(t, s.do(t, "GET", "/app/smconf", watcher, "", 200), &got)
		if got["m_key"] != mkey || got["sm_key"] != "protected" || got["sa_key"] != "protected" ||
			got["m_key_per_port"] != managed || got["subnet_prefix"] != "0xfe80000000000000" || len(got) != 5 {
			t.Errorf("managed %v: %v", managed, got)
		}
	}
}

func TestVersion(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	var got map[string]string
	decode(t, s.do(t, "GET", "/app/ufm_version", watcher, "", 200), &got)
	if got["ufm_release_version"] != "6.23.1-6" || got["product"] != "portcullis" {
		t.Errorf("%v", got)
	}
}

// TestLists: the forms of the list, and what a credential sees of it.
func TestLists(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	g := s.guids(t, "gpu-0")
	s.do(t, "POST", "/resources/pkeys", confined, orderOf("0x0005", g[0]), 200)
	for name, want := range map[string][]string{confined: {"0x7fff", "0x5"}, everyone: {"0x7fff", "0x5", "0x200"}} {
		var keys []string
		for _, path := range []string{"/resources/pkeys", "/resources/pkeys/", "/resources/pkeys?guids_data=False"} {
			if decode(t, s.do(t, "GET", path, name, "", 200), &keys); !slices.Equal(keys, want) {
				t.Errorf("%s %s: %v, want %v", name, path, keys, want)
			}
		}
		var all map[string]partition
		for _, query := range []string{"?guids_data=true", "?guids_data=True&qos_conf=true", "/?guids_data=true"} {
			all = nil
			decode(t, s.do(t, "GET", "/resources/pkeys"+query, name, "", 200), &all)
			if len(all) != len(want) {
				t.Errorf("%s %s: %v, want %v", name, query, all, want)
			}
			p, d := all["0x5"], all["0x7fff"]
			if len(p.GUIDs) != len(g) || p.GUIDs[0].GUID != g[0] || p.GUIDs[0].Membership != "full" || p.GUIDs[0].Index0 == nil || p.IPoIB == nil || !*p.IPoIB || p.Partition == "" {
				t.Errorf("%s: 0x5 is %+v", query, p)
			}
			if d.Partition != "management" || d.Membership != "limited" || d.IPoIB == nil || d.GUIDs == nil {
				t.Errorf("%s: 0x7fff is %+v", query, d)
			}
			if q := p.QoS; strings.Contains(query, "qos") && (q == nil || q.MTU != 4 || q.Rate != 300 || q.Level != 0) {
				t.Errorf("%s: QoS %+v", query, q)
			}
		}
	}
	for _, unknown := range []string{"0x6", "0x200", "6"} { // none, another's, and in decimal
		if got := strings.TrimSpace(s.do(t, "GET", "/resources/pkeys/"+unknown+"?guids_data=true&qos_conf=true", confined, "", 200)); got != "{}" {
			t.Errorf("%s: %s, want {}", unknown, got)
		}
	}
	for _, same := range []string{"0x5", "0X05", "0x0005", "5"} {
		if got := s.members(t, same, confined); got != strings.Join(g, " ") {
			t.Errorf("%s: members %s, want %s", same, got, g)
		}
	}
	for _, wrong := range []string{"0x8005", "0x", "x", "-1", "0x10000", "99999999999999999999999"} {
		s.do(t, "GET", "/resources/pkeys/"+wrong, confined, "", 400)
	}
}

// TestPorts: every element has each field that clients want, and a credential is shown its own hosts.
func TestPorts(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.Place("gpu-0")
	for name, hosts := range map[string]int{confined: 3, everyone: 4} {
		var ports []map[string]any
		for _, path := range []string{"/resources/ports?sys_type=Computer", "/resources/ports", "/resources/ports/"} {
			decode(t, s.do(t, "GET", path, name, "", 200), &ports)
			if len(ports) != 2*hosts {
				t.Fatalf("%s %s: %d ports, want %d", name, path, len(ports), 2*hosts)
			}
		}
		for _, p := range ports {
			for _, key := range []string{"guid", "name", "systemID", "dname", "system_name", "physical_state", "logical_state"} {
				if text, ok := p[key].(string); !ok || text == "" {
					t.Errorf("%s of %v", key, p)
				}
			}
			if _, ok := p["lid"].(float64); !ok || p["name"] != p["guid"].(string)+"_"+p["dname"].(string)[6:] {
				t.Errorf("port %v", p)
			}
		}
		var systems []map[string]string
		decode(t, s.do(t, "GET", "/resources/systems?type=host", name, "", 200), &systems)
		if len(systems) != hosts || systems[0]["system_name"] != "gpu-0" || systems[0]["system_guid"] == "" {
			t.Errorf("%s: systems %v", name, systems)
		}
	}
	var some []map[string]any
	decode(t, s.do(t, "GET", "/resources/ports?system=gpu-1", confined, "", 200), &some)
	if len(some) != 2 || some[0]["system_name"] != "gpu-1" {
		t.Errorf("ports of gpu-1: %v", some)
	}
	decode(t, s.do(t, "GET", "/resources/ports?sys_type=Switch", confined, "", 200), &some)
	if len(some) != 0 {
		t.Errorf("ports of switches: %v", some)
	}
}

// TestPathsAndMethods: nothing is redirected, and what is not there says so in the form that clients print.
func TestPathsAndMethods(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	for _, tt := range []struct {
		method, path string
		want         int
	}{
		{"GET", "/app/none", 404},
		{"GET", "", 404},
		{"PATCH", "/resources/pkeys", 405},
		{"POST", "/app/tokens", 404},
	} {
		r := httptest.NewRequest(tt.method, "/ufmRest"+tt.path, http.NoBody)
		r.Header.Set("Authorization", basic(confined, s.tokens[confined]))
		w := httptest.NewRecorder()
		s.server.ServeHTTP(w, r)
		if w.Code != tt.want || !strings.Contains(w.Body.String(), `{"error":"`) || w.Header().Get("X-Request-Id") == "" {
			t.Errorf("%s %s: %d %v %s, want %d", tt.method, tt.path, w.Code, w.Header(), w.Body, tt.want)
		}
	}
}
