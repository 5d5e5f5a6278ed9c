// Violations and events, as they come: the page can be held, and each place leads to the map.

import {follow, get, pause as rest} from './api.js';
import {badge, el, link, moment, refusal, section, time, to} from './dom.js';
import {announcing} from './live.js';
import {filters, paged} from './paged.js';
import {pausing} from './pausing.js';
import {table} from './table.js';

export const title = 'Violations';

const verdicts = {claimed: 'wait', confirmed: 'bad', refuted: 'plain'};
const severities = {critical: 'bad', warning: 'wait', notice: 'plain', info: 'plain'};

function where(v) {
  if (!v.place) return v.at || (v.lid ? `LID ${v.lid}` : '');
  return el('span', {}, link(to('ports', v.place), v.at || v.place), ' ', onMap(v.place, v.at));
}

// onMap is a link to a switch port on the map.
function onMap(place, name) {
  return el('span', {}, '(', link(to('fabric', '', {at: place}), 'map', el('span', {class: 'unseen'}, ` of ${name || place}`)), ')');
}

// apart says which reports a row has that are not in its count, and which it stands for.
function apart(v) {
  return [
    v.repeats ? `${v.repeats} sent once more, not counted` : '', v.counted ? `${v.counted} by the device's own counter` : '',
    v.others ? 'stands for all that had no room' : '',
  ].filter(Boolean).join('; ');
}

export const columns = [
  {name: 'Last', value: (v) => moment(v.last), show: (v) => time(v.last)},
  {name: 'Switch port', value: (v) => v.at || v.place, show: where},
  {name: 'Host', value: (v) => v.host, show: (v) => (v.host ? link(to('hosts', v.host), v.host) : '')},
  {name: 'Tenant', value: (v) => v.tenant},
  {name: 'Kind', value: (v) => v.kind},
  {name: 'Verdict', value: (v) => v.verdict, show: (v) => badge(v.verdict, verdicts[v.verdict])},
  {name: 'Count', value: (v) => v.count},
  {name: 'Besides', value: apart},
  {name: 'Reported by', value: (v) => v.reporter_at},
  {name: 'What', value: (v) => v.text},
];

const held = [
  {name: 'Place', value: (h) => h.at || h.place, show: where},
  {name: 'Condition', value: (h) => h.condition || 'healthy', show: (h) => badge(h.condition || 'healthy', h.unhealthy ? 'bad' : 'good')},
  {name: 'Action', value: (h) => h.action},
  {name: 'Since', value: (h) => moment(h.since), show: (h) => time(h.since)},
  {name: 'Until', value: (h) => moment(h.until), show: (h) => time(h.until)},
  {name: 'Reason', value: (h) => h.reason},
];

const happened = [
  {name: 'Last', value: (e) => moment(e.last), show: (e) => time(e.last)},
  {name: 'Severity', value: (e) => e.severity, show: (e) => badge(e.severity, severities[e.severity])},
  {name: 'Event', value: (e) => e.type},
  {name: 'Host', value: (e) => e.host, show: (e) => (e.host ? link(to('hosts', e.host), e.host) : '')},
  {name: 'Cause', value: (e) => e.cause},
  {name: 'Seen', value: (e) => e.seen},
  {name: 'Do', value: (e) => e.do},
  {name: 'Count', value: (e) => e.count},
];

const nameOf = (e) => [e.type, e.cause, e.host, e.node_guid].join(' ');

const most = 200; // events on the page

// events shows the last events, and each that happens. The same stream says when violations change.
function events(signal, say, pause, live) {
  const list = table('Events, the last first', happened, nameOf);
  const state = el('p', {}, 'Asking…');
  let items = [];
  let ended = new AbortController();
  async function begin() {
    const page = await get('/v1/events', {signal, query: {limit: most}});
    items = page.items;
    if (!pause.held()) list.set(items);
    ended = new AbortController();
    const both = AbortSignal.any([signal, ended.signal]);
    follow('/v1/events/watch', {
      signal: both, query: {after: page.position, violations: true},
      take(name, data) {
        if (name === 'event') {
          items = [data, ...items.filter((e) => nameOf(e) !== nameOf(data))].slice(0, most);
          if (pause.held()) {
            pause.waits();
            return;
          }
          list.set(items);
          say(`${data.severity}: ${data.type}${data.host ? ` of ${data.host}` : ''}`);
        } else if (name === 'violations') {
          live.says(data.live);
        } else if (name === 'gap') {
          ended.abort();
          start(); // the list has what the stream has not
        }
      },
      lost(err) {
        if (err) live.lost();
        state.replaceChildren(...(err ? [refusal(err)] : [badge('live', 'good'), ' Events appear as they happen.']));
      },
    });
  }
  // start begins again until that works. What the role may not see is not asked for again.
  async function start() {
    for (let wait = 1000; !signal.aborted; wait = Math.min(wait * 2, 30000)) {
      try {
        await begin();
        return;
      } catch (err) {
        if (signal.aborted) return;
        live.lost();
        state.replaceChildren(refusal(err));
        if (err.status >= 400 && err.status < 500 && err.status !== 429) return;
      }
      await rest(wait, signal);
    }
  }
  pause.resumed(() => list.set(items));
  start();
  return section('Events', state, list.node);
}

// show fills the page.
export function show({main, signal, query, say}) {
  const asked = {};
  for (const name of ['host', 'tenant', 'kind', 'verdict']) if (query.get(name)) asked[name] = query.get(name);
  const pause = pausing();
  const live = announcing('Violations', 3);
  main.append(
    pause.node,
    filters('Violations', query, [['host', 'Host'], ['tenant', 'Tenant'], ['kind', 'Kind']], [['verdict', 'Verdict', Object.keys(verdicts)]],
      (q) => { location.hash = to('violations', '', q); }),
    section('Violations', live.node, ...paged({
      signal, list: table('What was reported, on each page the last first', columns, (v) => v.id), every: 3000, what: 'violations', pause, live,
      async ask(after) {
        const page = await get('/v1/fabric/violations', {signal, query: {...asked, limit: 500, after}});
        page.items.sort((a, b) => b.last.localeCompare(a.last) || b.id - a.id);
        return page;
      },
    })),
    section('Places', ...paged({
      signal, list: table('Switch ports that are unhealthy or marked', held, (h) => `${h.place} ${h.at}`), every: 5000, what: 'places', pause,
      ask: (after) => get('/v1/fabric/health', {signal, query: {limit: 100, after}}),
    })),
    events(signal, say, pause, live),
  );
}
