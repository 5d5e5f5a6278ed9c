// The map of the fabric: where each switch and host is drawn, and drawing it. It asks for nothing and knows no page.

// Sizes of the map, in its own units.
export const tile = {width: 116, head: 22, cell: 9, across: 12, gap: 14};

// badge is how wide the sign of a switch is, near its name.
const badge = 36;

const natural = new Intl.Collator('en', {numeric: true});

// tiers counts how far each switch is from those that hosts are at.
function tiers(switches, trunks) {
  const next = new Map(switches.map((s) => [s.guid, []]));
  for (const [a, b] of trunks) {
    next.get(a)?.push(b);
    next.get(b)?.push(a);
  }
  const tier = new Map();
  let edge = switches.filter((s) => s.hosts.length > 0).map((s) => s.guid);
  for (let n = 0; edge.length > 0; n += 1) {
    for (const guid of edge) tier.set(guid, n);
    edge = [...new Set(edge.flatMap((guid) => next.get(guid)))].filter((guid) => next.has(guid) && !tier.has(guid));
  }
  return tier;
}

// place lays a fabric out: rows of switches, the farthest from hosts above, and below each leaf a cell for each port of a host.
// A switch has guid, name and hosts; trunks are pairs of guids.
export function place(switches, trunks) {
  const tier = tiers(switches, trunks);
  const ranks = new Map();
  for (const s of switches) {
    const n = tier.get(s.guid) ?? Infinity; // behind no host: above all others
    if (!ranks.has(n)) ranks.set(n, []);
    ranks.get(n).push(s);
  }
  const columns = Math.max(1, Math.ceil(Math.sqrt(switches.length * 1.2)));
  const tiles = [];
  let y = 0;
  for (const n of [...ranks.keys()].sort((a, b) => b - a)) {
    const rank = ranks.get(n).sort((a, b) => natural.compare(a.name, b.name));
    const lines = Math.ceil(Math.max(...rank.map((s) => s.hosts.length)) / tile.across);
    const height = tile.head + lines * tile.cell + (lines ? 6 : 0);
    const width = Math.min(columns, rank.length);
    rank.forEach((s, i) => {
      const x = ((columns - width) / 2 + (i % columns)) * (tile.width + tile.gap);
      tiles.push({node: s, x, y: y + Math.floor(i / columns) * (height + tile.gap), width: tile.width, height});
    });
    y += Math.ceil(rank.length / columns) * (height + tile.gap) + 2 * tile.gap;
  }
  return {tiles, of: new Map(tiles.map((t) => [t.node.guid, t])), trunks, width: columns * (tile.width + tile.gap) - tile.gap, height: Math.max(y - 3 * tile.gap, 1)};
}

// cell is where a host's port is in its tile.
export function cell(t, i) {
  return {x: t.x + 4 + (i % tile.across) * tile.cell, y: t.y + tile.head + Math.floor(i / tile.across) * tile.cell, size: tile.cell - 1};
}

// at finds what is at a point: a tile, and the number of the host in it, or -1.
export function at(plan, x, y) {
  const t = plan.tiles.find((one) => x >= one.x && x < one.x + one.width && y >= one.y && y < one.y + one.height);
  if (!t) return null;
  const column = Math.floor((x - t.x - 4) / tile.cell);
  const line = Math.floor((y - t.y - tile.head) / tile.cell);
  const i = line * tile.across + column;
  const inside = column >= 0 && column < tile.across && line >= 0 && i < t.node.hosts.length;
  return {tile: t, host: inside ? i : -1};
}

// fit is the view that shows the whole plan.
export function fit(plan, width, height) {
  const scale = Math.min(width / (plan.width + 20), height / (plan.height + 20), 3);
  return {scale, x: (width - plan.width * scale) / 2, y: (height - plan.height * scale) / 2};
}

// course returns the points of a path: the cells of the ports of hosts at its ends, and the switches between. A hop has the node
// and the ports that it is entered and left by. What is not on the plan is left out.
export function course(plan, hops) {
  const points = [];
  hops.forEach((hop, i) => {
    const t = plan.of.get(hop.node_guid);
    if (t) {
      points.push([t.x + t.width / 2, t.y + tile.head / 2]);
      return;
    }
    const beside = i === 0 ? hops[1] : hops[i - 1]; // the leaf of a host
    const leaf = beside && plan.of.get(beside.node_guid);
    const host = leaf ? leaf.node.hosts.findIndex((h) => Number(h.place.split('/')[1]) === (i === 0 ? beside.in : beside.out)) : -1;
    if (host < 0) return;
    const c = cell(leaf, host);
    points.push([c.x + c.size / 2, c.y + c.size / 2]);
  });
  return points;
}

// bars are how many bars a mark has.
const bars = {'one bar': 1, 'two bars': 2, 'three bars': 3};

// mark draws a shape into a square: a white cross, a black ring, or one to three black bars.
function mark(ctx, shape, {x, y, size}) {
  if (!shape) return;
  const [a, b] = [size * 0.2, size * 0.8];
  ctx.lineWidth = size / 7;
  ctx.strokeStyle = shape === 'cross' ? '#fff' : '#000';
  ctx.beginPath();
  if (shape === 'cross') {
    ctx.moveTo(x + a, y + a);
    ctx.lineTo(x + b, y + b);
    ctx.moveTo(x + b, y + a);
    ctx.lineTo(x + a, y + b);
  } else if (bars[shape]) {
    for (let i = 1; i <= bars[shape]; i += 1) {
      ctx.moveTo(x + (size * i) / 4, y + a);
      ctx.lineTo(x + (size * i) / 4, y + b);
    }
  } else {
    ctx.arc(x + size / 2, y + size / 2, size / 4, 0, 2 * Math.PI);
  }
  ctx.stroke();
}

