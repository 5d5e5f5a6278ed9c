// Lists that are shown a page at a time, and as they are now.

import {repeat} from './api.js';
import {el, refusal} from './dom.js';

// paged asks for a page of a list every so often and shows it. ask takes a cursor, and returns the page. shown is called with
// the items of each. It returns what stands above and below the list. While pause holds the page, the list stays as it is; its
// buttons work.
export function paged({signal, list, ask, every, what, shown = () => {}, pause}) {
  const before = ['']; // cursors of the pages up to this one
  let next = '';
  const wrong = el('div');
  const back = el('button', {type: 'button', disabled: true}, 'Previous page');
  const forth = el('button', {type: 'button', disabled: true}, 'Next page');
  const where = el('span');

  async function look(held) {
    const after = before.at(-1);
    const got = await ask(after);
    if (after !== before.at(-1) || held?.()) return; // another page was asked for meanwhile, or the list is to stay
    list.set(got.items);
    next = got.next || '';
    back.disabled = before.length < 2;
    forth.disabled = !next;
    where.textContent = `Page ${before.length}, ${got.items.length} ${what}${next && !got.items.length ? '; there may be some on the next page' : ''}`;
    shown(got.items);
  }
  const pager = el('p', {class: 'pager'}, back, where, forth);
  const failed = (err) => {
    wrong.replaceChildren(...(err ? [refusal(err)] : []));
    list.node.hidden = pager.hidden = err?.status === 403; // what the reader may not see is no empty list
  };
  const turn = () => look().then(() => failed(null), (err) => { if (!signal.aborted) failed(err); });
  back.addEventListener('click', () => { before.pop(); turn(); });
  forth.addEventListener('click', () => { before.push(next); turn(); });
  pause?.resumed(turn);
  // A reason that is shown stays, too, while the page is held: nothing was asked for since.
  repeat(every, signal, () => (pause?.held() ? undefined : look(pause?.held)), (err) => { if (err || !pause?.held()) failed(err); });
  return [wrong, list.node, pager];
}

// filters makes a form that asks for a part of a list: fields of text or of another type, and choices. go is called with what
// was entered.
export function filters(name, query, fields, choices, go) {
  const inputs = fields.map(([key, label, type = 'search']) => el('label', {}, label,
    el('input', {type, 'data-key': key, value: query.get(key) || '', autocomplete: 'off', spellcheck: 'false'})));
  const selects = choices.map(([key, label, values]) => el('label', {}, label, el('select', {'data-key': key}, el('option', {value: ''}, 'any'),
    values.map((v) => el('option', {value: v, selected: query.get(key) === v}, v)))));
  const form = el('form', {class: 'filters', role: 'search', 'aria-label': name}, inputs, selects, el('button', {type: 'submit'}, 'Show'));
  form.addEventListener('submit', (e) => {
    e.preventDefault();
    const asked = {};
    for (const input of form.querySelectorAll('[data-key]')) asked[input.getAttribute('data-key')] = input.value.trim();
    go(asked);
  });
  form.addEventListener('change', (e) => { if (e.target.matches('select')) form.requestSubmit(); });
  return form;
}
