// What links carry, as a way to color the map.

import {all} from './api.js';
import {el, span} from './dom.js';

// levels are shares of a link's capacity, up to below. Lines between switches are as wide as width says.
const levels = [
  {name: 'below 25 %', below: 0.25, color: '#2f80d0', mark: '', width: 1},
  {name: '25 to 50 %', below: 0.5, color: '#7a5bd0', mark: 'one bar', width: 2.5},
  {name: '50 to 80 %', below: 0.8, color: '#c99700', mark: 'two bars', width: 4},
  {name: '80 % and more', below: Infinity, color: '#d03b2f', mark: 'three bars', width: 6},
];
const unknown = {name: 'unknown', color: '#8a94a3', mark: 'ring', width: 1};
const byName = new Map([...levels, unknown].map((l) => [l.name, l]));

const causes = {
  unread: 'the counters were not read lately', once: 'the counters were read only once', restarted: 'a counter went back',
  implausible: 'the counters grew by more than the link carries', full: 'a counter is at its largest value',
  apart: 'the last two readings are too near to each other or too far apart', narrow: 'the switch has no counters of 64 bits',
  'no-capacity': 'width or speed of the link is not known',
};

// keep is for how long an answer counts. Afterwards the load is unknown.
const keep = 90000;

// most is how many links are listed in words.
const most = 10;

const share = (l) => (l?.rate ? l.rate.share : -1);
const levelOf = (l) => (l?.rate ? levels.find((one) => l.rate.share < one.below) : unknown);
const bytesOf = (l) => (l?.rate ? Math.max(l.rate.xmit, l.rate.rcv) : 0);
const percent = (l) => `${(100 * l.rate.share).toFixed(1)} %`;

// speed is a number of bytes a second in words.
function speed(bytes) {
  const bits = 8 * bytes;
  for (const [size, name] of [[1e9, 'Gb/s'], [1e6, 'Mb/s'], [1e3, 'kb/s']]) {
    if (bits >= size) return `${Number((bits / size).toFixed(2))} ${name}`;
  }
  return `${bits} b/s`;
}

// why says in words what is known of a link.
function why(l) {
  if (!l) return 'load not known: the service lists no such link';
  if (!l.rate) return `load not known: ${causes[l.state] || l.state}`;
  const {xmit, rcv, wait} = l.rate;
  const waits = wait ? `, ${wait} ticks a second without credit` : '';
  return `${percent(l)} of ${speed(l.capacity)}: ${speed(xmit)} from the switch, ${speed(rcv)} to it${waits}, mean of ${span(l.rate.span_seconds)}, ${span(l.rate.age_seconds)} ago`;
}

// Sum is the busiest of several links, and of how many nothing is known.
class Sum {
  links = 0;

  unknown = 0;

  busiest = null;

  add(l) {
    this.links += 1;
    if (!l.rate) this.unknown += 1;
    if (share(l) > share(this.busiest)) this.busiest = l;
  }
}

// sums counts the links of a list at each end, or at each pair of them.
function sums(links, keysOf) {
  const out = new Map();
  for (const l of links) {
    for (const key of keysOf(l)) {
      if (!out.has(key)) out.set(key, new Sum());
      out.get(key).add(l);
    }
  }
  return out;
}

const pairOf = (a, b) => (a < b ? `${a} ${b}` : `${b} ${a}`);

// load is a way to color hosts, switches and the lines between them, with what it asks for.
export function load(signal) {
  let links = []; // the busiest first
  let ports = new Map(); // by place
  let nodes = new Map(); // sums by GUID
  let pairs = new Map(); // sums by both GUIDs
  let asked = -Infinity;
  let answered = false;
  let refused = null;
  const fresh = () => performance.now() - asked < keep;
  const at = (map, key) => (fresh() ? map.get(key) : undefined);

  return {
    order: [...byName.keys()],
    of: (h) => levelOf(at(ports, h.place)).name,
    color: (v) => byName.get(v).color,
    mark: (v) => byName.get(v).mark,
    words: (h) => why(at(ports, h.place)),

    // leaf is how a switch is drawn: by its busiest link, and a ring besides if there is one of which nothing is known.
    leaf(node) {
      const sum = at(nodes, node.guid);
      const {color, mark} = levelOf(sum?.busiest);
      return {color, marks: sum?.busiest && sum.unknown ? [mark, unknown.mark] : [mark]};
    },

    // trunk is how the line between two switches is drawn.
    trunk(a, b) {
      const sum = at(pairs, pairOf(a, b));
      const {color, width, name} = levelOf(sum?.busiest);
      return {color, width, dashed: !sum?.busiest || sum.unknown > 0, always: name === levels.at(-1).name};
    },

    // wordsOf says which link of a switch is the busiest.
    wordsOf(node) {
      const sum = at(nodes, node.guid);
      if (!sum) return 'No load of its links is known.';
      const rest = sum.unknown ? ` The load of ${sum.unknown} of its ${sum.links} links is not known.` : '';
      return `${sum.busiest ? `Its busiest link is ${sum.busiest.at} to ${sum.busiest.to}: ${why(sum.busiest)}.` : ''}${rest}`;
    },

    // ask reads the load of all links. A refusal is a state of the map, not of the page.
    async ask() {
      const next = [];
      try {
        await all('/v1/fabric/load', {}, signal, (items) => next.push(...items));
        refused = null;
      } catch (err) {
        if (signal.aborted || err.status === undefined) throw err;
        refused = err;
        next.length = 0;
      }
      next.sort((a, b) => share(b) - share(a) || bytesOf(b) - bytesOf(a));
      links = next;
      ports = new Map(links.map((l) => [`${l.node_guid}/${l.port}`, l]));
      nodes = sums(links, (l) => (l.trunk ? [...new Set([l.node_guid, l.peer_guid])] : [l.node_guid]));
      pairs = sums(links.filter((l) => l.trunk), (l) => [pairOf(l.node_guid, l.peer_guid)]);
      asked = performance.now();
      answered = true;
    },

    // said says how old the load is, or why there is none, and lists the busiest links.
    said() {
      if (refused) return el('p', {class: 'refusal'}, 'No load is shown: ', refused.message, refused.hint ? ` (${refused.hint})` : '');
      if (!answered) return el('p', {}, 'Asking…');
      if (!fresh()) return el('p', {class: 'refusal'}, 'No load is shown: the service did not answer lately.');
      const known = links.filter((l) => l.rate);
      const oldest = known.reduce((age, l) => Math.max(age, l.rate.age_seconds), 0);
      const between = new Map(levels.map((l) => [l.name, 0]));
      for (const l of links) if (l.trunk) between.set(levelOf(l).name, (between.get(levelOf(l).name) || 0) + 1);
      const counts = [...between].filter(([, n]) => n).map(([name, n]) => `${n} ${name}`).join(', ');
      const busy = known.filter((l) => bytesOf(l) > 0);
      return [
        el('p', {}, `Load of ${known.length} of ${links.length} links, in the busier direction.`, known.length ? ` The oldest reading is of ${span(oldest)} ago.` : ''),
        el('p', {}, `Links between switches: ${counts || 'none'}. A line is wider the busier its busiest link is, and dashed where a load is not known. A switch has the color of its busiest link.`),
        busy.length ? el('p', {}, 'The busiest links:') : el('p', {}, known.length ? 'No link carried anything.' : 'No load is known yet.'),
        busy.length ? el('ul', {class: 'busiest'}, busy.slice(0, most).map((l) => el('li', {}, `${l.at} to ${l.to}${l.host ? ` (${l.host})` : ''}: ${why(l)}`))) : [],
      ].flat();
    },
  };
}
