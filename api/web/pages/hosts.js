// The list of hosts: filtered, searched, a page at a time, and as it is now.

import {get} from './api.js';
import {link, moment, time, to} from './dom.js';
import {filters, paged} from './paged.js';
import {phase, phases} from './phases.js';
import {table} from './table.js';

export const title = 'Hosts';

const columns = [
  {name: 'Host', value: (h) => h.id, show: (h) => link(to('hosts', h.id), h.id)},
  {name: 'Phase', value: (h) => h.phase, show: (h) => phase(h.phase)},
  {name: 'Since', value: (h) => moment(h.since), show: (h) => time(h.since)},
  {name: 'Tenant', value: (h) => h.tenant},
  {name: 'Cluster', value: (h) => h.cluster, show: (h) => (h.cluster ? link(to('clusters', h.cluster), h.cluster) : '')},
  {name: 'P_Key', value: (h) => h.p_key},
  {name: 'Rack', value: (h) => h.rack},
  {name: 'Why not', value: (h) => h.why},
];

const fields = [['prefix', 'Id begins with'], ['tenant', 'Tenant'], ['cluster', 'Cluster'], ['rack', 'Rack']];

// listOf makes a list of the hosts that a query asks for, and says which of them change their phase.
export function listOf(query, signal, say) {
  const known = new Map(); // phases as shown last
  return paged({
    signal, list: table('Hosts by id', columns, (h) => h.id), every: 3000, what: 'hosts',
    ask: (after) => get('/v1/hosts', {signal, query: {view: 'summary', limit: 100, ...query, after}}),
    shown(items) {
      const changed = items.filter((h) => known.has(h.id) && known.get(h.id) !== h.phase);
      if (changed.length > 3) say(`${changed.length} hosts changed their phase`);
      else if (changed.length) say(changed.map((h) => `${h.id} is ${h.phase}`).join(', '));
      known.clear();
      for (const h of items) known.set(h.id, h.phase);
    },
  });
}

// show fills the page.
export function show({main, signal, query, say}) {
  const asked = {};
  for (const name of [...fields.map((f) => f[0]), 'phase']) if (query.get(name)) asked[name] = query.get(name);
  main.append(filters('Hosts', query, fields, [['phase', 'Phase', phases]], (q) => { location.hash = to('hosts', '', q); }),
    ...listOf(asked, signal, say));
}
