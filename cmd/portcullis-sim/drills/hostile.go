package drills

import (
	"bufio"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/tls"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"portcullis/api/client"
	"portcullis/api/webhook"
	"portcullis/fabricsm/drill"
)

// interposed is T122: an attacker answers in the place of the service.
func interposed(s *drill.Scene) {
	v := newSite(s, options{credentials: []account{{name: "ann"}}})
	red := v.cluster("ann", "red", "h1", "h5")
	v.VictimOf("h1", "h5", red)
	api := v.listen()
	defer api.stop()
	heard := make(chan string, 8)
	mitm := newEndpoint(s, func(w http.ResponseWriter, r *http.Request) {
		heard <- r.Header.Get("Authorization")
		w.WriteHeader(http.StatusOK)
	})
	defer mitm.close()
	pinned := api.pem
	if s.Off(PinnedAuthority) {
		pinned = mitm.pem
	}

	s.Tried("an attacker on the way answers with a certificate of root's own, and asks the service as the client would, without its credential")
	v.mark()
	c, err := client.New(client.Options{URL: mitm.URL, CA: pinned, Token: v.tokens["ann"], Timeout: patience})
	s.Must(err)
	_, err = c.WhoAmI(v.ctx())
	s.Check(err != nil, "the client takes the answer of the attacker")
	stolen := ""
	select {
	case stolen = <-heard:
	default:
	}
	if s.Check(stolen == "", "the attacker has the credential of ann") {
		s.Stopped("the client ends the handshake before it sends anything")
	}
	if stolen != "" {
		return
	}
	for _, u := range []string{"http://" + api.addr, "https://ann:secret@" + api.addr} {
		_, err := client.New(client.Options{URL: u, CA: api.pem, Token: v.tokens["ann"]})
		s.Check(err != nil, "a client is made for %s", strings.ReplaceAll(u, api.addr, "HOST"))
	}
	for _, token := range []string{"", "pcop_guessed"} {
		honest, err := client.New(client.Options{URL: "https://" + api.addr, CA: api.pem, Token: token, Timeout: patience})
		s.Must(err)
		_, err = honest.WhoAmI(v.ctx())
		s.Check(err != nil, "the service answers a client that shows no credential of its own")
		honest.Close()
	}
	right, err := client.New(client.Options{URL: "https://" + api.addr, CA: api.pem, Token: v.tokens["ann"], Timeout: patience})
	s.Must(err)
	me, err := right.WhoAmI(v.ctx())
	s.Check(err == nil && me.Name == "ann", "the client does not reach the service itself: %v", err)
	right.Close()
	old, err := tls.Dial("tcp", api.addr, &tls.Config{InsecureSkipVerify: true, MaxVersion: tls.VersionTLS12})
	if !s.Check(err != nil, "the service speaks TLS 1.2") {
		_ = old.Close()
	}
	v.Counted(v.metric("ann", `status="401"`), "metric portcullis_http_requests_total: requests without a credential, 401")
}

// hookSecret signs what is sent in drills; it is no secret.
const hookSecret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwcGVyc2lzdA=="

