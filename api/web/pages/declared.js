// How the fabric differs from what is declared, as a way to color the map: links of the declared topology, and P_Key tables.

import {all, get} from './api.js';
import {badge, el, link, moment, time, to} from './dom.js';
import {table} from './table.js';

// kinds are in the order of what is shown first where a place has several. A line has the width of its kind, too.
const kinds = [
  {name: 'undeclared', color: '#d03b2f', mark: 'cross', width: 5, said: 'bad'},
  {name: 'different', color: '#c99700', mark: 'two bars', width: 4, said: 'bad'},
  {name: 'missing', color: '#7a5bd0', mark: 'ring', width: 3, dashed: true, said: 'bad'},
  {name: 'tables differ', color: '#2f80d0', mark: 'one bar', width: 2, said: 'wait'},
  {name: 'not compared', color: '#8a94a3', mark: 'three bars', width: 2, dashed: true, said: 'plain'},
  {name: 'links as declared', color: '#23915a', mark: '', width: 1, said: 'good'}, // and nothing is known of tables
  {name: 'as declared', color: '#23915a', mark: '', width: 1, said: 'good'},
];
const byName = new Map(kinds.map((k) => [k.name, k]));
const other = byName.get('not compared');
const linked = byName.get('links as declared');
const plain = byName.get('as declared');

// verdicts of the comparison that are no difference of a link.
const verdicts = {
  unplanned: 'undeclared', unknown: 'undeclared', malformed: 'undeclared', retired: 'undeclared', reserved: 'undeclared',
  missing: 'missing', unseen: 'not compared', held: 'not compared', no_discover: 'not compared', disabled: 'not compared', verified: 'as declared',
};

const drifts = {
  absent: 'not found where it is declared', missing: 'lacks the P_Key', membership: 'has it with the other membership', leaving: 'still has the P_Key',
  stray: 'has a P_Key that no membership explains', 'not-enforced': 'is not checked', unread: 'was not read',
};

// most is how many differences are listed, and mostOf how many of one switch.
const most = 200;
const mostOf = 8;

const switchOf = (end) => (end || '').split('/')[0];
const pairOf = (a, b) => (a < b ? `${a} ${b}` : `${b} ${a}`);

const columns = [
  {name: 'Difference', value: (d) => d.kind.name, show: (d) => badge(d.kind.name, d.kind.said)},
  {name: 'Place', value: (d) => d.at, show: (d) => (d.place ? link(to('ports', d.place), d.at) : d.at)},
  {name: 'Host', value: (d) => d.host, show: (d) => (d.host ? link(to('hosts', d.host), d.host) : '')},
  {name: 'There is', value: (d) => d.found},
  {name: 'Declared', value: (d) => d.wanted},
  {name: 'What', value: (d) => d.text},
  {name: 'Since', value: (d) => moment(d.since), show: (d) => time(d.since)},
];

// ofLink is a difference of a link, and ofTable one of a P_Key table.
const ofLink = (p) => ({
  kind: byName.get(verdicts[p.verdict] || 'different'), place: p.place, at: p.at || p.place, host: p.host, found: p.seen || 'nothing', wanted: p.expected || 'nothing',
  text: `${p.verdict}${p.text && p.text !== p.verdict ? `: ${p.text}` : ''}${p.where ? `, at ${p.where}` : ''}`, since: p.since, key: `link ${p.place}`,
  ends: [p.seen, p.expected].map(switchOf).filter(Boolean),
});
const ofTable = (d) => ({
  kind: d.kind === 'unread' ? other : byName.get('tables differ'), place: d.place, at: d.place || d.guid || '', host: d.host, found: d.found, wanted: d.pkey,
  text: `${d.in}: ${drifts[d.kind] || d.kind}`, since: d.since, key: ['table', d.place, d.guid, d.in, d.kind, d.pkey].join(' '), ends: [],
});

const worst = (kindsOf) => kinds.find((k) => kindsOf.has(k)) || plain;

// groups collects kinds by keys of differences.
function groups(found, keysOf) {
  const out = new Map();
  for (const d of found) {
    for (const key of keysOf(d)) {
      if (!out.has(key)) out.set(key, new Set());
      out.get(key).add(d.kind);
    }
  }
  return out;
}

