// The security profiles: the score of each, and every rule with its state, the evidence, the reason and the cure.

import {get, repeat} from './api.js';
import {badge, denied, el, link, moment, refusal, section, time, to} from './dom.js';
import {filters} from './paged.js';
import {table} from './table.js';

export const title = 'Profile';

// profiles in the order of the API: each has the rules of the one before.
const profiles = ['general', 'bare-metal-cloud', 'secured-bare-metal-cloud'];
const states = {fails: 'bad', unknown: 'wait', holds: 'good'}; // in the order of the list

const columns = [
  {name: 'Rule', value: (r) => r.rule},
  {name: 'State', value: (r) => r.state, show: (r) => badge(r.state, states[r.state])},
  {name: 'Profile', value: (r) => r.first_profile},
  {name: 'Why not', value: (r) => r.detail},
  {name: 'Evidence', value: (r) => r.source || 'none'},
  {name: 'Looked at', value: (r) => (r.at ? moment(r.at) : ''), show: (r) => (r.at ? time(r.at) : '')},
  {name: 'Why the rule', value: (r) => r.why},
  {name: 'Cure', value: (r) => (r.state === 'holds' ? '' : r.cure), show: (r) => (r.state === 'holds' ? '' : el('code', {}, r.cure))},
];

// rulesOf returns the rules that a profile has.
const rulesOf = (rules, profile) => rules.filter((r) => profiles.indexOf(r.first_profile) <= profiles.indexOf(profile));

// score is the share of rules that hold, in percent, rounded down as the service does.
function score(rules) {
  const counts = {holds: 0, fails: 0, unknown: 0};
  for (const r of rules) counts[r.state] += 1;
  return {...counts, percent: rules.length ? Math.floor((100 * counts.holds) / rules.length) : 0};
}

function card(rules, profile, chosen, state) {
  const s = score(rulesOf(rules, profile));
  const kind = s.fails ? 'bad' : s.unknown || !s.holds ? 'wait' : 'good';
  const a = link(to('profile', '', {name: profile, state}), el('span', {class: 'number'}, `${s.percent} %`), ' ', profile, ' ',
    badge(kind === 'good' ? 'holds' : kind === 'bad' ? 'fails' : 'unknown', kind), el('br'), `${s.holds} hold, ${s.fails} fail, ${s.unknown} unknown`);
  if (profile === chosen) a.setAttribute('aria-current', 'true');
  return el('li', {}, a);
}

// show fills the page.
export function show({main, signal, query}) {
  const asked = query.get('name');
  const chosen = profiles.includes(asked) ? asked : profiles.at(-1);
  const state = query.get('state') || '';
  const cards = el('ul', {class: 'counts scores'});
  const collected = el('p', {class: 'none'}, 'Asking…');
  const list = table(`Rules of ${chosen}${state ? `, those whose state is ${state}` : ''}`, columns, (r) => r.rule);
  const rules = section('Rules', filters('Rules', query, [], [['state', 'State', Object.keys(states)]],
    (q) => { location.hash = to('profile', '', {name: asked, ...q}); }), list.node);
  const wrong = el('div');
  main.append(wrong, section('Score', collected, cards), rules);
  repeat(30000, signal, async () => {
    // The last profile has the rules of all, so that one answer has the scores of all.
    const p = await get('/v1/profile', {signal, query: {name: profiles.at(-1)}});
    cards.replaceChildren(...profiles.map((name) => card(p.rules, name, chosen, state)));
    collected.replaceChildren('Share of rules that hold. A rule without evidence is unknown, and counts as one that does not hold. Collected ', time(p.collected), '.');
    const order = Object.keys(states);
    list.set(rulesOf(p.rules, chosen).filter((r) => !state || r.state === state).sort((a, b) => order.indexOf(a.state) - order.indexOf(b.state)));
  }, (err) => {
    wrong.replaceChildren(...(err ? [refusal(err)] : []));
    if (err?.status === 403) denied(main, err);
  });
}
