// Package webtest looks at the pages of the service with a real browser, Debian's Chromium, and has axe-core judge them.
package webtest

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"portcullis/packaging/testenv"
)

// patience bounds each wait for a page.
const patience = 30 * time.Second

// Page is a page in a browser of its own.
type Page struct {
	t       testing.TB
	ctx     context.Context
	refused []string

	mu       sync.Mutex
	problems []string
}

// Open starts a browser and opens a page. Its window is as that of a desk. refused are paths whose refusals the console may have:
// a browser writes each into it.
func Open(t testing.TB, address string, refused ...string) *Page {
	t.Helper()
	options := append(slices.Clone(chromedp.DefaultExecAllocatorOptions[:]),
		chromedp.ExecPath(testenv.Program(t, "chromium")), chromedp.UserDataDir(t.TempDir()),
		chromedp.WindowSize(1280, 900), chromedp.IgnoreCertErrors,
	)
	if os.Geteuid() == 0 {
		options = append(options, chromedp.NoSandbox) // Chromium refuses to run as root with it
	}
	// Not the test's own context: that ends before the browser is asked to end.
	ctx, cancel := chromedp.NewExecAllocator(context.Background(), options...)
	t.Cleanup(cancel)
	p := &Page{t: t, refused: refused}
	p.ctx, cancel = chromedp.NewContext(ctx)
	t.Cleanup(cancel)
	t.Cleanup(func() { _ = chromedp.Cancel(p.ctx) }) // so that the browser ends before its directory is removed
	if err := chromedp.Listen(p.ctx, p.note); err != nil {
		t.Fatalf("start the browser: %v", err)
	}
	p.do(chromedp.Navigate(address))
	return p
}

// note keeps what the console of the page has.
func (p *Page) note(event any) {
	problem := ""
	switch e := event.(type) {
	case *runtime.EventExceptionThrown:
		text, _ := json.Marshal(e.ExceptionDetails)
		problem = "an exception: " + string(text)
	case *runtime.EventConsoleAPICalled:
		if e.Type != runtime.ConsoleAPICalledTypeError && e.Type != runtime.ConsoleAPICalledTypeWarning && e.Type != runtime.ConsoleAPICalledTypeAssert {
			return
		}
		said, _ := json.Marshal(e.Args)
		problem = fmt.Sprintf("%s: %s", e.Type, said)
	case *log.EventEntryAdded:
		at, err := url.Parse(e.Entry.URL)
		if err == nil && e.Entry.Source == log.EntrySourceNetwork && slices.Contains(p.refused, at.Path) {
			return
		}
		problem = fmt.Sprintf("%s, %s: %s %s", e.Entry.Source, e.Entry.Level, e.Entry.Text, e.Entry.URL)
	default:
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.problems = append(p.problems, problem)
}

// Downloads has the browser keep what the page downloads, and returns what waits for a file of some name and reads it.
func (p *Page) Downloads() func(name string) []byte {
	p.t.Helper()
	dir := p.t.TempDir()
	where := browser.SetDownloadBehaviorParams{Behavior: browser.SetDownloadBehaviorBehaviorAllow, DownloadPath: dir}
	if _, err := chromedp.CallBrowser(p.ctx, browser.SetDownloadBehavior, where); err != nil {
		p.t.Fatalf("have the browser keep downloads: %v", err)
	}
	return func(name string) []byte {
		p.t.Helper()
		tick := time.NewTicker(50 * time.Millisecond)
		defer tick.Stop()
		late := time.After(patience)
		for {
			// The browser reserves the name with an empty file, and renames the complete one to it.
			if found, err := filepath.Glob(filepath.Join(dir, name)); err == nil && len(found) == 1 {
				data, err := os.ReadFile(found[0])
				if err != nil {
					p.t.Fatal(err)
				}
				if len(data) > 0 {
					return data
				}
			}
			select {
			case <-tick.C:
			case <-late:
				p.t.Fatalf("the page did not download %s", name)
			}
		}
	}
}

// Quiet reports what the console has that it should not have.
func (p *Page) Quiet() {
	p.t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, problem := range p.problems {
		p.t.Errorf("the console has: %s", problem)
	}
	p.problems = nil
}

func (p *Page) do(steps ...chromedp.Action[chromedp.Void]) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	if err := chromedp.Do(ctx, steps...); err != nil {
		p.t.Fatalf("browser: %v", err)
	}
}

// Type types into what a selector finds; "\r" is the key Enter.
func (p *Page) Type(selector, text string) {
	p.t.Helper()
	p.do(chromedp.WaitVisible(selector), chromedp.SendKeys(selector, text))
}

// Click clicks on what a selector finds.
func (p *Page) Click(selector string) {
	p.t.Helper()
	p.do(chromedp.WaitVisible(selector), chromedp.Click(selector))
}

// Reload loads the page again.
func (p *Page) Reload() { p.t.Helper(); p.do(chromedp.Reload()) }

