// The audit log: the list with filters, whether it is whole, and each entry with all that it holds.

import {get, repeat} from './api.js';
import {badge, denied, el, facts, link, moment, refusal, section, time, to} from './dom.js';
import {filters, paged} from './paged.js';
import {table} from './table.js';

// Kinds of objects that have a page.
const pages = {host: 'hosts', cluster: 'clusters'};

function objectOf(name) {
  const [kind, ...rest] = name.split('/');
  return Object.hasOwn(pages, kind) && rest.length ? link(to(pages[kind], rest.join('/')), name) : name;
}

const columns = [
  {name: 'Entry', value: (e) => e.seq, show: (e) => link(to('audit', String(e.seq)), e.seq)},
  {name: 'Time', value: (e) => moment(e.time), show: (e) => time(e.time)},
  {name: 'Actor', value: (e) => e.actor},
  {name: 'Action', value: (e) => e.action},
  {name: 'Object', value: (e) => e.object, show: (e) => objectOf(e.object)},
  {name: 'Code', value: (e) => e.code},
  {name: 'Detail', value: (e) => e.detail},
  {name: 'Reason', value: (e) => e.reason},
];

const breaks = [
  {name: 'First entry', value: (b) => b.seq},
  {name: 'State', value: (b) => (b.entry ? 'accepted' : 'open'), show: (b) => badge(b.entry ? 'accepted' : 'open', b.entry ? 'wait' : 'bad')},
  {name: 'Cause', value: (b) => b.cause},
  {name: 'What is wrong', value: (b) => b.found || b.detail},
  {name: 'Accepted by', value: (b) => b.actor},
  {name: 'In entry', value: (b) => b.entry, show: (b) => (b.entry ? link(to('audit', String(b.entry)), b.entry) : '')},
];

// whole shows what the last verification found.
function whole(main, signal) {
  const state = el('div', {}, el('p', {class: 'none'}, 'Asking…'));
  const list = table('Breaks of the log', breaks, (b) => `${b.seq} ${b.to?.hash}`);
  list.node.hidden = true;
  repeat(30000, signal, async () => {
    const [b, head] = await Promise.all([get('/v1/audit/breaks', {signal}), get('/v1/audit/head', {signal})]);
    const said = b.open.length ? badge('broken', 'bad') : b.verified ? badge('whole', 'good') : badge('not verified yet', 'wait');
    state.replaceChildren(facts([
      ['The log is', said], ['Verified', time(b.verified)], ['Last entry', head.seq ? link(to('audit', String(head.seq)), head.seq) : 'none'],
      ['Hash of the last entry', head.hash && el('code', {}, head.hash)], ['Branch', head.branch && String(head.branch)],
    ]));
    const all = [...b.open, ...b.accepted];
    list.set(all);
    list.node.hidden = all.length === 0;
  }, (err) => {
    if (err?.status === 403) denied(main, err);
    else if (err) state.replaceChildren(refusal(err));
  });
  return section('Whole', state, list.node);
}

const fields = [['actor', 'Actor'], ['action', 'Action, or its beginning with a dot'], ['object', 'Object'], ['since', 'From', 'datetime-local'], ['until', 'Until', 'datetime-local']];

// instant is a local time as an input has it, as the API takes it.
function instant(text) {
  const at = new Date(text);
  return Number.isNaN(at.getTime()) ? '' : at.toISOString();
}

// list shows the log, the last entry first.
export const list = {
  title: 'Audit',
  show({main, signal, query}) {
    const asked = {};
    for (const [name, , type] of fields) {
      const value = query.get(name);
      if (value) asked[name] = type ? instant(value) : value;
    }
    main.append(whole(main, signal), section('Entries', filters('Entries', query, fields, [], (q) => { location.hash = to('audit', '', q); }), ...paged({
      signal, list: table('The last first', columns, (e) => e.seq), every: 5000, what: 'entries',
      ask: (after) => get('/v1/audit', {signal, query: {newest: true, limit: 100, ...asked, after}}),
    })));
  },
};

// one shows an entry. id is its number.
export const one = {
  title: 'Audit entry',
  show({main, signal, id}) {
    const about = el('div', {}, el('p', {class: 'none'}, 'Asking…'));
    main.append(section('Entry', about));
    const digest = (text, none) => (text ? el('code', {}, text) : none);
    (async () => {
      if (!/^[1-9][0-9]{0,15}$/.test(id)) throw new Error(`${id} is not the number of an entry`);
      const number = Number(id);
      const page = await get('/v1/audit', {signal, query: {after: String(number - 1), limit: 1}});
      const [e] = page.items;
      if (e?.seq !== number) throw new Error(`the log has no entry ${id}: its last one is ${page.head.seq}`);
      about.replaceChildren(
        facts([
          ['Time', time(e.time)], ['Actor', link(to('audit', '', {actor: e.actor}), e.actor)], ['Action', link(to('audit', '', {action: e.action}), e.action)],
          ['Object', objectOf(e.object)], ['Code', e.code], ['Detail', e.detail], ['Reason', e.reason],
          ['Record before (SHA-256)', digest(e.before, e.after ? 'there was none' : '')], ['Record after (SHA-256)', digest(e.after, e.before ? 'there is none' : '')],
          ['Hash of the entry before', digest(e.prev, 'none: it is the first')], ['Hash of this entry', digest(e.hash, '')],
        ]),
        el('p', {class: 'pager'}, number > 1 ? link(to('audit', String(number - 1)), 'Entry before') : '',
          number < page.head.seq ? link(to('audit', String(number + 1)), 'Next entry') : '',
          link(to('audit', '', {object: e.object}), 'All entries about this object')),
      );
    })().catch((err) => { if (!signal.aborted) about.replaceChildren(refusal(err)); });
  },
};
