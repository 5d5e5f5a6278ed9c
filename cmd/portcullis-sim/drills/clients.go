package drills

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"portcullis/api"
	"portcullis/api/credential"
	"portcullis/api/idempotency"
	"portcullis/api/refusal"
	"portcullis/api/ufm"
	v1 "portcullis/api/v1"
	"portcullis/fabricsm/drill"
	"portcullis/fabricsm/ib"
)

// withUFM has the API serve the surface of UFM.
func withUFM(_ *site, o *api.Options) {
	o.UFM = &ufm.Settings{Prefix: 0xfe80000000000000, MTU: 4096, Managed: true}
}

// withAnswers has the API keep first answers.
func withAnswers(v *site, o *api.Options) {
	o.Answers = idempotency.New(v.store, v.clock, idempotency.DefaultRate())
}

// problemsOf lists the problems of a refusal.
func problemsOf(err error) []string {
	if no, ok := errors.AsType[*refusal.Error](err); ok {
		return no.Problems
	}
	return nil
}

// enumerated is T120: a tenant tries names of others.
func enumerated(s *drill.Scene) {
	spy := account{name: "spy", role: credential.Tenant, tenants: []string{"acme"}}
	if s.Off(TenantScopes) {
		spy = account{name: "spy"}
	}
	v := newSite(s, options{credentials: []account{{name: "ops"}, spy}})
	acme := v.cluster("ops", "acme", "h1", "h5")
	rival := v.cluster("ops", "rival", "h2", "h6")
	v.VictimOf("h1", "h5", acme)

	s.Tried("tenant acme asks for what tenant rival has, and for what there is not, and compares the answers; it orders changes")
	v.mark()
	for _, ask := range [][3]string{
		{"GET", "/v1/tenants/NAME", ""},
		{"GET", "/v1/clusters/NAME", ""},
		{"GET", "/v1/hosts/HOST", ""},
		{"GET", "/v1/hosts/HOST/watch", ""},
		{"POST", "/v1/hosts/HOST/release", ""},
		{"POST", "/v1/hosts/HOST/assign", `{"cluster":"acme"}`},
		{"POST", "/v1/hosts/HOST/fence", `{"reason":"mine"}`},
		{"DELETE", "/v1/clusters/NAME", ""},
		{"PUT", "/v1/clusters/acme/uses/NAME", ""},
		{"DELETE", "/v1/tenants/NAME", ""},
	} {
		theirs, none := v.about("spy", "rival", "h2", ask), v.about("spy", "nobod", "h9", ask)
		s.Check(theirs == none, "%s %s is answered with %s for what rival has, and with %s for what there is not", ask[0], ask[1], theirs, none)
	}
	for _, list := range []string{"/v1/hosts", "/v1/clusters", "/v1/tenants"} {
		a := v.call("spy", "GET", list, "")
		s.Check(!strings.Contains(a.body.String(), "rival") && !strings.Contains(a.body.String(), `"h2"`), "the list %s shows what rival has", list)
	}
	v.sync()
	if s.Check(v.delivered("h2", "h6", rival), "hosts of rival were changed by tenant acme") {
		s.Stopped("for a credential of a tenant there is nothing but what that tenant has: 404, whether it exists or not")
	}
	own := v.call("spy", "POST", "/v1/hosts/h5/assign", `{"cluster":"acme"}`)
	s.Check(own.status == 403, "the tenant assigns hosts itself: %d", own.status)
	v.Counted(v.metric("ops", `status="404"`), "metric portcullis_http_requests_total: requests for what there is not, 404")
}

// about asks for an object, and returns the answer without its names.
func (v *site) about(who, name, host string, ask [3]string) string {
	put := strings.NewReplacer("NAME", name, "HOST", host)
	a := v.call(who, ask[0], put.Replace(ask[1]), put.Replace(ask[2]))
	var p v1.Problem
	_ = json.Unmarshal(a.body.Bytes(), &p) // what is no problem is compared by its status
	back := strings.NewReplacer(name, "NAME", host, "HOST")
	return fmt.Sprintf("%d %s %s", a.status, p.Code, back.Replace(p.Detail))
}

