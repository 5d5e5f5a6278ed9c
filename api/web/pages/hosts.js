// The list of hosts: filtered, searched, a page at a time, and as it is now.

import {get, repeat} from './api.js';
import {el, link, refusal, time, moment, to} from './dom.js';
import {phase, phases} from './phases.js';
import {table} from './table.js';

export const title = 'Hosts';

const page = 100;

const columns = [
  {name: 'Host', value: (h) => h.id, show: (h) => link(to('hosts', h.id), h.id)},
  {name: 'Phase', value: (h) => h.phase, show: (h) => phase(h.phase)},
  {name: 'Since', value: (h) => moment(h.since), show: (h) => time(h.since)},
  {name: 'Tenant', value: (h) => h.tenant},
  {name: 'Cluster', value: (h) => h.cluster},
  {name: 'P_Key', value: (h) => h.p_key},
  {name: 'Rack', value: (h) => h.rack},
  {name: 'Why not', value: (h) => h.why},
];

const fields = [['prefix', 'Id begins with'], ['tenant', 'Tenant'], ['cluster', 'Cluster'], ['rack', 'Rack']];

// filters makes the form that asks for a part of the hosts.
function filters(query) {
  const inputs = fields.map(([name, label]) => el('label', {}, label,
    el('input', {type: 'search', 'data-key': name, value: query.get(name) || '', autocomplete: 'off', spellcheck: 'false'})));
  const choice = el('select', {'data-key': 'phase'}, el('option', {value: ''}, 'any'),
    phases.map((p) => el('option', {value: p, selected: query.get('phase') === p}, p)));
  const form = el('form', {class: 'filters', role: 'search', 'aria-label': 'Hosts'}, inputs, el('label', {}, 'Phase', choice),
    el('button', {type: 'submit'}, 'Show'));
  form.addEventListener('submit', (e) => {
    e.preventDefault();
    const asked = {};
    for (const input of form.querySelectorAll('[data-key]')) asked[input.getAttribute('data-key')] = input.value.trim();
    location.hash = to('hosts', '', asked);
  });
  choice.addEventListener('change', () => form.requestSubmit());
  return form;
}

// show fills the page.
export function show({main, signal, query, say}) {
  const list = table('Hosts by id', columns, (h) => h.id);
  const wrong = el('div');
  const state = {before: [''], next: ''}; // cursors of the pages up to this one, and of the next
  const back = el('button', {type: 'button', disabled: true}, 'Previous page');
  const forth = el('button', {type: 'button', disabled: true}, 'Next page');
  const where = el('span', {});
  main.append(filters(query), wrong, list.node, el('p', {class: 'pager'}, back, where, forth));

  const asked = {view: 'summary', limit: page};
  for (const name of [...fields.map((f) => f[0]), 'phase']) if (query.get(name)) asked[name] = query.get(name);
  const known = new Map(); // phases as shown last
  async function ask() {
    const after = state.before.at(-1);
    const got = await get('/v1/hosts', {signal, query: {...asked, after}});
    if (after !== state.before.at(-1)) return; // another page was asked for meanwhile
    list.set(got.items);
    state.next = got.next || '';
    back.disabled = state.before.length < 2;
    forth.disabled = !state.next;
    where.textContent = `Page ${state.before.length}, ${got.items.length} hosts`;
    const changed = got.items.filter((h) => known.has(h.id) && known.get(h.id) !== h.phase);
    if (changed.length > 3) say(`${changed.length} hosts changed their phase`);
    else if (changed.length) say(changed.map((h) => `${h.id} is ${h.phase}`).join(', '));
    for (const h of got.items) known.set(h.id, h.phase);
  }
  const failed = (err) => wrong.replaceChildren(...(err ? [refusal(err)] : []));
  function turn(change) {
    change();
    known.clear();
    ask().then(() => failed(null), (err) => { if (!signal.aborted) failed(err); });
  }
  back.addEventListener('click', () => turn(() => state.before.pop()));
  forth.addEventListener('click', () => turn(() => state.before.push(state.next)));
  repeat(3000, signal, ask, failed);
}
