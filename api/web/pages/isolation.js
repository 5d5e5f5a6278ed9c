// The proof of isolation: the verdict on all tenants, what it rests on, packets that pass, what subnet administration disclosed, and
// how tables differ from memberships.

import {get, repeat} from './api.js';
import {badge, denied, el, facts, link, moment, refusal, section, span, time, to} from './dom.js';
import {paged} from './paged.js';
import {table} from './table.js';

export const title = 'Isolation';

const kinds = {isolated: 'good', leaks: 'bad', unknown: 'wait', confined: 'good', discloses: 'bad', 'not-examined': 'wait'};
const words = {isolated: 'isolated', leaks: 'not isolated', unknown: 'not proven', 'not-examined': 'not examined'};
const verdict = (v) => badge(words[v] || v, kinds[v] || 'plain');

const parties = () => table('Parties', [
  {name: 'Party', value: (p) => p.name, show: (p) => (p.tenant ? link(to('hosts', '', {tenant: p.name}), p.name) : p.name)},
  {name: 'Verdict', value: (p) => p.verdict, show: (p) => verdict(p.verdict)},
  {name: 'Ports declared', value: (p) => p.declared},
  {name: 'found', value: (p) => p.found},
  {name: 'Pairs isolated', value: (p) => p.pairs.isolated},
  {name: 'that leak', value: (p) => p.pairs.leaks},
  {name: 'not proven', value: (p) => p.pairs.unknown},
], (p) => `${p.tenant} ${p.name}`);

const portName = (d) => [d.host || d.party, d.guid, d.place ? `at ${d.place}` : ''].filter(Boolean).join(' ');

const disclosures = () => table('Disclosures', [
  {name: 'To', value: (d) => portName(d.from) || 'a LID that no port has'},
  {name: 'Record', value: (d) => `${d.record}, ${d.field}${d.value ? ` ${d.value}` : ''}`},
  {name: 'Of', value: (d) => (d.secret ? 'a key' : portName(d.about) || `partition ${d.pkey}`)},
  {name: 'Cure', value: (d) => d.cure},
], (d) => JSON.stringify([d.from, d.record, d.field, d.value, d.about, d.pkey]));

// unsafe are the lists of what makes a proof less than whole.
const unsafe = [
  ['missing', 'Ports that were not found', [
    {name: 'Host', value: (m) => m.host, show: (m) => link(to('hosts', m.host), m.host)},
    {name: 'Party', value: (m) => m.party},
    {name: 'Place', value: (m) => m.place || ''},
    {name: 'Cause', value: (m) => m.cause},
  ], (m) => `${m.host} ${m.guid} ${m.place}`],
  ['undeclared', 'Ports that are not declared', [
    {name: 'Port', value: (u) => u.guid},
    {name: 'Place', value: (u) => u.place},
    {name: 'Cause', value: (u) => u.cause},
  ], (u) => `${u.guid} ${u.place}`],
  ['ghosts', 'P_Keys that no membership explains', [
    {name: 'Place', value: (g) => g.place},
    {name: 'Port', value: (g) => g.guid || ''},
    {name: 'P_Keys', value: (g) => g.pkeys.join(', ')},
    {name: 'Table of', value: (g) => (g.held === 'both' ? 'adapter and switch' : g.held)},
  ], (g) => g.place],
  ['by_routes', 'Apart by routes alone', [
    {name: 'Party', value: (p) => p.a},
    {name: 'and', value: (p) => p.b},
  ], (p) => `${p.a}\n${p.b}`],
  ['unread', 'Values that were not read', [
    {name: 'Value', value: (u) => u.what},
    {name: 'Of', value: (u) => u.where},
    {name: 'Cause', value: (u) => u.cause},
  ], (u) => `${u.what}\n${u.where}`],
];

const driftColumns = [
  {name: 'Difference', value: (d) => d.kind},
  {name: 'Host', value: (d) => d.host || '', show: (d) => (d.host ? link(to('hosts', d.host), d.host) : '')},
  {name: 'Place', value: (d) => d.place || ''},
  {name: 'In', value: (d) => d.in},
  {name: 'P_Key', value: (d) => d.pkey || ''},
  {name: 'Found', value: (d) => d.found || ''},
  {name: 'Since', value: (d) => moment(d.since), show: (d) => time(d.since)},
];