// misledWebhooks is T128: a webhook leads to the inside, and an attacker forges what the service sends.
func misledWebhooks(s *drill.Scene) {
	inside := newEndpoint(s, nil)
	defer inside.close()
	secret, err := webhook.ParseSecret(hookSecret)
	s.Must(err)
	guarded := webhook.Addresses{}
	if s.Off(WebhookAddresses) {
		guarded.Allow = []netip.Prefix{netip.MustParsePrefix("0.0.0.0/0"), netip.MustParsePrefix("::/0")}
	}
	send := func(e *endpoint, url string, to webhook.Addresses) error {
		sender, err := webhook.NewSender(webhook.Target{URL: url, Secret: secret, Certificates: &tls.Config{RootCAs: e.roots, MinVersion: tls.VersionTLS13}, Addresses: to})
		if err != nil {
			return err
		}
		return sender.Send(context.Background(), "evt-1", time.Unix(1764259200, 0), []byte(`{"id":"evt-1"}`))
	}

	s.Tried("an operator, who may name where events go, names servers of the service's own machine, by address and by name, and those at which clouds serve credentials")
	port := inside.URL[strings.LastIndex(inside.URL, ":"):]
	for _, at := range []string{"127.0.0.1", "localhost", "[::ffff:127.0.0.1]"} {
		err := send(inside, "https://"+at+port+"/v1/hosts", guarded)
		s.Check(err != nil, "an event is sent to %s", at)
	}
	for _, at := range []string{"169.254.169.254", "[fe80::1]", "[fd00:ec2::254]", "100.100.100.200", "0.0.0.0", "[64:ff9b::7f00:1]"} {
		a, err := netip.ParseAddr(strings.Trim(at, "[]"))
		s.Must(err)
		no := guarded.Check(a)
		if s.Check(no != nil, "an event may be sent to %s", at) {
			s.Reported("error of the delivery: %v", no)
		}
	}
	for _, url := range []string{"http://203.0.113.9/", "file:///etc/shadow", "https://user:word@203.0.113.9/", "gopher://203.0.113.9/"} {
		s.Check(webhook.CheckURL(url) != nil, "the URL %s is taken", url)
	}
	s.Check(inside.opens.Load() == 0, "%d connections were opened to the inside", inside.opens.Load())
	if s.Off(WebhookAddresses) {
		return
	}

	s.Tried("a server that is allowed sends the service on to the inside, and an attacker sends it events of his own")
	requests := make(chan *http.Request, 4)
	bodies := make(chan []byte, 4)
	outside := newEndpoint(s, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(io.LimitReader(r.Body, 1<<16)) // a part is compared, and differs
		requests <- r
		bodies <- body
		http.Redirect(w, r, inside.URL+"/stolen", http.StatusTemporaryRedirect)
	})
	defer outside.close()
	loop := webhook.Addresses{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}
	err = send(outside, outside.URL+"/hook", loop)
	s.Check(err != nil, "a redirect counts as delivered")
	s.Check(inside.opens.Load() == 0 && outside.asked.Load() == 1, "a redirect was followed: %d connections to the inside", inside.opens.Load())
	if err == nil || outside.asked.Load() == 0 {
		return
	}
	r, body := <-requests, <-bodies
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(hookSecret, "whsec_"))
	s.Must(err)
	signed := func(id, at, body string) string {
		mac := hmac.New(sha256.New, key)
		_, _ = io.WriteString(mac, id+"."+at+"."+body) // never fails
		return "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
	}
	id, at := r.Header.Get(webhook.HeaderID), r.Header.Get(webhook.HeaderTimestamp)
	got := r.Header.Get(webhook.HeaderSignature)
	s.Check(got == signed(id, at, string(body)), "what the service sends is not signed with the secret")
	for _, forged := range []string{signed("evt-2", at, string(body)), signed(id, "1764259201", string(body)), signed(id, at, `{"id":"evt-9"}`)} {
		s.Check(got != forged, "the signature of another event is the same")
	}
	s.Stopped("addresses are checked when the connection is opened, a redirect is not followed, and each event is signed with its id and time")
}

