// The fabric as a map: switches in rows, the ports of hosts below their leaf, colored by phase, tenant, health, proof,
// load, or how they differ from what is declared.

import {all, get, repeat} from './api.js';
import {declared} from './declared.js';
import {el, link, moment, refusal, section, svg, to} from './dom.js';
import {load} from './load.js';
import * as map from './map.js';
import {past} from './past.js';
import {path} from './path.js';
import {phase, phases} from './phases.js';
import {proof} from './proof.js';

export const title = 'Fabric';

const unknown = '#8a94a3';
const phaseColors = {quarantined: unknown, awaiting: '#c99700', verified: '#2f80d0', granting: '#7a5bd0', admitted: '#23915a', releasing: '#d0632f'};
const healthColors = {'in order': '#23915a', 'not active': '#c99700', problem: '#d03b2f'};

// tenantColor is a color of a tenant's own, as far as there are enough.
function tenantColor(name) {
  let sum = 0;
  for (const c of name) sum = (sum * 31 + c.codePointAt(0)) % 3600;
  return `hsl(${sum / 10} 60% 50%)`;
}

const healthOf = (h) => (h.problem ? 'problem' : h.state === 'Active' ? 'in order' : 'not active');

// unjoined is the phase of a host that has none.
const unjoined = (h) => (h.unknown ? 'not known' : 'in no inventory');

// waysOf returns the ways to color a host: its value, and the color of a value. Some ask the service for more, mark values by a
// shape, say in words what they show, and say how switches and the lines between them are drawn.
const waysOf = (signal) => ({
  phase: {order: phases, of: (h) => h.phase || unjoined(h), color: (v) => phaseColors[v] || unknown},
  tenant: {of: (h) => h.tenant || (h.unknown ? 'not known' : 'none'), color: (v) => (v === 'none' || v === 'not known' ? unknown : tenantColor(v))},
  health: {of: healthOf, color: (v) => healthColors[v]},
  proof: proof(signal),
  load: load(signal),
  declared: declared(signal),
});

// askEvery is after how long a way asks again.
const askEvery = 30000;

// sign draws the shape of a mark in the legend.
function sign(mark) {
  const bars = ['one bar', 'two bars', 'three bars'].indexOf(mark) + 1;
  if (bars) return svg('path', {class: 'bars', d: [2.5, 5, 7.5].slice(0, bars).map((x) => `M${x} 2V8`).join('')});
  if (mark === 'cross') return svg('path', {class: 'cross', d: 'M2 2L8 8M8 2L2 8'});
  return mark === 'ring' ? svg('circle', {class: 'ring', cx: 5, cy: 5, r: 2.5}) : '';
}

function themed() {
  const of = getComputedStyle(document.documentElement);
  const color = (name) => of.getPropertyValue(`--${name}`).trim();
  return {back: color('back'), text: color('text'), line: color('soft'), raised: color('line'), bad: color('badback'), path: color('link')};
}

// outline asks for switches, links between them, and ports of hosts.
async function outline(signal) {
  const nodes = new Map();
  await all('/v1/fabric/nodes', {type: 'switch'}, signal, (items) => {
    for (const n of items) nodes.set(n.guid, {guid: n.guid, name: n.name, problem: n.problem, hosts: []});
  });
  const pairs = new Map();
  await all('/v1/fabric/links', {trunks: true}, signal, (items) => {
    for (const l of items) pairs.set(`${l.a.node_guid} ${l.b.node_guid}`, [l.a.node_guid, l.b.node_guid]);
  });
  await all('/v1/fabric/ports', {type: 'CA'}, signal, (items) => {
    for (const p of items) {
      const [guid] = (p.place || '').split('/');
      nodes.get(guid)?.hosts.push({host: p.host, name: p.host || p.name, port: p.port, place: p.place, state: p.state, problem: p.problem});
    }
  });
  return {switches: [...nodes.values()], trunks: [...pairs.values()]};
}

// recorded are the ways that the past has.
const recorded = ['phase', 'tenant', 'health', 'proof'];

// outlineOf makes switches, links and ports of hosts of an answer about the past.
function outlineOf(then) {
  const nodes = new Map(then.switches.map((s) => [s.guid, {...s, hosts: []}]));
  for (const p of then.ports) {
    nodes.get(p.place.split('/')[0])?.hosts.push({
      host: p.host, name: p.host || p.name, port: p.port, place: p.place, state: p.state, problem: p.problem,
      phase: p.phase || '', tenant: p.tenant || '', unknown: Boolean(then.hosts_why),
    });
  }
  return {switches: [...nodes.values()], trunks: then.trunks.map((t) => [t.a, t.b])};
}

