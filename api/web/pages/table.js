// Tables that change while they are looked at: only what differs is replaced, so that focus and selection stay.

import {el} from './dom.js';

// table makes a table. Each column has a name, value, which makes text of an item, and show, which makes nodes of it where
// text is not enough. key names an item.
export function table(caption, columns, key) {
  const body = el('tbody', {role: 'rowgroup'});
  const none = el('p', {class: 'none', hidden: true}, 'There is nothing to show.');
  const head = el('tr', {role: 'row'}, columns.map((c) => el('th', {scope: 'col', role: 'columnheader'}, c.name)));
  const node = el('div', {class: 'list'},
    el('table', {role: 'table'}, el('caption', {}, caption), el('thead', {role: 'rowgroup'}, head), body), none);
  let rows = new Map();

  function row(item) {
    const cells = columns.map((c) => el('td', {role: 'cell', 'data-label': c.name}));
    const made = {cells, texts: [], tr: el('tr', {role: 'row', 'data-key': key(item)}, cells)};
    change(made, item);
    return made;
  }

  function change(made, item) {
    columns.forEach((c, i) => {
      const text = String(c.value(item) ?? '');
      if (made.texts[i] === text) return;
      made.texts[i] = text;
      made.cells[i].replaceChildren(c.show ? c.show(item) : document.createTextNode(text));
    });
  }

  return {
    node,
    // set shows these items and no others.
    set(items) {
      const kept = new Map();
      items.forEach((item, i) => {
        const name = key(item);
        let made = rows.get(name);
        if (made) change(made, item);
        else made = row(item);
        kept.set(name, made);
        if (body.children[i] !== made.tr) body.insertBefore(made.tr, body.children[i] || null);
      });
      for (const [name, made] of rows) if (!kept.has(name)) made.tr.remove();
      rows = kept;
      none.hidden = items.length > 0;
    },
  };
}
