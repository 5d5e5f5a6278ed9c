// Elements of the page. Everything that the API answers becomes a text node or a checked attribute here, never markup.

const svgSpace = 'http://www.w3.org/2000/svg';

// Attributes that elements may be given. Neither handlers nor styles nor addresses of other places are among them.
const allowed = new Set([
  'aria-current', 'aria-describedby', 'aria-hidden', 'aria-label', 'aria-labelledby', 'aria-live', 'aria-valuetext', 'autocomplete', 'class', 'cx', 'cy', 'd',
  'data-label', 'data-key', 'disabled', 'fill', 'for', 'height', 'id', 'max', 'name', 'points', 'preserveAspectRatio', 'r', 'role', 'rx', 'scope', 'selected', 'spellcheck',
  'tabindex', 'text-anchor', 'type', 'value', 'viewBox', 'width', 'x', 'x1', 'x2', 'y', 'y1', 'y2', 'hidden', 'required', 'datetime', 'title',
]);

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue;
    if (name === 'href') {
      if (!String(value).startsWith('#')) throw new Error(`a link leads to another page: ${value}`);
    } else if (!allowed.has(name)) {
      throw new Error(`the attribute ${name} is not one that pages set`);
    }
    node.setAttribute(name, value === true ? '' : String(value));
  }
  for (const child of children.flat(Infinity)) {
    if (child === undefined || child === null || child === false) continue;
    node.append(child instanceof Node ? child : document.createTextNode(String(child)));
  }
  return node;
}

// el makes an element of HTML with attributes and children: nodes, or texts.
export function el(name, attributes = {}, ...children) {
  return fill(document.createElement(name), attributes, children);
}

// svg makes an element of SVG.
export function svg(name, attributes = {}, ...children) {
  return fill(document.createElementNS(svgSpace, name), attributes, children);
}

// link makes a link to another page of these.
export function link(to, ...children) {
  return el('a', {href: to}, ...children);
}

// to makes the address of a page: its name, what it is about, and what is asked of it.
export function to(page, id = '', query = {}) {
  const asked = new URLSearchParams(Object.entries(query).filter(([, v]) => v));
  return `#/${page}${id ? `/${encodeURIComponent(id)}` : ''}${asked.size ? `?${asked}` : ''}`;
}

// facts makes a list of names and values. It leaves out what has no value.
export function facts(rows) {
  const list = el('dl', {class: 'facts'});
  for (const [name, value] of rows) {
    if (value === undefined || value === null || value === '' || value === false) continue;
    list.append(el('div', {}, el('dt', {}, name), el('dd', {}, value)));
  }
  return list;
}

// section makes a titled part of a page.
export function section(title, ...children) {
  const id = `s-${title.toLowerCase().replace(/[^a-z]+/g, '-')}`;
  return el('section', {'aria-labelledby': id}, el('h2', {id}, title), ...children);
}

// badge shows a state by its name and a color that is never alone.
export function badge(text, kind = 'plain') {
  return el('span', {class: `badge ${kind}`}, text);
}

// refusal shows why something is not shown.
export function refusal(err) {
  return el('p', {class: 'refusal'}, err.message || String(err), err.hint ? ` (${err.hint})` : '');
}

// download has the browser keep a text as a file.
export function download(name, text, type) {
  const a = document.createElement('a');
  a.href = URL.createObjectURL(new Blob([text], {type}));
  a.download = name;
  a.click();
  setTimeout(() => URL.revokeObjectURL(a.href), 60000); // the browser reads it after this call
}

// denied has a page say that its reader may not see it, and shows no empty lists.
export function denied(main, err) {
  for (const part of main.querySelectorAll('section, .refusal')) part.remove();
  main.append(refusal(err));
}

// time shows a moment in local time.
export function time(text) {
  if (!text || text.startsWith('0001-')) return '';
  const at = new Date(text);
  if (Number.isNaN(at.getTime())) return text;
  return el('time', {datetime: at.toISOString()}, moment(text));
}

// moment is a moment in local time, as text.
export function moment(text) {
  if (!text || text.startsWith('0001-')) return '';
  const at = new Date(text);
  if (Number.isNaN(at.getTime())) return text;
  const two = (n) => String(n).padStart(2, '0');
  return `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())} ${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}`;
}

// span is a number of seconds in words.
export function span(seconds) {
  for (const [size, name] of [[86400, 'd'], [3600, 'h'], [60, 'min']]) {
    if (seconds >= size) return `${(seconds / size).toFixed(1).replace(/\.0$/, '')} ${name}`;
  }
  return `${Math.round(seconds)} s`;
}
