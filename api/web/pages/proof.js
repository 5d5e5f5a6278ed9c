// What was proven last of each port, as a way to color the map.

import {get} from './api.js';
import {el, link, moment, span, to} from './dom.js';

const colors = {isolated: '#23915a', leak: '#d03b2f', unproven: '#c99700', 'not examined': '#8a94a3'};
const marks = {leak: 'cross', unproven: 'ring'};
const held = {each: 'switches and adapters, each alone', switches: 'switches alone', adapters: 'adapters alone', together: 'switches and adapters together only'};
const ends = {sends: 'from it', receives: 'to it', both: 'from it and to it'};
const causes = {'not-found': 'it was not found where it is declared', 'not-read': 'a value was not read', old: 'the proof is older than it counts for'};

// most is how many ports are listed in words.
const most = 20;

const valueOf = (p) => (!p ? 'not examined' : p.verdict === 'isolated' ? 'isolated' : p.verdict === 'leaks' ? 'leak' : 'unproven');

// why says in words what is proven of a port.
function why(p) {
  if (!p) return 'not examined';
  if (p.verdict === 'isolated') return `isolated, held by ${held[p.held] || p.held}`;
  const other = p.other ? `, the other end is ${p.other}` : '';
  if (p.verdict === 'leaks') return `a packet passes ${ends[p.end] || ''}${other}`;
  return `not proven: ${p.detail || causes[p.cause] || p.cause}${p.end ? `; a packet may pass ${ends[p.end]}${other}` : ''}`;
}

// proof is a way to color hosts, with what it asks for.
export function proof(signal) {
  let ports = new Map(); // by place
  let newest = null;
  let refused = null;
  const take = (page) => {
    ports = new Map(page.items.filter((p) => p.place).map((p) => [p.place, p]));
    [newest, refused] = [page, null];
  };
  const refuse = (err) => {
    [ports, newest, refused] = [new Map(), null, err];
  };
  let asks = 0; // counts what was shown, so that an answer about the present that comes late is not shown of the past
  return {
    order: Object.keys(colors),
    of: (h) => valueOf(ports.get(h.place)),
    color: (v) => colors[v],
    mark: (v) => marks[v] || '',
    words: (h) => why(ports.get(h.place)),

    // was takes what was proven at a time of the past, or why that is not known.
    was(page, why) {
      asks += 1;
      if (page) take(page);
      else refuse(new Error(why));
    },

    // forget drops what was taken of the past.
    forget() {
      asks += 1;
      [ports, newest, refused] = [new Map(), null, null];
    },

    // ask reads the newest proof. A refusal is a state of the map, not of the page.
    async ask() {
      const mine = asks += 1;
      const items = [];
      let page = null;
      try {
        do {
          page = await get('/v1/verify/ports', {signal, query: {limit: 5000, after: page?.next}});
          items.push(...page.items);
        } while (page.next);
        if (mine === asks) take({...page, items});
      } catch (err) {
        if (signal.aborted || err.status === undefined) throw err;
        if (mine === asks) refuse(err);
      }
    },

    // said says how old the proof is, or why there is none, and lists what is wrong.
    said() {
      if (refused) {
        const none = refused.code === 'not_examined' ? 'Nothing was examined yet: ' : 'No proof is shown: ';
        return el('p', {class: 'refusal'}, none, refused.message, refused.hint ? ` (${refused.hint})` : '');
      }
      if (!newest) return el('p', {}, 'Asking…');
      const age = `Proof of ${moment(newest.begun)}, ${span(newest.age_seconds)} ago. It counts for ${span(newest.max_age_seconds)}.`;
      const wrong = [...ports.values()].filter((p) => p.verdict !== 'isolated').sort((a, b) => (a.verdict === 'leaks' ? 0 : 1) - (b.verdict === 'leaks' ? 0 : 1));
      return [
        el('p', newest.current ? {} : {class: 'refusal'}, newest.current ? age : `Not proven any more. ${age}`),
        wrong.length ? el('ul', {class: 'unsafe'}, wrong.slice(0, most).map((p) => el('li', {}, link(to('hosts', p.host), p.host), ` at ${p.place}: ${why(p)}`)),
          wrong.length > most ? el('li', {}, `and ${wrong.length - most} more`) : '') : el('p', {}, `Each of the ${ports.size} ports is isolated.`),
      ];
    },
  };
}
