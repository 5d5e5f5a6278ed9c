// Provider runs OpenID providers of the library zitadel/oidc over HTTPS on this machine, for tests of what verifies their tokens. It
// prints its CA, with the URLs of two providers, as a line of JSON; then it answers each line of standard input with one.
//
//	token N CLIENT  the ID token that provider N makes for a client, after a device authorization that a user approved
//	rotate N        provider N signs with a key of another algorithm from now on, and publishes the earlier one too
//	retire N        provider N publishes only the key that it signs with
//	approve N CODE  a user of provider N approves the device authorization with a user code
//	deny N CODE     a user of provider N denies it
//	life N SECONDS  ID tokens that provider N makes for public clients live so long from now on
//	forget N        provider N knows none of its refresh tokens any more
//	redirect N URI  provider N sends browsers with codes of public clients to this address, too
//
// Each provider has the public client portcullis-cli beside, which may use device authorization, and a code with PKCE and a loopback
// redirect. Whoever opens the login page is the user.
package main

import (
	"bufio"
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/zitadel/oidc/v3/example/server/storage"
	"github.com/zitadel/oidc/v3/pkg/oidc"
	"github.com/zitadel/oidc/v3/pkg/op"
)

// user is one of the example's users.
const user = "id1"

const publicClient = "portcullis-cli"

// key is a signing key, and in a key set its public half.
type key struct {
	id     string
	alg    jose.SignatureAlgorithm
	key    crypto.Signer
	public bool
}

func (k *key) ID() string                                  { return k.id }
func (k *key) SignatureAlgorithm() jose.SignatureAlgorithm { return k.alg }
func (k *key) Algorithm() jose.SignatureAlgorithm          { return k.alg }
func (k *key) Use() string                                 { return "sig" }
func (k *key) Key() any {
	if k.public {
		return k.key.Public()
	}
	return k.key
}

// keeper is the storage of the example with keys that change.
type keeper struct {
	*storage.Storage

	mu   sync.Mutex
	keys []*key // the last one signs
	life time.Duration

	redirects []string        // of public clients
	forgotten map[string]bool // refresh tokens
	given     []string        // refresh tokens
}

// public is a client without a secret.
type public struct {
	*storage.Client
	life      time.Duration
	redirects []string
}

func (*public) ApplicationType() op.ApplicationType { return op.ApplicationTypeNative }
func (*public) AuthMethod() oidc.AuthMethod         { return oidc.AuthMethodNone }
func (*public) AccessTokenType() op.AccessTokenType { return op.AccessTokenTypeJWT }
func (c *public) IDTokenLifetime() time.Duration    { return c.life }
func (c *public) RedirectURIs() []string            { return slices.Concat(c.Client.RedirectURIs(), c.redirects) }
func (*public) GrantTypes() []oidc.GrantType {
	return []oidc.GrantType{oidc.GrantTypeCode, oidc.GrantTypeRefreshToken, oidc.GrantTypeDeviceCode}
}

func (k *keeper) GetClientByClientID(ctx context.Context, id string) (op.Client, error) {
	c, err := k.Storage.GetClientByClientID(ctx, id)
	if client, ok := c.(*storage.Client); ok && id == publicClient {
		k.mu.Lock()
		defer k.mu.Unlock()
		return &public{client, k.life, slices.Clone(k.redirects)}, err
	}
	return c, err
}

// CreateAccessAndRefreshTokens has the tokens of a device authorization belong to its client, as those of a code do. The example has
// them belong to none.
func (k *keeper) CreateAccessAndRefreshTokens(ctx context.Context, r op.TokenRequest, refresh string) (string, string, time.Time, error) {
	if d, ok := r.(*op.DeviceAuthorizationState); ok {
		r = &storage.AuthRequest{ApplicationID: d.ClientID, UserID: d.Subject, Scopes: d.Scopes}
	}
	access, next, ends, err := k.Storage.CreateAccessAndRefreshTokens(ctx, r, refresh)
	k.mu.Lock()
	defer k.mu.Unlock()
	k.given = append(k.given, next)
	return access, next, ends, err
}

func (k *keeper) TokenRequestByRefreshToken(ctx context.Context, token string) (op.RefreshTokenRequest, error) {
	k.mu.Lock()
	forgotten := k.forgotten[token]
	k.mu.Unlock()
	if forgotten {
		return nil, oidc.ErrInvalidGrant()
	}
	return k.Storage.TokenRequestByRefreshToken(ctx, token)
}

func (k *keeper) forget() {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, token := range k.given {
		k.forgotten[token] = true
	}
}

func (k *keeper) SigningKey(context.Context) (op.SigningKey, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.keys[len(k.keys)-1], nil
}

func (k *keeper) SignatureAlgorithms(context.Context) ([]jose.SignatureAlgorithm, error) {
	return []jose.SignatureAlgorithm{jose.RS256, jose.ES256}, nil
}

func (k *keeper) KeySet(context.Context) (out []op.Key, _ error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, one := range k.keys {
		out = append(out, &key{one.id, one.alg, one.key, true})
	}
	return out, nil
}

