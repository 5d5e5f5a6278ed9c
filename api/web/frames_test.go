package web_test

import (
	"testing"

	"portcullis/api/web/webtest"
)

// BenchmarkMapFrames moves and zooms the map of 10,368 hosts and 1,500 switches in Chromium for some seconds, and reports frames a second beside those
// of an empty page, which is the most that the machine has, and when the page painted first. docs/understand/web.md says how to read them.
func BenchmarkMapFrames(b *testing.B) {
	_, server := served(b, nil, "h1")
	for b.Loop() {
		p := webtest.Open(b, server.URL+"/ui/")
		p.AwaitText("Sign in")
		type measured struct{ FirstMS, Empty, Far, Near, Marked, Longest float64 }
		got := webtest.Value[measured](p, `(async () => {
			const map = await import(document.querySelector('script').src.replace('app.js', 'map.js'));
			const switches = [], trunks = [];
			for (let s = 0; s < 924; s++) switches.push({guid: 's' + s, name: 'spine' + s, hosts: []});
			for (let l = 0; l < 576; l++) {
				switches.push({guid: 'l' + l, name: 'leaf' + l, hosts: Array.from({length: 18}, (_, i) => ({name: 'h' + (l * 18 + i), kind: i % 5}))});
				for (let i = 0; i < 18; i++) trunks.push(['l' + l, 's' + (l * 18 + i) % 924]);
			}
			const plan = map.place(switches, trunks);
			const canvas = document.createElement('canvas');
			[canvas.width, canvas.height] = [1280, 800];
			document.querySelector('main').replaceChildren(canvas);
			const ctx = canvas.getContext('2d');
			const colors = {back: '#fff', text: '#000', line: '#888', raised: '#ddd', bad: '#f00', path: '#00f'};
			const named = ['#111', '#222', '#333', '#444', '#555'];
			const marks = ['cross', 'ring', 'one bar', 'two bars', ''];
			let longest = 0;
			const frame = () => new Promise(requestAnimationFrame);
			const frames = async (draw) => { // frames a second in 3 s
				await frame();
				const began = performance.now();
				let last = began, n = 0;
				while (last - began < 3000) {
					if (draw) draw(n);
					const now = await frame();
					if (draw) longest = Math.max(longest, now - last);
					last = now;
					n++;
				}
				return n * 1000 / (last - began);
			};
			const fit = map.fit(plan, 1280, 800);
			const show = (view, more) => map.draw(ctx, plan, view, {width: 1280, height: 800, colors, chosen: null, colorOf: (h) => named[h.kind], ...more});
			const Empty = await frames(null);
			const Far = await frames((n) => show({...fit, x: fit.x + n % 40}));
			const Marked = await frames((n) => show({...fit, x: fit.x + n % 40}, {markOf: (h) => marks[h.kind]}));
			const leaf = plan.tiles.at(-1);
			const Near = await frames((n) => show({scale: 1, x: 600 - leaf.x + (n % 200) * 4, y: 400 - leaf.y}));
			const FirstMS = performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? NaN;
			return {FirstMS, Empty, Far, Near, Marked, Longest: longest};
		})()`)
		b.ReportMetric(got.FirstMS, "ms-first-paint")
		b.ReportMetric(got.Empty, "fps-empty")
		b.ReportMetric(got.Far, "fps-far")
		b.ReportMetric(got.Marked, "fps-far-marks")
		b.ReportMetric(got.Near, "fps-near")
		b.ReportMetric(got.Longest, "ms-longest-frame")
		if got.Far <= 0 || got.Near <= 0 || got.Empty <= 0 || got.FirstMS <= 0 {
			b.Errorf("nothing was measured: %+v", got)
		}
	}
}
