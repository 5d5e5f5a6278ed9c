package web_test

import (
	"context"
	"log/slog"
	"strings"
	"testing"

	"portcullis/api"
	"portcullis/api/apitest"
	"portcullis/api/audit"
	"portcullis/api/events/feed"
	"portcullis/api/hostrecord"
	v1 "portcullis/api/v1"
	"portcullis/api/web/webtest"
)

// hostile is text of a host, or of an operator that labels racks, that would run a program in a page that took it for markup.
const hostile = `<img src=x onerror="document.title='taken'"><b>x</b>`

// served starts the real API, with its pages, over hosts that have software keys.
func served(t *testing.T, hosts ...string) (*apitest.Site, *apitest.Server) {
	t.Helper()
	site := apitest.NewSite(t)
	file := site.Inventory(hosts...)
	site.Import(strings.ReplaceAll(file, "rack: r0", "rack: '"+strings.ReplaceAll(hostile, "'", "''")+"'"))
	return site, apitest.Start(t, site, func(o *api.Options) {
		o.Pages = true
		o.Events, o.Audit = feed.New(site.Store, slog.New(slog.DiscardHandler)), audit.Book{Store: site.Store}
		o.Ready = func(context.Context) []v1.Condition {
			return []v1.Condition{{Name: "store", OK: true}, {Name: "sm", OK: true, Detail: hostile}}
		}
	})
}

// TestPages is what an operator does with the pages, in Chromium.
func TestPages(t *testing.T) {
	t.Parallel()
	site, server := served(t, "h1", "h2")
	site.Join("h2")
	site.Edit("h2", func(r *hostrecord.Record) { r.Denial = &v1.Denial{Code: "guid-conflict", Detail: hostile} })
	// This service has no Subnet Manager and locks no adapter, and says so.
	p := webtest.Open(t, server.URL+"/", "/v1/sm", "/v1/fabric/overview", "/v1/locks")

	p.AwaitText("Sign in")
	p.Look("sign-in")
	p.SignIn(server.Viewer)
	p.AwaitText("vic viewer")
	p.AwaitText("2 in inventory.")
	p.AwaitText(hostile) // of readiness
	p.Look("overview")

	p.Show("#/clusters", "Tenants")
	p.AwaitText("train")
	p.Look("tenants")

	p.Show("#/hosts", "Hosts")
	p.AwaitText("Page 1, 2 hosts")
	p.AwaitText(hostile) // of the rack
	p.Look("hosts")
	site.Admit("h1")
	p.Await(`document.querySelector('tr[data-key=h1]').innerText.includes('admitted')`)
	p.Await(`document.querySelector('#said').textContent === 'h1 is admitted'`)

	p.Type(`input[data-key=prefix]`, "h2\r")
	p.AwaitText("Page 1, 1 hosts")
	p.Click(`tr[data-key=h2] a`)
	p.AwaitText("Host h2")
	p.AwaitText("Held by attested")
	p.AwaitText("guid-conflict: " + hostile)
	p.AwaitText("host.assign") // of the audit log
	p.Look("host")
	site.Place("h2")
	site.Hand("h2")
	site.Program()
	p.AwaitText("Every condition of admission is met.")
	p.Await(`document.querySelector('.state.here').textContent === 'admitted'`)

	if title := webtest.Value[string](p, "document.title"); title != "Host h2 · Portcullis" {
		t.Errorf("the title of the page is %q", title)
	}
	p.Quiet()
}

// TestToken: the credential is in the memory of the page and nowhere else.
func TestToken(t *testing.T) {
	t.Parallel()
	_, server := served(t, "h1")
	p := webtest.Open(t, server.URL+"/ui/", "/v1/whoami", "/v1/sm", "/v1/fabric/overview")
	p.Type("#token", "pc_wrong\r")
	p.AwaitText("the token that was sent is not known here")
	p.SignIn(server.Viewer)
	p.AwaitText("1 in inventory.")
	kept := webtest.Value[string](p, `[document.cookie, JSON.stringify(localStorage), JSON.stringify(sessionStorage), location.href,
		document.documentElement.outerHTML, ...performance.getEntries().map((e) => e.name)].join(' ')`)
	if strings.Contains(kept, server.Viewer) {
		t.Error("the page keeps the token where others can read it")
	}
	p.Reload()
	p.AwaitText("Sign in")
	p.SignIn(server.Viewer)
	p.Click(`#who button`)
	p.AwaitText("Sign in")
	p.Await(`document.querySelector('#who').hidden`)
	p.Quiet()
}

// TestPolicy: the browser refuses what the policy forbids, also if a page of ours had the mistake.
func TestPolicy(t *testing.T) {
	t.Parallel()
	_, server := served(t, "h1")
	p := webtest.Open(t, server.URL+"/ui/")
	p.AwaitText("Sign in")
	for what, program := range map[string]string{
		"markup":          `try { document.querySelector('main').innerHTML = '<b>x</b>'; false } catch (e) { e instanceof TypeError }`,
		"eval":            `new Promise((done) => setTimeout(() => { try { window.eval('1'); done(false); } catch { done(true); } }))`,
		"another service": `fetch('https://127.0.0.1:1/').then(() => false, () => performance.getEntriesByType('resource').every((e) => !e.name.includes(':1/')))`,
	} {
		if !webtest.Value[bool](p, program) {
			t.Errorf("%s is not refused", what)
		}
	}
}
