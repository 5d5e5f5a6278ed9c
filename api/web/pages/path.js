// The path between two hosts: it is asked for by a form, and shown hop by hop. The map draws it.

import {get} from './api.js';
import {badge, el, facts, refusal, section} from './dom.js';
import {filters} from './paged.js';
import {table} from './table.js';

const rate = (mbps) => (mbps ? `${mbps / 1000} Gb/s` : '');

const columns = [
  {name: 'Hop', value: (h) => h.number},
  {name: 'Node', value: (h) => h.name},
  {name: 'In', value: (h) => h.in},
  {name: 'Out', value: (h) => h.out},
  {name: 'Link', value: (h) => [h.width, h.speed].filter(Boolean).join(' ')},
  {name: 'VL', value: (h) => (h.out ? h.vl : '')},
  {name: 'Load', value: (h) => h.load},
];

function way(title, route) {
  const list = table(`${title}: SL ${route.sl}, ${route.links} links${route.rate_mbps ? `, ${rate(route.rate_mbps)}` : ''}`, columns, (h) => h.number);
  list.set(route.hops.map((h, i) => ({...h, number: i})));
  return [el('h3', {}, title), route.error ? el('p', {class: 'refusal'}, badge('packets do not arrive', 'bad'), ` ${route.error}`) : '', route.hops.length ? list.node : ''];
}

// path makes the form and the place where a path is shown. draw is called with its two ways, or with none.
export function path(signal, draw) {
  const shown = el('div', {class: 'path', role: 'status'});
  let asked = 0; // counts what was asked for: an answer that comes late is not shown
  const clear = () => {
    asked += 1;
    shown.replaceChildren();
    draw([]);
  };
  const form = filters('Path', new URLSearchParams(), [['from', 'Path from'], ['to', 'to']], [], async ({from, to}) => {
    clear();
    const mine = asked;
    if (!from || !to) return;
    shown.replaceChildren(el('p', {class: 'none'}, 'Asking…'));
    try {
      const r = await get('/v1/fabric/routes', {signal, query: {from, to}});
      if (mine !== asked) return;
      shown.replaceChildren(section(`From ${r.from.host || r.from.name} to ${r.to.host || r.to.name}`,
        facts([
          ['Shared P_Keys', r.shared_p_keys.length ? r.shared_p_keys.join(' ') : badge('none: no packet passes', 'wait')],
          ['Tables', r.settled ? badge('settled', 'good') : badge('switches may not have these yet', 'wait')],
        ]),
        r.problems.length ? el('ul', {}, r.problems.map((p) => el('li', {}, p))) : '', ...way('There', r.there), ...way('Back', r.back),
        el('p', {class: 'none'}, 'Load is the number of routes between hosts that leave by the same link. The map shows the way there as a line, and the way back dashed.')));
      draw([r.there.hops, r.back.hops]);
    } catch (err) {
      if (mine === asked && !signal.aborted) shown.replaceChildren(refusal(err));
    }
  });
  return {form, shown, clear};
}
