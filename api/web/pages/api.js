// Requests to the API. The credential is in the memory of this module alone: no storage, no cookie, no address has it.

import {Events} from './sse.js';

let token = '';
let leave = () => {};

// signIn takes a credential. left is called with a reason when the service no longer accepts it.
export function signIn(credential, left) {
  token = credential;
  leave = left;
}

// signOut forgets the credential.
export function signOut() {
  token = '';
  leave = () => {};
}

// Refused is an answer of the service that is a problem document.
export class Refused extends Error {
  constructor(status, problem) {
    super(problem.detail || problem.title || `the service answered ${status}`);
    this.status = status;
    this.code = problem.code || '';
    this.hint = problem.hint || '';
  }
}

async function send(path, {signal, query = {}, headers = {}, alsoGood = [], method = 'GET', body} = {}) {
  const asked = new URLSearchParams(Object.entries(query).filter(([, v]) => v !== undefined && v !== ''));
  const used = token;
  const answer = await fetch(asked.size ? `${path}?${asked}` : path, {
    method, body, signal, cache: 'no-store', credentials: 'omit', redirect: 'error', referrerPolicy: 'no-referrer',
    headers: {Authorization: `Bearer ${used}`, ...headers},
  });
  if (answer.ok || alsoGood.includes(answer.status)) return answer;
  let problem = {};
  try {
    problem = await answer.json();
  } catch {
    // no problem document: something stands between this page and the service
  }
  const refused = new Refused(answer.status, problem);
  if (answer.status === 401 && used === token) leave(refused);
  throw refused;
}

// get asks for a document. An answer with a status of alsoGood is one too.
export async function get(path, options = {}) {
  const answer = await send(path, {...options, headers: {Accept: 'application/json'}});
  return answer.json();
}

// post sends a document, and returns the text of the answer.
export async function post(path, document, signal) {
  const answer = await send(path, {signal, method: 'POST', body: JSON.stringify(document), headers: {'Content-Type': 'application/json'}});
  return answer.text();
}

// all asks for a list page by page, and calls each with the items of a page. It ends after most items, and returns whether
// there are more.
export async function all(path, query, signal, each, most = Infinity) {
  let after = '';
  let count = 0;
  do {
    const page = await get(path, {signal, query: {...query, limit: 5000, after}});
    each(page.items);
    count += page.items.length;
    after = page.next || '';
  } while (after && count < most);
  return after !== '';
}

// pause waits, and ends early with signal.
export function pause(ms, signal) {
  return new Promise((done) => {
    const timer = setTimeout(end, ms);
    function end() {
      clearTimeout(timer);
      signal.removeEventListener('abort', end);
      done();
    }
    signal.addEventListener('abort', end);
  });
}

// follow calls take with each event of a stream until signal ends, and connects again where the stream ends. lost is called
// with the reason when it does, and with nothing when it is there again.
export async function follow(path, {signal, query = {}, take, lost}) {
  let last = '';
  let wait = 1000;
  while (!signal.aborted) {
    try {
      const headers = {Accept: 'text/event-stream'};
      if (last) headers['Last-Event-ID'] = last;
      const answer = await send(path, {signal, query, headers});
      lost(null);
      const events = new Events((name, data, id) => {
        last = id;
        wait = 1000;
        take(name, JSON.parse(data));
      });
      const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
      for (;;) {
        const {done, value} = await reader.read();
        if (done) break;
        events.feed(value);
      }
      if (!signal.aborted) lost(new Error('the service ended the stream'));
    } catch (err) {
      if (signal.aborted) return;
      lost(err);
      if (err instanceof Refused && err.status >= 400 && err.status < 500 && err.status !== 429) return;
    }
    await pause(wait, signal);
    wait = Math.min(wait * 2, 30000);
  }
}

// repeat calls work at once and then every so often, while the page is visible, until signal ends. failed is called with what
// it threw, and with nothing when it worked again. What the role of the credential may not see is not asked for again.
export async function repeat(ms, signal, work, failed) {
  while (!signal.aborted) {
    if (!document.hidden) {
      try {
        await work();
        if (!signal.aborted) failed(null);
      } catch (err) {
        if (signal.aborted) return;
        failed(err);
        if (err.status === 403) return;
      }
    }
    await pause(ms, signal);
  }
}