// Value evaluates an expression of JavaScript in a page, and waits for what it promises.
func Value[T any](p *Page, expression string) T {
	p.t.Helper()
	v, err := chromedp.Run(p.ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	if err != nil {
		p.t.Fatalf("evaluate in the page: %v", err)
	}
	return v
}

// Await waits until an expression of JavaScript is true in the page.
func (p *Page) Await(expression string) {
	p.t.Helper()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	late := time.After(patience)
	for {
		// The page may be on its way to another one, so that there is nothing to ask yet.
		holds, err := chromedp.Run(p.ctx, chromedp.Evaluate[bool](expression))
		if err == nil && holds {
			return
		}
		select {
		case <-tick.C:
		case <-late:
			text, _ := chromedp.Run(p.ctx, chromedp.Evaluate[string]("document.body.innerText"))
			p.mu.Lock()
			defer p.mu.Unlock()
			p.t.Fatalf("%s did not come about (%v); the console has %q, the page\n%s", expression, err, p.problems, text)
		}
	}
}

// AwaitText waits until the page shows a text.
func (p *Page) AwaitText(text string) {
	p.t.Helper()
	quoted, _ := json.Marshal(text)
	p.Await("document.body.innerText.includes(" + string(quoted) + ")")
}

// SignIn enters a token.
func (p *Page) SignIn(token string) {
	p.t.Helper()
	p.Type("#token", token+"\r")
	p.do(chromedp.WaitVisible("#who"))
}

// Show goes to a page of the service by its address after the number sign, and waits until its heading is there.
func (p *Page) Show(hash, heading string) {
	p.t.Helper()
	quoted, _ := json.Marshal([]string{hash, heading})
	Value[string](p, "location.hash = "+string(quoted)+"[0]")
	p.Await("document.activeElement.textContent === " + string(quoted) + "[1]")
}

// Narrow makes the window as wide as that of a telephone.
func (p *Page) Narrow() { p.t.Helper(); p.size(390, 844) }

// Wide makes the window as wide as that of a desk.
func (p *Page) Wide() { p.t.Helper(); p.size(1280, 900) }

func (p *Page) size(width, height int64) {
	p.t.Helper()
	p.do(chromedp.EmulateViewport(width, height))
}

// Dark has the page take dark or light colors.
func (p *Page) Dark(on bool) {
	p.t.Helper()
	scheme := "light"
	if on {
		scheme = "dark"
	}
	media := emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}}
	if _, err := chromedp.Call(p.ctx, emulation.SetEmulatedMedia, media); err != nil {
		p.t.Fatalf("have the page %s: %v", scheme, err)
	}
}

// Fits reports a page that is wider than its window.
func (p *Page) Fits() {
	p.t.Helper()
	width := Value[struct{ Page, Window int }](p, "({Page: document.documentElement.scrollWidth, Window: document.documentElement.clientWidth})")
	if width.Page > width.Window {
		p.t.Errorf("the page is %d pixels wide in a window of %d", width.Page, width.Window)
	}
}

// Picture writes what the window shows into a PNG file.
func (p *Page) Picture(file string) {
	p.t.Helper()
	png, err := chromedp.Run(p.ctx, chromedp.CaptureScreenshot())
	if err == nil {
		err = os.WriteFile(file, png, 0o644)
	}
	if err != nil {
		p.t.Fatalf("take a picture: %v", err)
	}
}

var pictures = flag.String("web.pictures", "", "directory to write pictures of pages into")

// Look judges the page in each form that it has: light and dark, wide and narrow.
func (p *Page) Look(what string) {
	p.t.Helper()
	for _, form := range []struct {
		name         string
		dark, narrow bool
	}{{"", false, false}, {"-dark", true, false}, {"-narrow-dark", true, true}, {"-narrow", false, true}} {
		p.Dark(form.dark)
		if form.narrow {
			p.Narrow()
		} else {
			p.Wide()
		}
		if *pictures != "" {
			p.Picture(filepath.Join(*pictures, strings.ReplaceAll(what, " ", "-")+form.name+".png"))
		}
		p.Fits()
		p.Axe(what + form.name)
	}
	p.Dark(false)
	p.Wide()
}

// finding is what axe-core finds.
type finding struct {
	ID     string `json:"id"`
	Impact string `json:"impact"`
	Help   string `json:"help"`
	Nodes  []struct {
		HTML           string `json:"html"`
		FailureSummary string `json:"failureSummary"`
	} `json:"nodes"`
}

// Axe has axe-core judge the page as it is, by the rules of WCAG 2.2 up to AA and its best practices.
func (p *Page) Axe(what string) {
	p.t.Helper()
	if !Value[bool](p, "typeof axe === 'object'") {
		Value[bool](p, axe(p.t)+"; true")
	}
	found := Value[[]finding](p, "axe.run(document, {resultTypes: ['violations']}).then((r) => r.violations)")
	for _, f := range found {
		for _, n := range f.Nodes {
			p.t.Errorf("%s: axe finds %s (%s): %s\n%s\n%s", what, f.ID, f.Impact, f.Help, n.HTML, n.FailureSummary)
		}
	}
}

// axe returns the program of axe-core, which packaging/setup.sh fetches.
func axe(t testing.TB) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(root(t), "packaging", "web", ".fetched", "node_modules", "axe-core", "axe.min.js"))
	if err != nil {
		testenv.Need(t, fmt.Errorf("axe-core is not there: run \"packaging/setup.sh web\": %w", err))
	}
	return string(data)
}

// root returns the directory of the sources.
func root(t testing.TB) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil || dir == filepath.Dir(dir) {
			return dir
		}
		dir = filepath.Dir(dir)
	}
}
