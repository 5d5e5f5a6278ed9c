// The keys of devices: how they stand, and how old they are. No answer of the API has a key.

import {get, repeat} from './api.js';
import {badge, el, facts, moment, refusal, section, span, time} from './dom.js';
import {paged} from './paged.js';
import {table} from './table.js';

export const title = 'Keys';

const good = new Set(['held', 'returned']);

const devices = [
  {name: 'Port', value: (k) => k.at || k.guid},
  {name: 'Port GUID', value: (k) => k.guid},
  {name: 'Kind', value: (k) => k.kind},
  {name: 'State', value: (k) => k.state, show: (k) => badge(k.state, good.has(k.state) ? 'good' : 'wait')},
  {name: 'Age', value: (k) => (k.epoch || k.since ? span(k.age_seconds) : '')},
  {name: 'Made', value: (k) => moment(k.since), show: (k) => time(k.since)},
  {name: 'Old', value: (k) => k.old},
];

const classes = [
  {name: 'Kind', value: (c) => c.kind},
  {name: 'Use', value: (c) => c.enable},
  {name: 'Settled', value: (c) => c.settled},
  {name: 'Under way', value: (c) => c.working},
  {name: 'Absent', value: (c) => c.absent},
  {name: 'Failing', value: (c) => c.failing},
  {name: 'Old', value: (c) => c.old},
  {name: 'Oldest', value: (c) => span(c.oldest_seconds)},
];

// counted lists numbers by their names.
const counted = (counts) => Object.entries(counts || {}).filter(([, n]) => n).map(([name, n]) => `${n} ${name}`).join(', ');

// show fills the page.
export function show({main, signal}) {
  const about = el('div', {}, el('p', {class: 'none'}, 'Asking…'));
  const kinds = table('Keys of management classes', classes, (c) => c.kind);
  repeat(5000, signal, async () => {
    const k = await get('/v1/fabric/keys', {signal});
    const r = k.rotation;
    about.replaceChildren(facts([
      ['M_Keys', k.managed ? badge('managed', 'good') : badge('not managed', 'wait')],
      ['Given back', k.releasing ? (k.released ? 'all, as far as devices could be asked' : 'under way') : ''],
      ['Place of a device', k.places], ['Devices', counted(k.devices)], ['Old', counted(k.old)],
      ['Oldest key', span(k.oldest_seconds)], ['Half of the keys are younger than', span(k.median_seconds)],
      ['Keys change', r.period_seconds ? `every ${span(r.period_seconds)}` : 'not by themselves'],
      ['Cycle', r.epoch ? `${r.epoch}` : ''], ['Began', time(r.began)], ['Ended', time(r.ended)], ['Changing now', r.turning ? `${r.turning} devices` : ''],
    ]));
    kinds.set(k.classes || []);
  }, (err) => { if (err) about.replaceChildren(refusal(err)); });
  main.append(section('Keys', about), section('Classes', kinds.node), section('Devices', ...paged({
    signal, list: table('M_Keys of end ports; the keys themselves are not shown', devices, (k) => `${k.guid} ${k.kind}`), every: 10000, what: 'end ports',
    ask: (after) => get('/v1/fabric/keys/devices', {signal, query: {limit: 100, after}}),
  })));
}