// show fills the page. The address may name a switch port to show, as at, and a way to color.
export function show({main, signal, query}) {
  const canvas = el('canvas', {class: 'map', tabindex: '0', role: 'img', 'aria-label': 'Map of the fabric', 'aria-describedby': 'map-keys'});
  const ctx = canvas.getContext('2d');
  const about = el('p', {}, 'Asking…');
  const wrong = el('div');
  const legend = el('ul', {class: 'legend'});
  const said = el('div', {class: 'about'}); // of the way to color
  const ways = waysOf(signal);
  const chosenText = el('div', {role: 'status', class: 'chosen'});
  const way = el('select', {}, Object.keys(ways).map((w) => el('option', {value: w, selected: query.get('color') === w}, w)));
  const search = el('input', {type: 'search', autocomplete: 'off', spellcheck: 'false'});
  const form = el('form', {class: 'filters', role: 'search', 'aria-label': 'Map'}, el('label', {}, 'Host or switch', search),
    el('button', {type: 'submit'}, 'Find'), el('label', {}, 'Color', way));
  const button = (name, action) => {
    const b = el('button', {type: 'button'}, name);
    b.addEventListener('click', action);
    form.append(b);
  };
  let hops = []; // of the ways that are drawn
  const between = path(signal, (ways) => { hops = ways; redraw(); });
  let then = null; // the past that is shown; null: the present
  const time = past(signal, travel);
  const box = el('div', {class: 'mapbox'}, canvas);
  main.append(form, between.form, time.said, wrong, about, el('div', {class: 'beside'}, box, between.shown), time.node, legend, said, chosenText,
    el('p', {id: 'map-keys', class: 'none'}, 'Drag to move, turn the wheel to zoom. On the keyboard: arrows, plus, minus, 0 for all. Find shows a host or switch in words.'));

  let plan = null;
  let view = null;
  let chosen = null;
  let waiting = false;
  let looks = null; // of the trunks, where the way has some
  let drawn = null; // the plan, with the lines that the way adds
  let target = null; // what the view goes to
  let asks = query.get('at'); // the switch port that the address names

  function redraw() {
    if (waiting || !plan) return;
    waiting = true;
    requestAnimationFrame(() => {
      waiting = false;
      if (signal.aborted) return;
      const dots = window.devicePixelRatio || 1;
      const [width, height] = [Math.round(canvas.clientWidth * dots), Math.round(canvas.clientHeight * dots)];
      if (canvas.width !== width || canvas.height !== height) {
        canvas.width = width;
        canvas.height = height;
        view = null;
      }
      view ||= map.fit(plan, width, height);
      if (target) {
        view = closeTo(target, view);
        target = null;
      }
      const w = ways[way.value];
      map.draw(ctx, drawn || plan, view, {
        width, height, colors: themed(), chosen, paths: hops.map((h) => map.course(plan, h)), colorOf: (h) => w.color(w.of(h)),
        markOf: w.mark ? (h) => w.mark(w.of(h)) : undefined, leafOf: w.leaf, looks,
      });
    });
  }

  function zoom(by, x = canvas.width / 2, y = canvas.height / 2) {
    if (!view) return;
    const scale = Math.min(Math.max(view.scale * by, 0.02), 12);
    view = {scale, x: x - ((x - view.x) * scale) / view.scale, y: y - ((y - view.y) * scale) / view.scale};
    redraw();
  }

  function move(x, y) {
    if (!view) return;
    view = {...view, x: view.x + x, y: view.y + y};
    redraw();
  }

  function describe() {
    if (!chosen) {
      chosenText.replaceChildren();
      return;
    }
    const {node} = chosen.tile;
    const h = node.hosts[chosen.host];
    const counts = new Map();
    for (const one of node.hosts) counts.set(ways[way.value].of(one), (counts.get(ways[way.value].of(one)) || 0) + 1);
    chosenText.replaceChildren(section('Chosen',
      h ? el('p', {}, h.host ? link(to('hosts', h.host), h.host) : h.name, `, port ${h.port}, at `, link(to('ports', h.place), `${node.name}/${h.place.split('/')[1]}`), ' ',
        h.phase ? phase(h.phase) : unjoined(h), h.tenant ? ` tenant ${h.tenant}` : '', `, ${h.state}`, h.problem ? `: ${h.problem}` : '',
        ways[way.value].words ? `; ${ways[way.value].words(h)}` : '') : '',
      el('p', {}, `Switch ${node.name}, ${node.hosts.length} ports of hosts`, counts.size ? `: ${[...counts].map(([v, n]) => `${n} ${v}`).join(', ')}` : '', node.problem ? `. ${node.problem}` : ''),
      ways[way.value].wordsOf ? el('p', {}, ways[way.value].wordsOf(node)) : ''));
  }

  function explain() {
    const w = ways[way.value];
    const counts = new Map((w.order || []).map((v) => [v, 0]));
    for (const t of plan.tiles) for (const h of t.node.hosts) counts.set(w.of(h), (counts.get(w.of(h)) || 0) + 1);
    legend.replaceChildren(...[...counts].sort((a, b) => b[1] - a[1]).slice(0, 24).map(([v, n]) => el('li', {},
      svg('svg', {viewBox: '0 0 10 10', width: 14, height: 14, 'aria-hidden': 'true'}, svg('rect', {width: 10, height: 10, fill: w.color(v)}), sign(w.mark?.(v))), ` ${v}: ${n}`)));
    const there = new Set(plan.trunks.map((ends) => [...ends].sort().join(' ')));
    drawn = {...plan, trunks: [...plan.trunks, ...(w.lines?.() || []).filter((ends) => !there.has([...ends].sort().join(' ')))]};
    looks = w.trunk ? drawn.trunks.map(([a, b]) => w.trunk(a, b)) : null;
    const text = w.said ? [w.said()].flat() : [];
    if (text.length !== said.childNodes.length || text.some((n, i) => n !== said.childNodes[i])) said.replaceChildren(...text); // focus stays
    const ports = plan.tiles.reduce((sum, t) => sum + t.node.hosts.length, 0);
    const words = `${plan.tiles.length} switches, ${ports} ports of hosts, ${plan.trunks.length} pairs of switches with links`;
    about.textContent = then && !then.known ? 'Nothing is known of this time.' : `${words}.${then?.hosts_why ? ` Phases and tenants are not known: ${then.hosts_why}.` : ''}`;
    canvas.setAttribute('aria-label', `Map of the fabric${then ? `, as it was at ${moment(then.at)}` : ''}: ${words}`);
  }

  function choose(found) {
    chosen = found;
    describe();
    redraw();
  }

  function find() {
    const text = search.value.trim().toLowerCase();
    if (!text || !plan || !view) return;
    let found = null;
    for (const exact of [true, false]) {
      const fits = (name) => (exact ? name.toLowerCase() === text : name.toLowerCase().startsWith(text));
      for (const t of plan.tiles) {
        const host = t.node.hosts.findIndex((h) => fits(h.name));
        if (host >= 0 || fits(t.node.name)) found ||= {tile: t, host};
      }
      if (found) break;
    }
    choose(found);
    if (!found) {
      chosenText.replaceChildren(el('p', {}, 'The fabric shows no host and no switch of that name.'));
      return;
    }
    target = found;
    redraw();
  }

  // closeTo is a view with a host or a switch in its middle.
  function closeTo(found, from) {
    const scale = Math.max(from.scale, 2);
    const c = found.host >= 0 ? map.cell(found.tile, found.host) : {x: found.tile.x + found.tile.width / 2, y: found.tile.y + map.tile.head / 2, size: 0};
    return {scale, x: canvas.width / 2 - (c.x + c.size / 2) * scale, y: canvas.height / 2 - (c.y + c.size / 2) * scale};
  }

  // showPlace chooses the switch port that the address names.
  function showPlace() {
    if (!asks) return;
    const place = asks;
    asks = '';
    const t = plan.of.get(place.split('/')[0]);
    if (!t) {
      chosenText.replaceChildren(el('p', {}, `The fabric shows no switch port ${place}.`));
      return;
    }
    target = {tile: t, host: t.node.hosts.findIndex((h) => h.place === place)};
    choose(target);
  }

  form.addEventListener('submit', (e) => { e.preventDefault(); find(); });
  const renew = () => { if (plan) { explain(); describe(); redraw(); } };
  way.addEventListener('change', () => {
    renew();
    asked = 0;
    more().then(renew, failed);
  });
  button('Zoom in', () => zoom(1.5));
  button('Zoom out', () => zoom(1 / 1.5));
  button('Show all', () => { view = null; redraw(); });

  const dots = () => canvas.width / canvas.clientWidth;
  const point = (e) => {
    const box = canvas.getBoundingClientRect();
    return [(e.clientX - box.left) * dots(), (e.clientY - box.top) * dots()];
  };
  canvas.addEventListener('wheel', (e) => { e.preventDefault(); zoom(e.deltaY < 0 ? 1.2 : 1 / 1.2, ...point(e)); }, {passive: false});
  let held = null;
  canvas.addEventListener('pointerdown', (e) => { held = {from: point(e), last: point(e)}; canvas.setPointerCapture(e.pointerId); });
  canvas.addEventListener('pointermove', (e) => {
    if (!held) return;
    const [x, y] = point(e);
    move(x - held.last[0], y - held.last[1]);
    held.last = [x, y];
  });
  canvas.addEventListener('pointerup', (e) => {
    const [x, y] = point(e);
    if (held && plan && view && Math.hypot(x - held.from[0], y - held.from[1]) < 5) choose(map.at(plan, (x - view.x) / view.scale, (y - view.y) / view.scale));
    held = null;
  });
  const steps = {ArrowLeft: [60, 0], ArrowRight: [-60, 0], ArrowUp: [0, 60], ArrowDown: [0, -60]};
  canvas.addEventListener('keydown', (e) => {
    if (steps[e.key]) move(...steps[e.key]);
    else if (e.key === '+') zoom(1.5);
    else if (e.key === '-') zoom(1 / 1.5);
    else if (e.key === '0') { view = null; redraw(); } else return;
    e.preventDefault();
  });
  const sized = new ResizeObserver(redraw);
  sized.observe(canvas);
  const dark = matchMedia('(prefers-color-scheme: dark)');
  dark.addEventListener('change', redraw);
  signal.addEventListener('abort', () => { sized.disconnect(); dark.removeEventListener('change', redraw); });

  const known = new Map(); // hosts of the inventory
  function join() {
    for (const t of plan.tiles) for (const h of t.node.hosts) Object.assign(h, known.get(h.host) || {phase: '', tenant: ''});
    explain();
    describe();
    redraw();
  }
  const failed = (err) => {
    if (signal.aborted) return;
    wrong.replaceChildren(...(err ? [refusal(err)] : []));
    if (err) renew(); // what a way knows may be too old now
  };
  let asked = 0; // when the way asked last
  async function more() {
    const w = ways[way.value];
    if (then || !w.ask || performance.now() - asked < askEvery && asked) return;
    asked = performance.now();
    await w.ask();
  }
  let shape = '';
  let turn = 0;
  // lay has the map be of other switches, and keeps what is chosen.
  function lay({switches, trunks}) {
    const was = chosen && [chosen.tile.node.guid, chosen.tile.node.hosts[chosen.host]?.place];
    plan = map.place(switches, trunks);
    looks = drawn = null;
    const t = was && plan.of.get(was[0]);
    chosen = t ? {tile: t, host: t.node.hosts.findIndex((h) => h.place === was[1])} : null;
  }

  let travels = 0; // counts times that were asked for: what comes late is not shown

  // travel shows the fabric as it was at a time, or as it is, and returns what it shows.
  async function travel(at) {
    const mine = travels += 1;
    const got = at ? await get('/v1/fabric/history/at', {signal, query: {at}}) : null;
    if (mine !== travels) return got;
    then = got;
    for (const part of between.form.elements) part.disabled = Boolean(then);
    for (const one of way.options) one.disabled = Boolean(then) && !recorded.includes(one.value);
    box.className = then ? 'mapbox was' : 'mapbox';
    if (!then) {
      [shape, asked] = ['', 0];
      ways.proof.forget();
      try {
        await live();
      } catch (err) {
        if (then || mine !== travels) return null;
        lay({switches: [], trunks: []}); // the past is not to be taken for the present
        failed(err);
      }
      return null;
    }
    if (!recorded.includes(way.value)) way.value = 'phase';
    between.clear();
    ways.proof.was(then.proof, then.proof_why);
    lay(outlineOf(then));
    wrong.replaceChildren();
    renew();
    return then;
  }

  async function live() {
    if (then) return;
    // The fabric is asked for whole only where its counts are others, and once a minute.
    const o = await get('/v1/fabric/overview', {signal});
    const now = JSON.stringify({...o, observed: ''});
    if (now !== shape || !plan || turn % 6 === 0) {
      const seen = await outline(signal);
      if (then) return;
      lay(seen);
      shape = now;
    }
    turn += 1;
    known.clear();
    await all('/v1/hosts', {view: 'summary'}, signal, (items) => {
      for (const h of items) known.set(h.id, {phase: h.phase, tenant: h.tenant || ''});
    });
    await more();
    if (then) return;
    join();
    showPlace();
  }
  repeat(10000, signal, live, failed);
}
