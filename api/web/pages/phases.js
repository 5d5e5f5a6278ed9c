// Phases and states of hosts, as docs/understand/life-cycle.md has them.

import {badge, svg, el} from './dom.js';

// phases are in the order of a host's life.
export const phases = ['quarantined', 'awaiting', 'verified', 'granting', 'admitted', 'releasing'];

const kinds = {
  quarantined: 'plain', awaiting: 'wait', verified: 'wait', granting: 'wait', admitted: 'good', releasing: 'wait',
};

// phase shows a phase.
export function phase(name) {
  return badge(name, kinds[name] || 'plain');
}

// The states on the way in and out, and those that a host is held in, each beside a state that it leaves.
const way = ['registered', 'window-open', 'attested', 'proven', 'granting', 'admitted', 'releasing', 'released'];
const aside = {fenced: 0, 'window-shut': 1, suspended: 4, quarantined: 7};

const meanings = {
  registered: 'It is in inventory, and was never assigned.',
  released: 'The last assignment has ended. No P_Key of it is left in a switch port.',
  fenced: 'As released, and a switch port of the host is shut.',
  quarantined: 'As released, and another host claims a GUID of it.',
  'window-open': 'It is assigned. Evidence is accepted until the window closes.',
  'window-shut': 'It is assigned, and has no evidence that counts. The window has closed.',
  suspended: 'It is assigned, and another host claims a GUID of it.',
  attested: 'Evidence was accepted. The host was not handed over yet.',
  proven: 'It was handed over. A condition of inventory, fabric or review is missing.',
  granting: 'A grant is given, and not read back from each port.',
  admitted: 'Each grant was read back.',
  releasing: 'The assignment has ended. A P_Key of it may still be in a switch port.',
};

// meaning says what a state is.
export function meaning(state) {
  return meanings[state] || '';
}

const wide = 142;
const high = 56;
const box = {width: 122, height: 34};

function state(name, [x, y], now) {
  return svg('g', {class: name === now ? 'state here' : 'state'},
    svg('rect', {x, y, rx: 6, ...box}),
    svg('text', {x: x + box.width / 2, y: y + 22, 'text-anchor': 'middle'}, name));
}

// place is the left upper corner of a state of the way: two in a row, to and fro, so that the picture can be read on a
// narrow screen too.
function place(i) {
  const row = Math.floor(i / 2);
  return [(row % 2 ? 1 - (i % 2) : i % 2) * wide, row * high];
}

// step is the line from one state to the next.
function step([x, y], [nx, ny]) {
  const [mx, my] = [x + box.width / 2, y + box.height / 2];
  const points = ny > y ? [mx, y + box.height, mx, ny] : nx > x ? [x + box.width, my, nx, my] : [x, my, nx + box.width, my];
  return svg('polyline', {class: 'step', points: points.join(' ')});
}

// lifecycle draws the life of a host, with the state that it is in. The words below the picture say the same.
export function lifecycle(now) {
  const held = Object.hasOwn(aside, now);
  const picture = svg('svg', {
    viewBox: `-4 -4 ${(held ? 3 : 2) * wide - wide + box.width + 8} ${way.length / 2 * high - high + box.height + 8}`,
    role: 'img', class: held ? 'lifecycle wide' : 'lifecycle',
    'aria-label': `Life of a host: ${way.join(', ')}. This host is ${now || 'in no known state'}.`,
  });
  way.forEach((name, i) => {
    if (i + 1 < way.length) picture.append(step(place(i), place(i + 1)));
    picture.append(state(name, place(i), now));
  });
  if (held) {
    const [, y] = place(aside[now]);
    picture.append(state(now, [2 * wide, y], now));
  }
  return el('figure', {}, picture, el('figcaption', {}, now ? `${now}: ${meaning(now)}` : 'The state is not known.'));
}
