// Lists that are shown a page at a time, and as they are now.

import {pause as rest, repeat} from './api.js';
import {el, refusal} from './dom.js';

// paged asks for a page of a list every so often and shows it. ask takes a cursor, and returns the page. shown is called with
// the items of each. It returns what stands above and below the list. While pause holds the page, the list stays as it is; its
// buttons work. While live says when the list changes, it is asked for then, and else only once a minute.
export function paged({signal, list, ask, every, what, shown = () => {}, pause, live}) {
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
  let asked = 0; // when the list was asked for last, by the clock of the page
  let stale = true; // it is not what it was when live last said something
  let busy = false;
  // changed asks for the list, and once more if it changed meanwhile; twice a second at most.
  async function changed() {
    stale = true;
    if (busy) return;
    busy = true;
    while (stale && !signal.aborted && !pause?.held()) {
      stale = false;
      asked = performance.now();
      try {
        await look(pause?.held);
        failed(null);
      } catch (err) {
        if (signal.aborted) break;
        stale = true;
        failed(err);
        break; // the next turn of repeat tries again
      }
      await rest(500, signal);
    }
    busy = false;
  }
  live?.changed(changed);
  const fresh = () => live?.on() && !stale && performance.now() - asked < 60000;
  const work = () => {
    if (pause?.held() || fresh()) return undefined;
    return live?.on() ? changed() : look(pause?.held);
  };
  // A reason that is shown stays, too, while the page is held: nothing was asked for since.
  repeat(every, signal, work, (err) => { if (err || !pause?.held() && !live?.on()) failed(err); });
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