// marksOf draws marks beside each other.
function marksOf(ctx, marks, {x, y, size}) {
  marks.filter(Boolean).forEach((m, i) => mark(ctx, m, {x: x + i * (size + 4), y, size}));
}

// strand draws the line between two switches as it looks: its color, its width, and whether it is dashed.
function strand(ctx, from, to, look, scale) {
  ctx.strokeStyle = look.color;
  ctx.lineWidth = look.width / scale;
  ctx.setLineDash(look.dashed ? [6 / scale, 5 / scale] : []);
  ctx.beginPath();
  ctx.moveTo(...from);
  ctx.lineTo(...to);
  ctx.stroke();
  ctx.setLineDash([]);
}

// draw draws what of a plan is in a view. colorOf returns the color of a host, colors those of the page, chosen is what
// at returned, or null, and paths are points that lines go through, the second one dashed. Far away a leaf is one bar that shares its width by color; near, each port has a cell.
// markOf returns the shape in the cell of a host, or none. Far away a leaf has the shapes of its hosts once. leafOf returns color and marks of a
// whole switch: far away it has these alone, near they are at its name. looks are those of the trunks, in their order.
export function draw(ctx, plan, view, {width, height, colorOf, markOf, leafOf, looks, colors, chosen, paths = []}) {
  ctx.setTransform(1, 0, 0, 1, 0, 0);
  ctx.fillStyle = colors.back;
  ctx.fillRect(0, 0, width, height);
  ctx.setTransform(view.scale, 0, 0, view.scale, view.x, view.y);
  const left = -view.x / view.scale;
  const top = -view.y / view.scale;
  const [right, bottom] = [left + width / view.scale, top + height / view.scale];
  const middle = (t) => [t.x + t.width / 2, t.y + tile.head / 2];
  const few = plan.trunks.length <= 200;
  ctx.strokeStyle = colors.line;
  ctx.lineWidth = 1 / view.scale;
  ctx.beginPath();
  plan.trunks.forEach(([a, b], i) => {
    const look = looks?.[i];
    if (!few && !look?.always && (!chosen || (a !== chosen.tile.node.guid && b !== chosen.tile.node.guid))) return;
    const [from, to] = [plan.of.get(a), plan.of.get(b)];
    if (!from || !to) return;
    if (look) {
      strand(ctx, middle(from), middle(to), look, view.scale);
      return;
    }
    ctx.moveTo(...middle(from));
    ctx.lineTo(...middle(to));
  });
  if (!looks) ctx.stroke();
  ctx.font = '12px system-ui, sans-serif';
  ctx.textBaseline = 'middle';
  let cells = 0;
  for (const t of plan.tiles) {
    if (t.x > right || t.x + t.width < left || t.y > bottom || t.y + t.height < top) continue;
    ctx.fillStyle = t.node.problem ? colors.bad : colors.raised;
    ctx.fillRect(t.x, t.y, t.width, t.height);
    const {hosts} = t.node;
    if (view.scale * tile.cell < 3 && leafOf) {
      const {color, marks} = leafOf(t.node);
      ctx.fillStyle = color;
      ctx.fillRect(t.x, t.y + 4, t.width, t.height - 8);
      marksOf(ctx, marks, {x: t.x + 4, y: t.y + 4, size: Math.min(t.height - 8, t.width / 3)});
    } else if (view.scale * tile.cell < 3) {
      const shares = new Map();
      for (const h of hosts) {
        const color = colorOf(h);
        shares.set(color, (shares.get(color) || 0) + 1);
      }
      let x = t.x;
      for (const [color, n] of shares) {
        ctx.fillStyle = color;
        ctx.fillRect(x, t.y + 4, (t.width * n) / hosts.length, t.height - 8);
        x += (t.width * n) / hosts.length;
      }
      if (markOf) {
        const size = Math.min(t.height - 8, t.width / 3);
        marksOf(ctx, [...new Set(hosts.map(markOf))].sort(), {x: t.x + 4, y: t.y + 4, size});
      }
    } else {
      hosts.forEach((h, i) => {
        const c = cell(t, i);
        ctx.fillStyle = colorOf(h);
        ctx.fillRect(c.x, c.y, c.size, c.size);
        if (markOf) mark(ctx, markOf(h), c);
      });
      cells += hosts.length;
      if (leafOf) {
        const {color, marks} = leafOf(t.node);
        const sign = {x: t.x + t.width - badge, y: t.y + 4, size: tile.head - 8};
        ctx.fillStyle = color;
        ctx.fillRect(sign.x, sign.y, badge - 4, sign.size);
        marksOf(ctx, marks, sign);
      }
    }
    if (view.scale > 0.55) {
      ctx.fillStyle = colors.text;
      ctx.fillText(t.node.name, t.x + 4, t.y + tile.head / 2, t.width - 8 - (leafOf ? badge : 0));
    }
  }
  if (chosen) {
    ctx.strokeStyle = colors.text;
    ctx.lineWidth = 2 / view.scale;
    const {tile: t, host} = chosen;
    ctx.strokeRect(t.x, t.y, t.width, t.height);
    if (host >= 0) {
      const c = cell(t, host);
      ctx.strokeRect(c.x - 1, c.y - 1, c.size + 2, c.size + 2);
    }
  }
  paths.forEach((points, i) => {
    ctx.strokeStyle = colors.path;
    ctx.lineWidth = 3 / view.scale;
    ctx.setLineDash(i ? [8 / view.scale, 6 / view.scale] : []);
    ctx.beginPath();
    points.forEach(([x, y], j) => (j ? ctx.lineTo(x, y + i * 6) : ctx.moveTo(x, y + i * 6)));
    ctx.stroke();
  });
  ctx.setLineDash([]);
  return cells;
}