// declared is a way to color hosts, switches and lines, with what it asks for.
export function declared(signal) {
  let found = [];
  let ports = new Map(); // kinds by place
  let nodes = new Map(); // by GUID of the switch
  let pairs = new Map(); // by GUIDs of two nodes
  let known = false; // the fabric was compared with a declared topology
  let tables = false; // and P_Key tables with memberships
  let parts = null; // said of what was asked for last
  const list = table('Where the fabric is not as declared', columns, (d) => d.key);
  // Where nothing says that a place was compared, it is not shown as it is declared.
  const inOrder = () => (known && !tables ? linked : plain);
  const of = (map, key) => {
    const at = map.get(key);
    return at ? worst(at) : known ? inOrder() : other;
  };

  // part asks for one list. A refusal of the service is a state of the map, not of the page.
  async function part(ask) {
    try {
      return [await ask(), null];
    } catch (err) {
      if (signal.aborted || err.status === undefined) throw err;
      return [null, err];
    }
  }

  async function listed(path) {
    const items = [];
    await all(path, {}, signal, (page) => items.push(...page));
    return items;
  }

  function words(force, links, drift) {
    const why = (what, err) => el('p', {class: 'refusal'}, `${what}: ${err.message}${err.hint ? ` (${err.hint})` : ''}`);
    const out = [];
    if (force[1]) out.push(why('The declared topology is not shown', force[1]));
    else if (!force[0].in_force) out.push(el('p', {}, 'No topology is declared, or the Subnet Manager does not compare the fabric with it.'));
    else {
      const f = force[0].in_force;
      out.push(el('p', {}, `Compared with revision ${f.revision} of ${f.fabric}, mode ${f.mode}: ${f.verified_links} of ${f.expected_links} declared links are verified, ${f.missing_links} are missing, ${f.differing_ports} ports differ.`));
    }
    if (links[1] && !force[1]) out.push(why('Differences of links are not shown', links[1]));
    if (drift[1]) out.push(why('Differences of P_Key tables are not shown', drift[1]));
    else if (!drift[0].length) out.push(el('p', {}, 'Each P_Key table that was read is as memberships are.'));
    if (!found.length) return [...out, el('p', {}, known ? 'No link differs from what is declared.' : 'No difference is known.')];
    list.set(found.slice(0, most));
    return [...out, list.node, ...(found.length > most ? [el('p', {}, `and ${found.length - most} more: portcullis fabric topology, portcullis fabric diff --wanted`)] : [])];
  }

  return {
    get order() {
      return kinds.filter((k) => k === inOrder() || (k !== plain && k !== linked)).map((k) => k.name);
    },
    of: (h) => of(ports, h.place).name,
    color: (v) => byName.get(v).color,
    mark: (v) => byName.get(v).mark,
    words: (h) => of(ports, h.place).name,

    // leaf is how a switch is drawn: in the color of what is worst at it, with the shapes of the two worst kinds. Where nothing is at the other
    // end, this is all that the map has of a port.
    leaf(node) {
      const at = nodes.get(node.guid);
      const {color, mark} = of(nodes, node.guid);
      return {color, marks: at ? kinds.filter((k) => at.has(k)).slice(0, 2).map((k) => k.mark) : [mark]};
    },

    // trunk is how the line between two switches is drawn.
    trunk(a, b) {
      const {color, width, dashed} = of(pairs, pairOf(a, b));
      return {color, width, dashed: Boolean(dashed), always: pairs.has(pairOf(a, b))};
    },

    // lines are pairs of switches that are to be drawn though no link between them was found.
    lines: () => [...pairs.keys()].map((key) => key.split(' ')),

    // wordsOf says what differs at a switch.
    wordsOf(node) {
      const here = found.filter((d) => switchOf(d.place) === node.guid);
      if (!here.length) return known ? `At this switch ${tables ? 'nothing' : 'no link'} differs.` : 'It is not compared.';
      return `At this switch: ${here.slice(0, mostOf).map((d) => `${d.at} ${d.kind.name}, ${d.text}`).join('; ')}${here.length > mostOf ? `, and ${here.length - mostOf} more` : ''}.`;
    },

    async ask() {
      const force = await part(() => get('/v1/topospec', {signal}));
      const links = await part(() => listed('/v1/fabric/topology'));
      const drift = await part(() => listed('/v1/fabric/drift'));
      found = [...(links[0] || []).map(ofLink), ...(drift[0] || []).map(ofTable)].sort((a, b) => kinds.indexOf(a.kind) - kinds.indexOf(b.kind) || a.at.localeCompare(b.at, 'en', {numeric: true}));
      known = Boolean(force[0]?.in_force && links[0]);
      tables = Boolean(drift[0]);
      ports = groups(found, (d) => (d.place ? [d.place] : []));
      nodes = groups(found, (d) => (d.place ? [switchOf(d.place)] : []));
      pairs = groups(found, (d) => d.ends.map((end) => pairOf(switchOf(d.place), end)));
      parts = words(force, links, drift);
    },

    said: () => parts || el('p', {}, 'Asking…'),
  };
}
