// Sign-in, and the way from one page to another. The address after # names the page: it never reaches the service.

import * as api from './api.js';
import * as audit from './audit.js';
import * as clusters from './clusters.js';
import {el, link, moment, refusal, to} from './dom.js';
import * as fabric from './fabric.js';
import * as host from './host.js';
import * as hosts from './hosts.js';
import * as instances from './instances.js';
import * as isolation from './isolation.js';
import * as keys from './keys.js';
import * as overview from './overview.js';
import * as port from './port.js';
import * as profile from './profile.js';
import * as signin from './signin.js';
import * as violations from './violations.js';

const part = (id) => document.getElementById(id);
const main = part('main');

// pages by their name in the address; of is what shows one thing of a kind.
const pages = {
  overview: {all: overview},
  hosts: {all: hosts, of: host},
  fabric: {all: fabric},
  clusters: {all: clusters.list, of: clusters.one},
  isolation: {all: isolation},
  violations: {all: violations},
  ports: {of: port, under: 'violations'},
  keys: {all: keys},
  profile: {all: profile},
  instances: {all: instances},
  audit: {all: audit.list, of: audit.one},
};

let open = null; // ends what the page that is shown has under way

function say(text) {
  part('said').textContent = text;
}

function close() {
  open?.abort();
  open = new AbortController();
  main.replaceChildren();
  return open.signal;
}

// askToken shows the form that takes a credential. why is shown if there is a reason beside that there is none yet.
function askToken(why) {
  api.signOut();
  const signal = close();
  part('nav').hidden = part('who').hidden = true;
  document.title = 'Sign in · Portcullis';
  const input = el('input', {id: 'token', type: 'password', autocomplete: 'current-password', spellcheck: 'false', required: true, 'aria-describedby': 'about'});
  const wrong = el('div', {role: 'alert'}, why ? refusal(why) : '');
  const button = el('button', {type: 'submit'}, 'Sign in');
  // A program that keeps passwords wants a name to keep this one under.
  const name = el('input', {type: 'text', autocomplete: 'username', value: 'portcullis', hidden: true, 'aria-hidden': 'true'});
  const form = el('form', {class: 'signin'}, name, el('label', {for: 'token'}, 'Token'), input, button);
  const people = el('div', {class: 'people'});
  main.append(el('h1', {tabindex: '-1'}, 'Sign in'), wrong, people, form, el('p', {id: 'about'},
    'These pages change nothing: a token with the role viewer is enough, as ', el('code', {}, 'portcullisd token --role viewer'),
    ' makes it. Receipts need another role. The token stays in the memory of this page. A reload forgets it.'));
  form.addEventListener('submit', async (e) => {
    e.preventDefault();
    button.disabled = true;
    try {
      // The form keeps nothing: what was typed is taken out of it at once.
      const token = input.value.trim();
      input.value = '';
      if (/[^\x21-\x7e]/.test(token)) throw new Error('a token has no blanks and no characters beyond ASCII');
      await accept(token, signal);
    } catch (err) {
      if (signal.aborted) return;
      api.signOut();
      wrong.replaceChildren(refusal(err));
      button.disabled = false;
      input.focus();
    }
  });
  input.focus();
  offer(people, wrong, signal);
}

// accept asks the service whether it accepts a credential, and enters with it.
async function accept(token, signal) {
  api.signIn(token, () => {});
  const who = await api.get('/v1/whoami', {signal});
  api.signIn(token, askToken);
  enter(who);
}

// offer shows a button for each identity provider of the service.
async function offer(people, wrong, signal) {
  const failed = (err) => { if (!signal.aborted) wrong.replaceChildren(refusal(err)); };
  let list = [];
  try {
    list = await signin.providers(signal);
  } catch (err) {
    failed(err);
  }
  if (signal.aborted) return;
  people.append(...list.map((p) => {
    const button = el('button', {type: 'button', title: p.issuer}, `Sign in with ${p.name}`);
    button.addEventListener('click', async () => {
      button.disabled = true;
      try {
        await signin.begin(p, signal);
      } catch (err) {
        failed(err);
      }
      button.disabled = false; // also where the browser comes back to this page without an answer
    });
    return button;
  }));
  if (list.length) people.append(el('p', {}, 'or with a token:'));
}

// start shows the form, or goes on with the answer that the browser brought from an identity provider.
async function start() {
  const answer = signin.came();
  if (!answer) {
    askToken();
    return;
  }
  const signal = close();
  main.append(el('h1', {tabindex: '-1'}, 'Sign in'), el('p', {role: 'status'}, 'The identity provider has answered. Asking…'));
  try {
    await accept(await signin.finish(answer, signal), signal);
  } catch (err) {
    if (!signal.aborted) askToken(err);
  }
}

function enter(who) {
  const scope = Object.entries(who.scope || {}).flatMap(([k, v]) => (v?.length ? [`${k.replace('_', ' ')}: ${v.join(', ')}`] : []));
  const out = el('button', {type: 'button'}, 'Sign out');
  out.addEventListener('click', () => askToken());
  part('who').replaceChildren(el('span', {}, el('strong', {}, who.name), ` ${who.role}`, scope.length ? ` · ${scope.join('; ')}` : '',
    who.expires ? ` · ends ${moment(who.expires)}` : ''), out);
  part('nav').replaceChildren(...Object.entries(pages).filter(([, p]) => p.all).map(([name, p]) => link(to(name), p.all.title)));
  part('nav').hidden = part('who').hidden = false;
  route();
}

function route() {
  if (part('who').hidden) return;
  const [path, query = ''] = location.hash.replace(/^#\/?/, '').split('?');
  const [name, ...rest] = path.split('/');
  const known = Object.hasOwn(pages, name) ? name : 'overview';
  let id = '';
  try {
    id = decodeURIComponent(rest.join('/'));
  } catch {
    // not an address that these pages make
  }
  const page = (id && pages[known].of) || pages[known].all || overview;
  const signal = close();
  say('');
  const heading = el('h1', {tabindex: '-1'}, id && page === pages[known].of ? `${page.title} ${id}` : page.title);
  document.title = `${heading.textContent} · Portcullis`;
  for (const a of part('nav').children) {
    if (a.hash === to(pages[known].under || known)) a.setAttribute('aria-current', 'page');
    else a.removeAttribute('aria-current');
  }
  main.append(heading);
  page.show({main, signal, id, query: new URLSearchParams(query), say});
  heading.focus();
}

part('skip').addEventListener('click', (e) => {
  e.preventDefault(); // the address names the page, and stays
  main.focus();
});
window.addEventListener('hashchange', route);
start();
