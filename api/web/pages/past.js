// The time of the map: a slider over what was recorded, with marks where something changed, and steps from change to change.

import {get, repeat} from './api.js';
import {badge, el, moment, refusal, span, svg} from './dom.js';

const minute = 60;

// mostGaps is how many gaps are listed in words.
const mostGaps = 10;

// wait is for how long the slider rests before the map is asked for.
const wait = 150;

const seconds = (text) => Date.parse(text) / 1000;

// strip draws when something changed, the higher the more, and what is not known as a block.
function strip(known, from, until) {
  const wide = 1000;
  const x = (s) => Math.round((10 * wide * Math.min(Math.max(s - from, 0), until - from)) / Math.max(until - from, 1)) / 10;
  const most = known.marks.reduce((n, m) => Math.max(n, m.changes), 1);
  const high = (n) => Math.round(4 + (20 * Math.log(1 + n)) / Math.log(1 + most));
  const block = (a, b) => `M${x(a)} 0H${Math.max(x(b), x(a) + 1)}V26H${x(a)}Z`;
  const gaps = known.gaps.map((g) => block(seconds(g.from), seconds(g.until)));
  if (known.until && until - seconds(known.until) > minute) gaps.push(block(seconds(known.until), until));
  const marks = known.marks.map((m) => `M${x(seconds(m.time) + minute / 2)} 26V${26 - high(m.changes)}`);
  return svg('svg', {viewBox: `0 0 ${wide} 26`, class: 'strip', preserveAspectRatio: 'none', 'aria-hidden': 'true'},
    svg('path', {class: 'gap', d: gaps.join('')}), svg('path', {class: 'mark', d: marks.join('')}));
}

// words says what the strip shows.
function words(known) {
  if (!known.from) return [el('p', {}, `Nothing was recorded yet. ${known.why || ''}`)];
  const {gaps} = known;
  return [
    known.failure ? el('p', {class: 'refusal'}, `Nothing is recorded now: ${known.failure}`) : '',
    el('p', {class: 'none'}, `Known from ${moment(known.from)} to ${moment(known.until)}. Something changed in ${known.marks.length} minutes of it. `,
      `A change is noticed up to ${span(known.every_seconds)} later, and one that does not last that long may be missing. What is older than ${span(known.keep_seconds)} is removed.`,
      known.short ? ' What was earlier was removed, since there is room for no more.' : ''),
    gaps.length ? el('ul', {class: 'gaps'}, gaps.slice(-mostGaps).map((g) => el('li', {}, `Not known from ${moment(g.from)} to ${moment(g.until)}: ${g.why}`)),
      gaps.length > mostGaps || known.gaps_left_out ? el('li', {}, `and ${gaps.length - Math.min(gaps.length, mostGaps) + (known.gaps_left_out || 0)} earlier ones`) : '') : '',
  ];
}

// past makes the controls. show is called with a time (RFC 3339) of which the map is to be shown, or with nothing for now. It returns what it
// shows: known, why, previous and next.
export function past(signal, show) {
  const slider = el('input', {type: 'range', id: 'past', value: '0', disabled: true, 'aria-describedby': 'past-said'});
  const marks = el('div');
  const said = el('p', {id: 'past-said', role: 'status', class: 'time'}); // is empty while the map shows the present
  const about = el('div');
  const wrong = el('div');
  let known = null;
  let at = null; // what the map is to show; null: now
  let shown = null; // what it shows
  let until = 0; // of the slider
  let step = minute; // of the slider, 1 s to a minute
  let asked = 0; // counts what was asked for, so that an answer that comes late is not shown
  let timer = 0;

  const button = (name, action) => {
    const b = el('button', {type: 'button', disabled: true}, name);
    b.addEventListener('click', action);
    return b;
  };
  const back = button('Previous change', () => go(known.previous));
  const forth = button('Next change', () => go(known.next));
  const now = button('Now', () => go(null));
  const node = el('details', {class: 'past'}, el('summary', {}, 'Past'), el('div', {class: 'slider'}, marks, el('label', {for: 'past'}, 'Time', slider)),
    el('p', {class: 'pager'}, back, forth, now), wrong, about);

  function place() {
    const s = at ? seconds(at) : until;
    slider.value = String(s);
    slider.setAttribute('aria-valuetext', at ? moment(at) : 'now');
    back.disabled = !known?.previous;
    forth.disabled = !known?.next;
    now.disabled = !at;
  }

  // steps keeps where the buttons lead.
  function steps(got) {
    if (!known) return;
    [known.previous, known.next] = [got?.previous, got?.next];
  }

  async function go(to) {
    clearTimeout(timer);
    const mine = asked += 1;
    at = to || null;
    place();
    try {
      const got = await show(at);
      if (mine !== asked || signal.aborted) return;
      shown = at;
      wrong.replaceChildren();
      steps(got);
      said.replaceChildren(...(!at ? []
        : got.known ? [badge('past', 'wait'), ` The map shows the past: ${moment(at)}. Nothing of it is live, paths cannot be asked for, and links lead to what is there now.`]
          : [badge('not known', 'bad'), ` ${moment(at)}: nothing is known of this time: ${got.why}.`]));
      if (!at) await look();
    } catch (err) {
      if (mine !== asked || signal.aborted) return;
      at = shown;
      wrong.replaceChildren(refusal(err));
    }
    place();
  }

  slider.addEventListener('input', () => {
    const s = Number(slider.value);
    const live = s >= until - step / 2;
    slider.setAttribute('aria-valuetext', live ? 'now' : moment(new Date(1000 * s).toISOString()));
    clearTimeout(timer);
    timer = setTimeout(() => go(live ? null : new Date(1000 * s).toISOString()), wait);
  });
  signal.addEventListener('abort', () => clearTimeout(timer));

  // look asks what is known, and where the last change is.
  async function look() {
    const got = await get('/v1/fabric/history', {signal});
    const was = known;
    known = got;
    if (at) steps(was);
    else steps({previous: got.changed});
    until = Math.max(Date.now() / 1000, got.until ? seconds(got.until) : 0);
    const from = Math.min(got.from ? Math.ceil(seconds(got.from)) : until, until - 1);
    step = Math.max(1, Math.min(minute, Math.floor((until - from) / 60)));
    [slider.min, slider.max, slider.step] = [String(from), String(until), String(step)];
    slider.disabled = !got.from;
    marks.replaceChildren(strip(got, Number(slider.min), until));
    about.replaceChildren(...words(got));
    place();
  }

  let looks = null;
  node.addEventListener('toggle', () => {
    looks?.abort();
    if (!node.open) {
      clearTimeout(timer);
      if (at || shown) go(null);
      return;
    }
    looks = new AbortController();
    const both = AbortSignal.any([signal, looks.signal]);
    repeat(30000, both, look, (err) => { if (!both.aborted) wrong.replaceChildren(...(err ? [refusal(err)] : [])); });
  });
  return {node, said};
}
