// Tenants, their clusters with P_Keys, and P_Keys that rest until they are proven absent.

import {all, get, repeat} from './api.js';
import {el, facts, link, moment, refusal, section, time, to} from './dom.js';
import {listOf} from './hosts.js';
import {receipts} from './receipt.js';
import {table} from './table.js';

const tenants = [
  {name: 'Tenant', value: (t) => t.name, show: (t) => link(to('hosts', '', {tenant: t.name}), t.name)},
  {name: 'Ranges of P_Keys', value: (t) => (t.p_keys || []).join(' ')},
  {name: 'Created', value: (t) => moment(t.created), show: (t) => time(t.created)},
];

const clusters = [
  {name: 'Cluster', value: (c) => c.name, show: (c) => link(to('clusters', c.name), c.name)},
  {name: 'Tenant', value: (c) => c.tenant},
  {name: 'P_Key', value: (c) => c.p_key},
  {name: 'Hosts', value: (c) => c.hosts.length},
  {name: 'Shared', value: (c) => (c.shared ? 'shared' : '')},
  {name: 'Uses', value: (c) => (c.uses || []).join(' ')},
  {name: 'Created', value: (c) => moment(c.created), show: (c) => time(c.created)},
];

const resting = [
  {name: 'P_Key', value: (k) => k.p_key},
  {name: 'Since', value: (k) => moment(k.since), show: (k) => time(k.since)},
  {name: 'Not proven yet', value: (k) => (k.waiting || []).join('; ')},
];

// most is how many items of a kind are shown at once.
const most = 5000;

function part(name, caption, columns, key, path, signal) {
  const list = table(caption, columns, key);
  const wrong = el('div');
  repeat(5000, signal, async () => {
    const items = [];
    const more = await all(path, {}, signal, (page) => items.push(...page), most);
    list.set(items);
    wrong.replaceChildren(...(more ? [el('p', {}, `These are the first ${items.length}.`)] : []));
  }, (err) => { if (err) wrong.replaceChildren(refusal(err)); });
  return section(name, wrong, list.node);
}

// list shows all of them.
export const list = {
  title: 'Tenants',
  show({main, signal}) {
    main.append(
      part('Clusters', 'Clusters by name', clusters, (c) => c.name, '/v1/clusters', signal),
      part('Tenants', 'Tenants by name', tenants, (t) => t.name, '/v1/tenants', signal),
      part('Resting P_Keys', 'P_Keys that no cluster gets yet', resting, (k) => k.p_key, '/v1/pkeys/quarantined', signal),
    );
  },
};

// one shows a cluster and its members.
export const one = {
  title: 'Cluster',
  show({main, signal, id, say}) {
    const about = el('div');
    const proof = el('div');
    let before = '';
    repeat(5000, signal, async () => {
      const c = await get(`/v1/clusters/${encodeURIComponent(id)}`, {signal});
      const now = JSON.stringify(c);
      if (now === before) return;
      before = now;
      if (!proof.hasChildNodes()) proof.append(receipts(c.tenant, signal, say));
      about.replaceChildren(facts([
        ['Tenant', link(to('hosts', '', {tenant: c.tenant}), c.tenant)], ['P_Key', c.p_key], ['Hosts', String(c.hosts.length)], ['Created', time(c.created)],
        ['Shared', c.shared && 'Hosts of the clusters that use it are limited members.'], ['Uses', (c.uses || []).join(', ')], ['Users', (c.users || []).join(', ')],
      ]));
    }, (err) => { if (err) about.replaceChildren(refusal(err)); });
    main.append(section('Partition', about), proof, section('Members', ...listOf({cluster: id}, signal, say)));
  },
};