// packet shows a packet that passes, hop by hop.
function packet(e) {
  const what = e.raw ? 'a raw packet' : `a packet with P_Key ${e.pkey}`;
  return el('li', {}, el('p', {}, badge(e.certain ? 'passes' : 'may pass', e.certain ? 'bad' : 'wait'), ` ${what}${e.dlid ? `, DLID ${e.dlid}` : ''}, from ${e.from} to ${e.to}`),
    el('ol', {}, e.hops.map((h) => el('li', {}, `${h.device}${h.in ? `, in by port ${h.in}` : ''}${h.out ? `, out by port ${h.out}` : ''}`,
      el('ul', {}, h.passed.map((p) => el('li', {}, p)))))),
    el('p', {}, 'To stop it: ', el('code', {}, e.cure)));
}

function summary(k) {
  const {found} = k;
  const {bounds, pairs, held} = found;
  return [
    facts([
      ['Verdict', [verdict(found.verdict), k.current ? '' : badge('old', 'bad')]], ['Why', found.reason],
      ['Pairs', `${pairs.isolated} isolated, ${pairs.leaks} leak, ${pairs.unknown} not proven`],
      ['Held by', `switches and adapters, each alone: ${held.each}; switches alone: ${held.switches}; adapters alone: ${held.adapters}; together only: ${held.together}`],
      ['Everything read', time(bounds.begun)], ['Changes read', bounds.again ? time(bounds.again) : ''],
      ['Age', `${span(k.age_seconds)}; it counts for ${span(k.max_age_seconds)}`],
      ['Read', `${bounds.devices} devices, ${bounds.switches} of them switches; ${bounds.ends} ports of hosts`],
      ['No newer result', k.failure],
    ]),
    k.current ? '' : el('p', {class: 'refusal'}, 'This examination is older than it counts for: it proves nothing any more.'),
    el('details', {}, el('summary', {}, 'What the verdict takes for granted'), el('ul', {}, bounds.assumptions.map((a) => el('li', {}, a)))),
  ];
}

function administration(a, list) {
  list.set(a.disclosures || []);
  list.node.hidden = !a.disclosed;
  return facts([
    ['Verdict', verdict(a.verdict)], ['Why', a.reason],
    ['Asked', a.ports ? `${a.questions} questions from ${a.ports} ports of ${a.parties} parties${a.unasked ? `; ${a.unasked} parties did not ask` : ''}` : ''],
    ['Answered', a.answers ? `${a.answers} answers with ${a.records} records${a.undecided ? `; ${a.undecided} names were not judged` : ''}` : ''],
    ['Disclosed', a.disclosed ? String(a.disclosed) : ''],
  ]);
}

// show fills the page.
export function show({main, signal}) {
  const wrong = el('div');
  const said = el('div', {}, el('p', {class: 'none'}, 'Asking…'));
  const packets = el('ol', {class: 'packets'});
  const passing = section('Packets that pass', packets);
  const list = parties();
  const disclosed = disclosures();
  const asked = el('div');
  const rests = section('What is not proven');
  const lists = unsafe.map(([field, name, columns, key]) => {
    const rows = table(name, columns, key);
    rests.append(rows.node);
    return [field, rows];
  });
  const drift = section('Drift', el('p', {}, 'How the tables of ports differ from memberships, by the newest reading.'), paged({
    signal, every: 30000, what: 'differences', list: table('Differences', driftColumns, (d) => [d.place, d.guid, d.in, d.kind, d.pkey].join(' ')),
    ask: (after) => get('/v1/fabric/drift', {signal, query: {limit: 100, after}}),
  }));
  passing.hidden = rests.hidden = true;
  main.append(wrong, section('Verdict', said), passing, section('Subnet administration', asked, disclosed.node), rests, drift, section('Parties', list.node));
  repeat(15000, signal, async () => {
    const k = await get('/v1/verify', {signal});
    said.replaceChildren(...summary(k).filter(Boolean));
    packets.replaceChildren(...k.found.examples.map(packet));
    passing.hidden = k.found.examples.length === 0;
    asked.replaceChildren(administration(k.found.administration, disclosed));
    for (const [field, rows] of lists) {
      const items = k.found[field] || [];
      rows.set(items);
      rows.node.hidden = items.length === 0;
    }
    rests.hidden = lists.every(([, rows]) => rows.node.hidden);
    list.set(k.found.parties);
  }, (err) => {
    wrong.replaceChildren(...(err ? [refusal(err)] : []));
    if (err?.code === 'not_examined') said.replaceChildren(el('p', {class: 'none'}, 'Nothing was examined yet.'));
    if (err?.status === 403) denied(main, err);
  });
}