// formatGames is T123: what is written in another form is the same, or refused.
func formatGames(s *drill.Scene) {
	v := newSite(s, options{credentials: []account{{name: "ops"}, {name: "pods", pkeys: []string{"0x0001-0x00ff"}}}, api: withUFM})
	v.must("ops", "POST", "/v1/tenants", `{"name":"pods","p_keys":["0x0001-0x00ff"]}`)
	guid, other := fmt.Sprintf("%016x", uint64(v.GUID("h3", 1))), fmt.Sprintf("%016x", uint64(v.GUID("h4", 1)))

	s.Tried("a client writes the P_Key 0x0010 and the GUID of h3 in every form that there is, and lists that contradict themselves")
	v.mark()
	same, refused := 0, 0
	number := func(i int) bool { return i < 6 }  // forms of the P_Key that mean 0x10
	spelled := func(i int) bool { return i < 3 } // forms of the GUID that are whole
	for i, key := range []string{
		"0x10", "0x0010", "0X10", "0x010", "16", "0x00010", "0x8010", "0x10010", "10h", " 0x10", "0x10 ", "0x1_0", "+0x10", "-0x7ff0", "0x", "", "1e1", "٠x10", "0x10,0x11", "0b10000", "0o20", "10",
	} {
		for k, form := range []string{guid, "0x" + guid, strings.ToUpper(guid), colons(guid), "0x0x" + guid[4:], guid + "0000", guid[1:], guid + " "} {
			a := v.call("pods", "POST", "/ufmRest/resources/pkeys", fmt.Sprintf(`{"pkey":%q,"guids":[%q],"membership":"full"}`, key, form))
			took := meant(v, a, key, form)
			s.Check(took == (number(i) && spelled(k)) || key == "10", "%q, %q is answered with %d", key, form, a.status)
			if took {
				same++
			} else {
				refused++
			}
		}
	}
	for _, body := range []string{
		`{"pkey":"0x10","pkey":"0x11","guids":["` + guid + `"]}`,
		`{"pkey":"0x10","guids":["` + guid + `","0x` + strings.ToUpper(guid) + `"],"memberships":["full","limited"]}`,
		`{"pkey":"0x10","guids":["` + guid + `"],"memberships":["full","full"]}`,
		`{"pkey":"0x10","guids":["` + guid + `","` + other + `"],"memberships":["full"]}`,
		`{"pkey":"0x10","GUIDs":["` + other + `"],"guids":["` + guid + `"]}`,
		`{"pkey":16,"guids":["` + guid + `"]}`, `{"pkey":"0x10","guids":"` + guid + `"}`, `{"pkey":"0x10","guids":["` + guid + `"]} {}`,
	} {
		a := v.call("pods", "POST", "/ufmRest/resources/pkeys", body)
		s.Check(!a.good(), "%s contradicts itself, and is answered with %d", body, a.status)
		refused++
	}
	s.Check(v.clusterOf("h4") == "", "h4 is in cluster %q", v.clusterOf("h4"))
	for _, key := range []string{`"0x8010"`, `"16"`, `"0x00010"`, `16`} {
		a := v.call("pods", "POST", "/v1/clusters", `{"name":"odd","tenant":"pods","p_key":`+key+`}`)
		s.Check(!a.good() || v.pkeyOf("odd").Base() == 0x10, "the P_Key %s of a cluster becomes %v", key, v.pkeyOf("odd"))
	}
	s.Check(same > 8 && refused > 100, "%d forms were taken, and %d refused, so nothing is proven", same, refused)
	s.Stopped("%d forms mean the same, and the other %d are refused: no form means anything else", same, refused)
	v.Counted(v.metric("ops", `status="400"`), "metric portcullis_http_requests_total: requests that no reader should guess about, 400")
}

