package drills

import (
	"encoding/base64"
	"time"

	"portcullis/api/admission"
	"portcullis/api/credential"
	v1 "portcullis/api/v1"
	"portcullis/attest"
	"portcullis/attest/eventlog/eventlogtest"
	"portcullis/fabricsm/drill"
)

// earlyBoot is T115: a host boots the tenant's system before its adapters were locked.
func earlyBoot(s *drill.Scene) {
	e := newEvidenceSite(s, evidenceOptions{admission: func(o *admission.Options) {
		if s.Off(ReferenceValues) {
			o.Judge = overlooking{reasons: []attest.Reason{attest.ReasonReference}}
		}
	}})
	m := e.hosts[suspect]
	s.Tried("%s boots the tenant's system instead of the provisioning image, and asks for nothing", suspect)
	e.mark()
	boot(m, "tenant's own")
	e.Run(10 * time.Minute)
	if e.outside("which booted the tenant's system") {
		s.Stopped("a host that was not seen in the provisioning image is in no partition, whatever it boots")
	}

	s.Tried("then it runs the agent in the tenant's system")
	e.refused(e.attest(m), attest.ReasonReference, proven, "which is locked, if at all, by the tenant's system")
	if s.Off(ReferenceValues) {
		return
	}
	s.Tried("it boots the provisioning image, attests, and boots the tenant's system before the hand-over")
	e.reassign("acme")
	boot(m, eventlogtest.Example().Image)
	ses, seal, err := e.show(m)
	s.Must(err)
	boot(m, "tenant's own")
	err = e.seal(m, ses, seal)
	s.Check(err != nil, "the hand-over of another boot is taken")
	e.outside("which booted the tenant's system before the hand-over")
	s.Check(e.phase(victim) == v1.PhaseAdmitted, "host %s is %s", victim, e.phase(victim))
}

// weakCredentials is T121: an attacker tries what products have on the first day, and credentials of former times.
func weakCredentials(s *drill.Scene) {
	ended := "2021-01-31T00:00:00Z"
	if s.Off(TokenEnd) {
		ended = ""
	}
	v := newSite(s, options{credentials: []account{{name: "ann"}, {name: "left", expires: ended}}, api: withUFM})
	red := v.cluster("ann", "red", "h1", "h5", "h4")
	v.VictimOf("h1", "h5", red)
	order := func(of *site, header map[string]string) int {
		return of.send("nobody", "POST", "/v1/hosts/h4/release", "", header).status
	}
	basic := func(user, word string) map[string]string {
		return map[string]string{"Authorization": "Basic " + base64.StdEncoding.EncodeToString([]byte(user+":"+word))}
	}

	s.Tried("an attacker tries what products ship, tokens that begin right, and none at all, at a service that knows credentials and at one that is a minute old")
	v.mark()
	known := v.known
	for _, tokens := range []*credential.Tokens{known, new(credential.Tokens)} {
		v.api.SetTokens(tokens)
		for _, header := range []map[string]string{
			basic("admin", "123456"), basic("admin", "admin"), basic("ufmadmin", "ufm"), basic("root", ""), basic("ann", ""), basic("", v.tokens["ann"][:20]),
			{"Authorization": "Bearer "},
			{"Authorization": "Bearer admin"},
			{"Authorization": "Bearer " + credential.Prefix},
			{"Authorization": ""},
			{"Authorization": "Bearer " + v.tokens["ann"][:len(v.tokens["ann"])-1]},
			{"Authorization": "Bearer null"},
			{"X-Remote-User": "ann", "Authorization": ""},
		} {
			s.Check(order(v, header) == 401, "%v is taken for a credential", header)
		}
		for _, path := range []string{"/ufmRest/resources/pkeys", "/ufmRest/app/smconf"} {
			a := v.send("nobody", "GET", path, "", basic("admin", "123456"))
			s.Check(a.status == 401, "GET %s takes the factory password: %d", path, a.status)
		}
	}
	s.Stopped("none is shipped: a service without a file of tokens answers no operator")
	v.api.SetTokens(known)

	s.Tried("a token is used that has ended")
	a := v.call("left", "POST", "/v1/hosts/h4/release", "")
	v.sync()
	s.Check(a.status == 401, "a token that has ended is answered with %d", a.status)
	if s.Check(v.clusterOf("h4") == "red" && v.delivered("h4", "h1", red), "h4 was released by a token that has ended") {
		s.Stopped("a token has an end, and a token that has ended is none")
	}
	v.Counted(v.metric("ann", `status="401"`), "metric portcullis_http_requests_total: requests without a credential, 401")
}
