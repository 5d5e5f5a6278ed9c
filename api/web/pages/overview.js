// The overview: is the service ready, where do the hosts stand, who leads, and what is held back.

import {all, get, repeat} from './api.js';
import {badge, el, facts, link, refusal, section, time, to} from './dom.js';
import {phase, phases} from './phases.js';

export const title = 'Overview';

// part is a section whose content is asked for again and again. A part that is refused says why, and the others go on.
function part(name, ms, signal, ask) {
  const inside = el('div', {}, el('p', {class: 'none'}, 'Asking…'));
  let before = '';
  repeat(ms, signal, async () => {
    const {state, show} = await ask();
    const now = JSON.stringify(state);
    if (now === before) return;
    before = now;
    inside.replaceChildren(...[show()].flat());
  }, (err) => {
    if (!err) return;
    before = '';
    inside.replaceChildren(refusal(err));
  });
  return section(name, inside);
}

function readiness(signal) {
  return part('Service', 5000, signal, async () => {
    const state = await get('/readyz', {signal, alsoGood: [503]});
    return {
      state,
      show: () => [
        el('p', {}, state.ready ? badge('ready', 'good') : badge('not ready', 'bad')),
        el('ul', {class: 'checks'}, (state.checks || []).map((c) => el('li', {},
          badge(c.ok ? 'ok' : 'not ok', c.ok ? 'good' : 'bad'), ' ', el('strong', {}, c.name), c.detail ? `: ${c.detail}` : ''))),
      ],
    };
  });
}

function hosts(signal) {
  return part('Hosts', 15000, signal, async () => {
    const counts = Object.fromEntries(phases.map((p) => [p, 0]));
    let total = 0;
    await all('/v1/hosts', {view: 'summary'}, signal, (items) => {
      for (const h of items) counts[h.phase] += 1;
      total += items.length;
    });
    return {
      state: {total, ...counts},
      show: () => [
        el('p', {}, `${total} in inventory.`),
        el('ul', {class: 'counts'}, phases.map((p) => el('li', {},
          link(to('hosts', '', {phase: p}), el('span', {class: 'number'}, counts[p]), ' ', phase(p))))),
      ],
    };
  });
}

const sights = {clear: 'good', 'partly-blind': 'bad', blind: 'bad'};

function manager(signal) {
  return part('Subnet Manager', 5000, signal, async () => {
    const sm = await get('/v1/sm', {signal});
    const sight = sm.sight || {};
    return {
      state: [sm.state, sm.settled, sm.pending, sm.problems, sm.leader, sm.epoch, sm.instances?.map((i) => i.name), sight, sm.guid, sm.lid],
      show: () => [
        facts([
          ['State', badge(sm.state, /^(master|standby)$/i.test(sm.state) ? 'good' : 'bad')],
          ['Fabric', sm.state === 'unreachable' ? '' : sm.settled ? badge('settled', 'good') : badge(`settling, ${sm.pending} requests under way`, 'wait')],
          ['Sight', sight.state ? [badge(sight.state, sights[sight.state] || 'plain'), sight.reason ? ` ${sight.reason}` : ''] : 'not judged yet'],
          ['Out of sight', sight.nodes ? `${sight.nodes} nodes, ${sight.hosts} hosts` : ''],
          ['Port', sm.guid], ['LID', sm.lid],
          ['Leader', sm.leader], ['Epoch', sm.epoch], ['Leads since', sm.leader ? time(sm.since) : ''],
        ]),
        sm.problems?.length ? el('ul', {}, sm.problems.map((p) => el('li', {}, p))) : '',
        sm.instances?.length ? [
          el('h3', {}, 'Instances'),
          el('ul', {}, sm.instances.map((i) => el('li', {}, el('strong', {}, i.name), i.name === sm.leader ? ' (leads)' : '', i.api ? `, ${i.api}` : ''))),
        ] : '',
      ].flat(),
    };
  });
}

function fabric(signal) {
  return part('Fabric', 10000, signal, async () => {
    const o = await get('/v1/fabric/overview', {signal});
    return {
      state: {...o, observed: ''},
      show: () => [
        facts([
          ['Switches', o.nodes.switches], ['Adapters', o.nodes.cas], ['Ports with a cable', o.ports.cabled],
          ['Active ports', o.ports.active], ['Degraded links', String(o.degraded_links)], ['Partitions', String(o.p_keys)],
        ]),
        o.faults.length ? el('ul', {}, o.faults.slice(0, 20).map((f) => el('li', {}, f.at ? `${f.at}: ` : '', f.text))) : el('p', {}, 'No faults.'),
      ],
    };
  });
}

function brakes(signal) {
  return part('Brakes', 5000, signal, async () => {
    const state = await get('/v1/admission/brake', {signal});
    return {
      state,
      show: () => [
        el('ul', {class: 'checks'}, state.items.map((b) => el('li', {},
          badge(b.engaged ? 'engaged' : 'not engaged', b.engaged ? 'bad' : 'good'), ' ', el('strong', {}, b.class),
          b.engaged ? `: ${b.held} hosts keep memberships that automatic causes would take` : ''))),
        el('p', {}, `At most ${state.limits.hosts} hosts, and ${state.limits.share * 100} % of them, lose memberships by automatic causes within ${state.limits.within}.`),
      ],
    };
  });
}

// show fills the page.
export function show({main, signal}) {
  main.append(el('div', {class: 'parts'}, readiness(signal), hosts(signal), manager(signal), brakes(signal), fabric(signal)));
}