// meant demands that an order in some form did what its plain form does, or nothing, and takes it back. It reports whether it
// did something.
func meant(v *site, a *answer, key, form string) bool {
	s := v.scene
	in := v.clusterOf("h3")
	s.Check(a.good() == (in != ""), "%q, %q is answered with %d, and h3 is in cluster %q", key, form, a.status, in)
	list, err := v.admission.Tenancy().Clusters(v.ctx(), v1.ClusterQuery{})
	s.Must(err)
	for _, c := range list.Items {
		s.Check(c.PKey.Base() == 0x10 || key == "10" && c.PKey.Base() == 10, "%q makes a partition with the P_Key %v", key, c.PKey)
		s.Check(len(c.Hosts) == 0 || len(c.Hosts) == 1 && c.Hosts[0] == "h3", "%q makes %v members", form, c.Hosts)
	}
	if in == "" {
		return false
	}
	s.Check(v.pkeyOf(in).Base() == ib.PKey(0x10) || key == "10" && v.pkeyOf(in).Base() == 10, "%q is taken as %v", key, v.pkeyOf(in))
	v.must("ops", "POST", "/v1/hosts/h3/release", "")
	return true
}

func colons(guid string) string {
	var parts []string
	for i := 0; i < len(guid); i += 4 {
		parts = append(parts, guid[i:i+4])
	}
	return strings.Join(parts, ":")
}

// replayedOrder is T124: the answer to an order is lost, and the client sends it again, later.
func replayedOrder(s *drill.Scene) {
	v := newSite(s, options{credentials: []account{{name: "ann"}, {name: "bob"}}, api: withAnswers})
	red := v.cluster("ann", "red", "h1", "h5")
	v.VictimOf("h1", "h5", red)
	once := map[string]string{idempotencyKey: "order-1"}
	if s.Off(RequestNames) {
		once = nil
	}
	s.Tried("ann has h4 assigned to red, and the answer is lost; bob releases h4; then the client of ann sends the order again, twice")
	v.mark()
	const order = `{"cluster":"red"}`
	first := v.send("ann", "POST", "/v1/hosts/h4/assign", order, once)
	s.Check(first.good(), "the order is answered with %d", first.status)
	v.must("bob", "POST", "/v1/hosts/h4/release", "")
	v.sync()
	for range 2 {
		again := v.send("ann", "POST", "/v1/hosts/h4/assign", order, once)
		s.Check(again.status == first.status && again.body.String() == first.body.String(), "the same order is answered with %d %s, before with %d", again.status, strings.TrimSpace(again.body.String()), first.status)
		if s.Check(v.clusterOf("h4") == "", "h4, which was released, is in cluster %q because an order was sent again", v.clusterOf("h4")) {
			v.Counted(again.header.Get(replayedHeader) == "true", "header %s of the answer", replayedHeader)
		}
	}
	if s.Off(RequestNames) {
		return
	}
	other := v.send("ann", "POST", "/v1/hosts/h3/assign", order, once)
	s.Check(other.code() == idempotency.CodeReused, "another order with the same name is answered with %d %q", other.status, other.code())
	s.Check(v.clusterOf("h3") == "", "h3 is in cluster %q by the name of another order", v.clusterOf("h3"))
	stranger := v.send("bob", "POST", "/v1/hosts/h3/assign", order, once)
	s.Check(stranger.good() && v.clusterOf("h3") == "red", "the name of ann's order keeps bob from his: %d", stranger.status)
	s.Stopped("an order that names itself is carried out once: sent again it gets its first answer")
}

// Headers of requests that name themselves.
const (
	idempotencyKey = "Idempotency-Key"
	replayedHeader = "Idempotency-Replayed"
)