// hostileClient is T129: a client sends what is too long, ambiguous, or never ends.
func hostileClient(s *drill.Scene) {
	v := newSite(s, options{credentials: []account{{name: "ann"}}})
	red := v.cluster("ann", "red", "h1", "h5")
	v.VictimOf("h1", "h5", red)
	api := v.listen()
	defer api.stop()
	v.mark()
	auth := "Host: portcullis\r\nAuthorization: Bearer " + v.tokens["ann"] + "\r\n"
	const tenant = `{"name":"smuggled"}`
	post := "POST /v1/tenants HTTP/1.1\r\n" + auth + "Content-Type: application/json\r\n"
	hidden := fmt.Sprintf("%sContent-Length: %d\r\n\r\n%s", post, len(tenant), tenant)
	s.Tried("a client sends bodies and headers without end, a request in the body of another one, two lengths, and JSON that two readers understand differently")
	for _, a := range []struct {
		what, request string
		want          []int // 0: the connection is closed without an answer
	}{
		{"headers of 64 KiB", "GET /v1/hosts HTTP/1.1\r\n" + auth + "X-Fill: " + strings.Repeat("a", 64<<10) + "\r\n\r\n", []int{431, 0}},
		{"a body of 4 MiB", bodyOf(post, `{"name":"`+strings.Repeat("a", 4<<20)), []int{413}},
		{"two lengths", post + fmt.Sprintf("Content-Length: 0\r\nContent-Length: %d\r\n\r\n%s", len(hidden), hidden), []int{400, 0}},
		{"a length and chunks", post + fmt.Sprintf("Transfer-Encoding: chunked\r\nContent-Length: %d\r\n\r\n0\r\n\r\n%s", len(hidden), hidden), []int{400, 413, 422, 0}},
		{"chunks of another name", post + "Transfer-Encoding: xchunked\r\n\r\n" + hidden, []int{400, 501, 0}},
		{"a folded header", "GET /v1/hosts HTTP/1.1\r\n" + auth + "X: a\r\n b\r\nContent-Length : 5\r\n\r\n", []int{400, 0}},
		{"a name twice", bodyOf(post, `{"name":"one","name":"smuggled"}`), []int{400, 422}},
		{"a name in another case", bodyOf(post, `{"Name":"smuggled"}`), []int{400, 422}},
		{"JSON of 10000 levels", bodyOf(post, strings.Repeat("[", 10000)+strings.Repeat("]", 10000)), []int{400, 413, 422}},
		{"text behind the JSON", bodyOf(post, tenant+"{}"), []int{400, 422}},
		{"a path above the root", "GET /v1/../v1/hosts HTTP/1.1\r\n" + auth + "\r\n", []int{301, 307, 308, 400, 404}},
	} {
		status := api.raw(s, a.request)
		ok := false
		for _, w := range a.want {
			ok = ok || w == status
		}
		s.Check(ok, "%s: the service answers %d, want one of %v", a.what, status, a.want)
	}
	_, err := v.admission.Tenancy().Tenant(v.ctx(), "smuggled")
	s.Check(err != nil, "a request that was hidden in another one was carried out")

	s.Tried("a hundred clients each open a connection and send half a request; meanwhile ann works")
	var slow []io.Closer
	for range 100 {
		c, err := tls.Dial("tcp", api.addr, &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS13}) // an attacker does not look at it
		if err != nil {
			continue // it was turned away, which is right
		}
		slow = append(slow, c)
		_, _ = io.WriteString(c, "POST /v1/attest/sessions HTTP/1.1\r\nHost: x\r\n") // a connection that was closed is right, too
	}
	status := api.raw(s, "GET /v1/hosts/h1 HTTP/1.1\r\n"+auth+"Connection: close\r\n\r\n")
	if s.Check(status == 200, "while %d clients send half requests, ann is answered with %d", len(slow), status) {
		s.Stopped("what a client sends is bounded before it is parsed, ambiguous requests are refused, and slow clients keep no other one waiting")
	}
	for _, c := range slow {
		_ = c.Close()
	}
	v.Counted(v.metric("ann", `portcullis_http_requests_total`), "metric portcullis_http_requests_total: what was refused, by status")
	s.Check(v.delivered("h1", "h5", red), "h1 and h5 do not reach each other")
}

func bodyOf(head, body string) string {
	return fmt.Sprintf("%sContent-Length: %d\r\n\r\n%s", head, len(body), body)
}

// raw sends bytes to the API, and returns the status of the first answer; 0 if there is none.
func (d *served) raw(s *drill.Scene, request string) int {
	c := d.dial(s)
	defer c.Close()
	_, _ = io.WriteString(c, request) // a server that refuses early closes the connection
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		return 0
	}
	defer resp.Body.Close()
	return resp.StatusCode
}
