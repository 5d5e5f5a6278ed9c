// One host: where it is in its life, what holds it, its adapters, their locks, and what happened to it.

import {follow, get, repeat} from './api.js';
import {badge, el, facts, link, moment, refusal, section, time, to} from './dom.js';
import {lifecycle, meaning, phase} from './phases.js';
import {table} from './table.js';

export const title = 'Host';

const ports = [
  {name: 'Adapter', value: (p) => p.adapter},
  {name: 'Port', value: (p) => p.port},
  {name: 'Port GUID', value: (p) => p.guid},
  {name: 'Cabled to', value: (p) => p.cabled},
  {
    name: 'Seen at', value: (p) => p.seen || 'not seen',
    show: (p) => (!p.seen ? 'not seen' : p.seen === p.cabled ? p.seen : el('span', {}, p.seen, ' ', badge('elsewhere', 'bad'))),
  },
  {name: 'P_Keys read back', value: (p) => (p.p_keys || []).join(' ')},
];

const locks = [
  {name: 'Adapter', value: (l) => l.node_guid},
  {name: 'Lock', value: (l) => l.state, show: (l) => badge(l.state, l.state === 'proven' ? 'good' : 'wait')},
  {name: 'Epoch ordered', value: (l) => l.epoch},
  {name: 'Epoch proven', value: (l) => l.proven || 'none'},
  {name: 'Ordered', value: (l) => moment(l.ordered), show: (l) => time(l.ordered)},
  {name: 'Shown', value: (l) => moment(l.shown), show: (l) => time(l.shown)},
];

const entries = [
  {name: 'Time', value: (e) => moment(e.time), show: (e) => time(e.time)},
  {name: 'Actor', value: (e) => e.actor},
  {name: 'Action', value: (e) => e.action},
  {name: 'Code', value: (e) => e.code},
  {name: 'Detail', value: (e) => e.detail},
];

const happened = [
  {name: 'Last', value: (e) => moment(e.last), show: (e) => time(e.last)},
  {name: 'Severity', value: (e) => e.severity},
  {name: 'Event', value: (e) => e.type},
  {name: 'Cause', value: (e) => e.cause},
  {name: 'Seen', value: (e) => e.seen},
  {name: 'Count', value: (e) => e.count},
];

function guards(h) {
  const held = h.status.guards.find((g) => !g.met);
  return [
    el('p', {}, held ? ['Held by ', el('strong', {}, held.name), held.detail ? `: ${held.detail}` : ''] : 'Every condition of admission is met.'),
    el('ol', {class: 'checks'}, h.status.guards.map((g) => el('li', {},
      badge(g.met ? 'met' : 'not met', g.met ? 'good' : 'bad'), ' ', el('strong', {}, g.name), g.detail ? `: ${g.detail}` : ''))),
  ];
}

function standing(h) {
  const s = h.status;
  return facts([
    ['Phase', phase(s.phase)], ['State', s.state], ['Since', time(s.since)],
    ['Tenant', h.tenant && link(to('hosts', '', {tenant: h.tenant}), h.tenant)],
    ['Cluster', h.cluster && link(to('clusters', h.cluster), h.cluster)],
    ['P_Key', s.p_key], ['Rack', h.rack && link(to('hosts', '', {rack: h.rack}), h.rack)],
    ['Class of boots', h.class], ['Assignments', String(h.epoch)], ['Endorsement key (SHA-256)', h.ek && el('code', {}, h.ek)],
  ]);
}

function evidence(h) {
  const s = h.status;
  return [
    facts([
      ['Window closes', time(s.window)], ['Attested', time(s.attested)], ['Handed over', time(s.sealed)],
      ['Reference values of the boot', s.reference], ['Waived', (s.waived || []).join(', ')],
    ]),
    s.last_denial ? el('p', {class: 'denial'}, badge('refused', 'bad'), ' ', time(s.last_denial.time), ` ${s.last_denial.code}: ${s.last_denial.detail}`) : '',
    (s.outdated || []).length ? el('ul', {}, s.outdated.map((o) => el('li', {}, badge(o.cause, 'wait'), ` ${o.detail}`))) : '',
    (s.conflicts || []).length ? el('ul', {}, s.conflicts.map((c) => el('li', {}, badge('conflict', 'bad'), ` GUID ${c.guid} is claimed by `, link(to('hosts', c.with), c.with), ' too'))) : '',
  ];
}

// more is a section that is asked for beside the host, and says why where it is refused.
function more(name, signal, caption, columns, key, ask) {
  const list = table(caption, columns, key);
  const wrong = el('div');
  repeat(10000, signal, async () => list.set(await ask()), (err) => {
    wrong.replaceChildren(...(err ? [refusal(err)] : []));
    list.node.hidden = Boolean(err);
  });
  return section(name, wrong, list.node);
}

// show fills the page.
export function show({main, signal, id, say}) {
  const state = el('p', {class: 'none'}, 'Asking…');
  const picture = el('div');
  const held = el('div');
  const standings = el('div');
  const shown = el('div');
  const adapters = table('Ports of its adapters', ports, (p) => p.guid);
  main.append(
    state,
    el('div', {class: 'parts'}, section('Life cycle', picture), section('Why not', held), section('Standing', standings), section('Evidence', shown)),
    section('Adapters', adapters.node),
    more('Locks', signal, 'Locks of its adapters', locks, (l) => l.node_guid, async () => (await get('/v1/locks', {signal, query: {host: id}})).items),
    more('Events', signal, 'Events about it, the last first', happened, (e) => [e.type, e.cause, e.node_guid, e.first].join(' '),
      async () => (await get('/v1/events', {signal, query: {host: id, limit: 20}})).items),
    more('History', signal, 'Audit log about it, the last first', entries, (e) => e.seq,
      async () => (await get('/v1/audit', {signal, query: {object: `host/${id}`, newest: true, limit: 50}})).items),
  );
  let before = '';
  follow(`/v1/hosts/${encodeURIComponent(id)}/watch`, {
    signal,
    take(name, h) {
      if (name !== 'host') return;
      picture.replaceChildren(lifecycle(h.status.state));
      held.replaceChildren(...guards(h));
      standings.replaceChildren(standing(h));
      shown.replaceChildren(...evidence(h).filter(Boolean));
      adapters.set(h.hcas.flatMap((a) => a.ports.map((p) => ({adapter: a.node_guid, ...p}))));
      const now = h.status.state || h.status.phase;
      if (before && before !== now) say(`${id} is ${now} now. ${meaning(now)}`);
      before = now;
    },
    lost(err) {
      state.replaceChildren(...(err ? [refusal(err)] : [badge('live', 'good'), ' This page changes with the host.']));
      state.className = '';
    },
  });
}