// shownKeys is T127: endpoints that show the configuration show no key.
func shownKeys(s *drill.Scene) {
	v := newSite(s, options{credentials: []account{{name: "ops"}, {name: "watch", role: credential.Viewer}}, api: withUFM})
	red := v.cluster("ops", "red", "h1", "h5")
	v.VictimOf("h1", "h5", red)

	s.Tried("a viewer, and an operator, read the configuration of the Subnet Manager at the surface of UFM and all that the API shows of keys, and look for the keys of devices")
	v.mark()
	var seen strings.Builder
	for _, who := range []string{"watch", "ops"} {
		for _, path := range []string{"/ufmRest/app/smconf", "/v1/sm", "/v1/fabric", "/v1/fabric/keys", "/v1/fabric/keys/devices", "/metrics", "/metrics/fabric"} {
			a := v.call(who, "GET", path, "")
			s.Check(a.good(), "GET %s as %s is answered with %d", path, who, a.status)
			seen.Write(a.body.Bytes())
		}
	}
	secrets := v.secrets()
	s.Check(len(secrets) > 10, "%d keys were looked for, so nothing is proven", len(secrets))
	for _, secret := range secrets {
		form := leaked([]byte(seen.String()), secret)
		if !s.Check(form == "", "a key is in what is shown, %s", form) {
			return
		}
	}
	var conf map[string]any
	s.Must(json.Unmarshal(v.call("watch", "GET", "/ufmRest/app/smconf", "").body.Bytes(), &conf))
	for _, name := range []string{"m_key", "sm_key", "sa_key"} {
		v.Counted(conf[name] == "protected", "smconf: %s is %v", name, conf[name])
	}
	s.Stopped("where clients expect a key there is a word: none of %d keys is in any answer", len(secrets))
}

// staleDecision is T130: two controllers change one object, one of them by what it read before.
func staleDecision(s *drill.Scene) {
	v := newSite(s, options{credentials: []account{{name: "ops"}, {name: "ann", pkeys: []string{"0x0001-0x00ff"}}, {name: "bob", pkeys: []string{"0x0001-0x00ff"}}}, api: withUFM})
	v.must("ops", "POST", "/v1/tenants", `{"name":"red","p_keys":["0x0001-0x00ff"]}`)

	s.Tried("ann reads the tenant red; bob lowers its quota to 2 hosts, because it does not pay; ann writes what she decided before, 8 hosts")
	v.mark()
	read := v.call("ops", "GET", "/v1/tenants/red", "").header.Get("ETag")
	v.must("ops", "PUT", "/v1/tenants/red/quota", `{"hosts":2}`)
	if s.Off(ObjectVersions) {
		read = "*"
	}
	late := v.send("ops", "PUT", "/v1/tenants/red/quota", `{"hosts":8}`, map[string]string{"If-Match": read})
	s.Check(late.code() == v1.CodeChanged, "the older decision is answered with %d %q", late.status, late.code())

	s.Tried("two controllers that know nothing of versions add a host each to the partition 0x0005, at the surface of UFM, by the empty list that both read")
	guid := func(h string) string { return fmt.Sprintf("%016x", uint64(v.GUID(h, 1))) }
	for _, add := range [][2]string{{"ann", "h1"}, {"bob", "h5"}, {"ann", "h4"}} {
		v.call(add[0], "POST", "/ufmRest/resources/pkeys", fmt.Sprintf(`{"pkey":"0x0005","guids":[%q]}`, guid(add[1])))
	}
	v.settled("h1", "h5")
	over := v.clusterOf("h4")
	s.Check(over == "", "h4 is a third host of the tenant, in cluster %q, though its quota was lowered to 2", over)
	red := v.pkeyOf("pkey-0x0005")
	if s.Check(v.delivered("h1", "h5", red), "h1 and h5 do not reach each other") {
		s.Stopped("a decision names the version that it rests on, and changes of compatibility add, they do not replace")
	}
	v.Counted(v.metric("ops", `status="412"`), "metric portcullis_http_requests_total: decisions on an older state, 412")
}

// settled has assigned hosts attest, and lets all come to rest.
func (v *site) settled(list ...string) {
	v.attested(list...)
	v.sync()
}