func (k *keeper) rotate() {
	made, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(err)
	k.mu.Lock()
	defer k.mu.Unlock()
	k.keys = append(k.keys, &key{id: rand.Text(), alg: jose.ES256, key: made})
}

func (k *keeper) retire() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.keys = k.keys[len(k.keys)-1:]
}

// provider is one of them, and its HTTPS server.
type provider struct {
	keeper *keeper
	server *httptest.Server
}

func start() *provider {
	first, err := rsa.GenerateKey(rand.Reader, 2048)
	must(err)
	var handler http.Handler
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { handler.ServeHTTP(w, r) }))
	k := &keeper{
		Storage: storage.NewStorageWithClients(storage.NewUserStore(server.URL), map[string]*storage.Client{
			publicClient: storage.NativeClient(publicClient, "http://127.0.0.1/callback"),
			"portcullis": storage.DeviceClient("portcullis", "secret"), "billing": storage.DeviceClient("billing", "secret"),
		}),
		keys: []*key{{id: rand.Text(), alg: jose.RS256, key: first}},
		life: time.Hour, forgotten: map[string]bool{},
	}
	config := &op.Config{CodeMethodS256: true, GrantTypeRefreshToken: true, DeviceAuthorization: op.DeviceAuthorizationConfig{
		Lifetime: time.Minute, PollInterval: time.Second, UserFormPath: "/device", UserCode: op.UserCodeBase20,
	}}
	_, err = rand.Read(config.CryptoKey[:])
	must(err)
	provides, err := op.NewProvider(config, k, op.StaticIssuer(server.URL))
	must(err)
	mux := http.NewServeMux()
	mux.Handle("/", provides)
	mux.HandleFunc("/login/username", func(w http.ResponseWriter, r *http.Request) {
		id := r.FormValue("authRequestID")
		if err := k.CheckUsernamePassword("test-user@127.0.0.1", "verysecure", id); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		http.Redirect(w, r, server.URL+"/authorize/callback?id="+url.QueryEscape(id), http.StatusFound)
	})
	handler = mux
	return &provider{k, server}
}

// ask posts a form as a client, and reads the answer into out.
func (p *provider) ask(path, client string, form url.Values, out any) {
	r, err := http.NewRequestWithContext(context.Background(), http.MethodPost, p.server.URL+path, strings.NewReader(form.Encode()))
	must(err)
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.SetBasicAuth(client, "secret")
	resp, err := p.server.Client().Do(r)
	must(err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	must(err)
	if resp.StatusCode != http.StatusOK {
		must(fmt.Errorf("%s: %s: %s", path, resp.Status, body))
	}
	must(json.Unmarshal(body, out))
}

// token has the user approve a client, and returns the ID token that this client gets.
func (p *provider) token(client string) string {
	var device struct {
		Device string `json:"device_code"`
		User   string `json:"user_code"`
	}
	p.ask("/device_authorization", client, url.Values{"scope": {"openid"}}, &device)
	must(p.keeper.CompleteDeviceAuthorization(context.Background(), device.User, user))
	var answer struct {
		ID string `json:"id_token"`
	}
	p.ask("/oauth/token", client, url.Values{
		"grant_type": {"urn:ietf:params:oauth:grant-type:device_code"}, "device_code": {device.Device},
	}, &answer)
	return answer.ID
}

func main() {
	slog.SetDefault(slog.New(slog.DiscardHandler))
	all := []*provider{start(), start()}
	var hello struct {
		CA   string
		URLs []string
	}
	for _, p := range all {
		hello.CA += string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: p.server.Certificate().Raw}))
		hello.URLs = append(hello.URLs, p.server.URL)
	}
	must(json.NewEncoder(os.Stdout).Encode(hello))
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		var order, client string
		var n int
		_, err := fmt.Sscan(lines.Text(), &order, &n, &client)
		if client == "" && order != "token" {
			err = nil
		}
		must(err)
		p := all[n]
		switch order {
		case "token":
			fmt.Println(p.token(client))
		case "rotate":
			p.keeper.rotate()
			fmt.Println("rotated")
		case "approve":
			must(p.keeper.CompleteDeviceAuthorization(context.Background(), client, user))
			fmt.Println("approved")
		case "deny":
			must(p.keeper.DenyDeviceAuthorization(context.Background(), client))
			fmt.Println("denied")
		case "life":
			seconds, err := strconv.Atoi(client)
			must(err)
			p.keeper.mu.Lock()
			p.keeper.life = time.Duration(seconds) * time.Second
			p.keeper.mu.Unlock()
			fmt.Println("set")
		case "redirect":
			p.keeper.mu.Lock()
			p.keeper.redirects = append(p.keeper.redirects, client)
			p.keeper.mu.Unlock()
			fmt.Println("added")
		case "forget":
			p.keeper.forget()
			fmt.Println("forgotten")
		case "retire":
			p.keeper.retire()
			fmt.Println("retired")
		default:
			must(fmt.Errorf("no such order: %q", order))
		}
	}
}

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
