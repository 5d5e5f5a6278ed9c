// The instances of the service: which one leads, and how each stands.

import {get, repeat} from './api.js';
import {badge, el, facts, link, moment, refusal, section, span, time, to} from './dom.js';
import {table} from './table.js';

export const title = 'Instances';

// An instance writes its record at least every hour, and looks after it every ten minutes.
const stale = 2 * 3600;

const standing = (i) => (i.age > stale ? ['silent', 'bad'] : i.leads ? ['leads', 'good'] : i.manages ? ['stands by', 'good'] : ['no role sm', 'plain']);

const columns = [
  {name: 'Instance', value: (i) => i.name},
  {name: 'State', value: (i) => standing(i)[0], show: (i) => badge(...standing(i))},
  {name: 'Answers here', value: (i) => (i.answers ? 'yes' : '')},
  {name: 'API', value: (i) => i.api || 'none'},
  {name: 'Port', value: (i) => i.port},
  {name: 'Cabled to', value: (i) => i.place, show: (i) => (i.place ? link(to('ports', i.place), i.place) : '')},
  {name: 'Wrote its record', value: (i) => moment(i.seen), show: (i) => time(i.seen)},
  {name: 'Ago', value: (i) => span(Math.max(i.age, 0))},
];

const clocks = {steady: 'good', behind: 'bad', waiting: 'wait', ahead: 'bad'};

// show fills the page.
export function show({main, signal}) {
  const led = el('div', {}, el('p', {class: 'none'}, 'Asking…'));
  const list = table('Instances that wrote their record within a week, by name', columns, (i) => i.name);
  list.node.hidden = true;
  const clock = el('div', {}, el('p', {class: 'none'}, 'Asking…'));
  const ready = el('div', {}, el('p', {class: 'none'}, 'Asking…'));
  let answering = '';
  let all = [];
  let leader = '';
  const fill = () => {
    const now = Date.now();
    list.set(all.map((i) => ({...i, leads: i.name === leader, answers: i.name === answering, age: (now - new Date(i.seen)) / 1000})));
  };
  repeat(5000, signal, async () => {
    const c = await get('/v1/clock', {signal});
    answering = c.instance || '';
    fill();
    clock.replaceChildren(facts([
      ['Instance that answers', c.instance || 'the only one'], ['Clock', badge(c.state, clocks[c.state] || 'plain')], ['Since', time(c.since)],
      ['Its machine is off by', c.off], ['Tolerated', c.tolerance],
      ['Highest time recorded', time(c.highest)], ['Recorded by', c.by], ['Set by operators', `${c.set_times} times`],
    ]));
  }, (err) => { if (err) clock.replaceChildren(refusal(err)); });
  repeat(5000, signal, async () => {
    const state = await get('/readyz', {signal, alsoGood: [503]});
    ready.replaceChildren(el('p', {}, state.ready ? badge('ready', 'good') : badge('not ready', 'bad')),
      el('ul', {class: 'checks'}, (state.checks || []).map((c) => el('li', {},
        badge(c.ok ? 'ok' : 'not ok', c.ok ? 'good' : 'bad'), ' ', el('strong', {}, c.name), c.detail ? `: ${c.detail}` : ''))));
  }, (err) => { if (err) ready.replaceChildren(refusal(err)); });
  repeat(5000, signal, async () => {
    const sm = await get('/v1/sm', {signal});
    all = sm.instances || [];
    leader = sm.leader || '';
    list.node.hidden = all.length === 0;
    if (!all.length) {
      led.replaceChildren(el('p', {}, 'This instance is the only one. ', el('code', {}, 'portcullisd cluster init'), ' makes it the first of several.'));
      return;
    }
    led.replaceChildren(facts([
      ['Leader', sm.leader || badge('none leads at this moment', 'bad')], ['Epoch', String(sm.epoch || 0)], ['Leads since', sm.leader && time(sm.since)],
      ['Instances', String(all.length)], ['Able to lead', String(all.filter((i) => i.manages).length)],
    ]));
    fill();
  }, (err) => { if (err) led.replaceChildren(refusal(err)); });
  main.append(section('Leader', led), section('All instances', list.node, el('p', {class: 'none'},
    'Members of the store and how many records each has: ', el('code', {}, 'portcullisd cluster list'), ' on a machine of the cluster.')),
  el('div', {class: 'parts'}, section('Clock', clock), section('This instance', ready)));
}
