// One switch port: what is at its other end, its state, and what was reported of it.

import {all, repeat} from './api.js';
import {badge, el, facts, link, refusal, section, to} from './dom.js';
import {columns} from './violations.js';
import {table} from './table.js';

export const title = 'Switch port';

async function find(path, query, signal, fits) {
  const found = [];
  await all(path, query, signal, (items) => found.push(...items.filter(fits)));
  return found;
}

// show fills the page. id is SWITCH/PORT, with the GUID of the switch.
export function show({main, signal, id}) {
  const [node, number] = id.split('/');
  const about = el('div', {}, el('p', {class: 'none'}, 'Asking…'));
  const list = table('What was reported of it', columns, (v) => v.id);
  const wrong = el('div');
  let before = '';
  repeat(5000, signal, async () => {
    const [p] = await find('/v1/fabric/ports', {node}, signal, (port) => String(port.port) === number);
    const now = JSON.stringify(p);
    if (now === before) return;
    before = now;
    about.replaceChildren(!p ? el('p', {}, 'The fabric shows no such port.') : facts([
      ['Switch', p.name], ['State', badge(p.state, p.state === 'Active' ? 'good' : 'wait')], ['Link', [p.width, p.speed].filter(Boolean).join(' ')],
      ['At the other end', p.peer && [p.peer.host ? link(to('hosts', p.peer.host), p.peer.host) : p.peer.name, `, port ${p.peer.port}`]],
      ['P_Keys', (p.p_keys || []).join(' ')], ['On the map', link(to('fabric', '', {at: id}), `${p.name}/${number}`)], ['Degraded', p.degraded], ['Problem', p.problem],
    ]));
  }, (err) => { if (err) about.replaceChildren(refusal(err)); });
  repeat(3000, signal, async () => {
    list.set(await find('/v1/fabric/violations', {}, signal, (v) => v.place === id));
  }, (err) => wrong.replaceChildren(...(err ? [refusal(err)] : [])));
  main.append(section('Port', about), section('Violations', wrong, list.node));
}
