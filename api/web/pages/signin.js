// Sign-in at an identity provider: OpenID Connect, by the authorization code with PKCE (RFC 7636). This page goes to the provider, which
// sends the browser back to it with a code. There is no secret. What is kept meanwhile is good for this one attempt, and is removed
// by the answer: no token is ever in it.

const kept = 'portcullis-sign-in';
const within = 15 * 60 * 1000; // ms for an attempt
const patience = 15000; // ms for an answer of the provider
const mostAnswer = 256 << 10; // characters
const mostToken = 8 << 10;
const challenge = 'S256';
const answered = ['code', 'state', 'error', 'error_description', 'iss'];

const encoded = (bytes) => btoa(String.fromCharCode(...bytes)).replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '');
const random = () => encoded(crypto.getRandomValues(new Uint8Array(32)));
const bounded = (text) => String(text).replace(/[^\x20-\x7e]/g, '?').slice(0, 256);
const here = () => `${location.origin}${location.pathname}`;

// Wrong is why a sign-in failed, with what to do.
class Wrong extends Error {
  constructor(detail, hint = 'sign in again') {
    super(detail);
    this.hint = hint;
  }
}

// ask sends one request, and reads a bounded document. It follows no redirect, and sends no credential.
async function ask(what, url, {signal, ...options} = {}) {
  const ends = AbortSignal.any([AbortSignal.timeout(patience), ...(signal ? [signal] : [])]);
  let answer;
  let text = '';
  try {
    answer = await fetch(url, {cache: 'no-store', credentials: 'omit', redirect: 'error', referrerPolicy: 'no-referrer', ...options, signal: ends});
    const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
    for (;;) {
      const {done, value} = await reader.read();
      if (done) break;
      text += value;
      if (text.length > mostAnswer) throw new Wrong(`${what}: the answer has more than ${mostAnswer} characters`, 'ask the operator of the provider');
    }
  } catch (err) {
    if (err instanceof Wrong) throw err;
    throw new Wrong(`${what}: no answer of ${new URL(url, location.href).origin} can be read (${bounded(err.message)})`,
      'the browser must accept its certificate, and the provider must allow requests (CORS) of this origin');
  }
  let document = null;
  try {
    document = JSON.parse(text);
  } catch {
    // no document: refused below
  }
  if (answer.ok && document && typeof document === 'object') return document;
  throw new Wrong(`${what}: ${document?.error ? bounded([document.error, document.error_description].filter(Boolean).join(': ')) : `the answer is ${answer.status}, or no document`}`);
}

// providers asks the service where people sign in.
export async function providers(signal) {
  const list = await ask('ask the service where people sign in', '/v1/login', {signal});
  return Array.isArray(list.providers) ? list.providers : [];
}

function endpoint(meta, name, origin) {
  let url;
  try {
    url = new URL(meta[name]);
  } catch {
    throw new Wrong(`the identity provider has no ${name}`, 'sign in with a token, or by portcullis login');
  }
  if (url.protocol !== 'https:' || url.username || url.password) throw new Wrong(`the ${name} of the identity provider is no https address`, 'ask the operator of the provider');
  if (origin && url.origin !== origin) throw new Wrong(`the ${name} of the identity provider is at ${url.origin}, and this page may ask ${origin} alone`, 'sign in with a token, or by portcullis login');
  return url;
}

// discover reads what a provider says of itself (OpenID Connect Discovery 1.0).
async function discover(provider, signal) {
  const meta = await ask('read the metadata of the identity provider', `${provider.issuer.replace(/\/$/, '')}/.well-known/openid-configuration`, {signal});
  if (meta.issuer !== provider.issuer) {
    throw new Wrong(`the metadata is of the issuer ${bounded(meta.issuer)}, not ${provider.issuer}`, 'have the operator of the service write oidc.issuer just as the provider does');
  }
  if (Array.isArray(meta.code_challenge_methods_supported) && !meta.code_challenge_methods_supported.includes(challenge)) {
    throw new Wrong(`the identity provider does not know PKCE with ${challenge}`, 'sign in with a token');
  }
  return {
    authorization: endpoint(meta, 'authorization_endpoint'), token: endpoint(meta, 'token_endpoint', new URL(provider.issuer).origin),
    namesItself: meta.authorization_response_iss_parameter_supported === true,
  };
}

// begin leaves this page for that of the provider.
export async function begin(provider, signal) {
  const meta = await discover(provider, signal);
  const verifier = random();
  const digest = await crypto.subtle.digest('SHA-256', new TextEncoder().encode(verifier));
  const attempt = {issuer: provider.issuer, state: random(), nonce: random(), verifier, from: location.hash, at: Date.now()};
  if (signal.aborted) return;
  try {
    sessionStorage.setItem(kept, JSON.stringify(attempt));
  } catch (err) {
    throw new Wrong(`the browser keeps nothing for this page (${bounded(err.message)})`, 'allow data of this site, or sign in with a token');
  }
  // A refresh token would outlive this page: none is asked for. Without an ID token there is no nonce to check.
  const scopes = new Set(['openid', ...provider.scopes.filter((s) => s !== 'offline_access')]);
  const asked = {
    response_type: 'code', client_id: provider.client_id, redirect_uri: here(), scope: [...scopes].join(' '), state: attempt.state, nonce: attempt.nonce,
    code_challenge: encoded(new Uint8Array(digest)), code_challenge_method: challenge,
  };
  for (const [name, value] of Object.entries(asked)) meta.authorization.searchParams.set(name, value);
  location.assign(meta.authorization.href);
}

// came takes the answer of a provider out of the address, and the attempt out of the storage, whether it is good or not. It returns null where
// there is none.
export function came() {
  const query = new URLSearchParams(location.search);
  let text = null;
  try {
    text = sessionStorage.getItem(kept);
    sessionStorage.removeItem(kept);
  } catch {
    // the browser keeps nothing for this page: no attempt was begun
  }
  if (!query.has('state') && !query.has('code') && !query.has('error')) return null;
  let attempt = null;
  try {
    attempt = JSON.parse(text);
  } catch {
    // not of this page
  }
  history.replaceState(null, '', `${location.pathname}${typeof attempt?.from === 'string' && attempt.from.startsWith('#') ? attempt.from : ''}`);
  return {query, attempt};
}

function claimsOf(token) {
  try {
    const part = token.split('.')[1].replaceAll('-', '+').replaceAll('_', '/');
    return JSON.parse(new TextDecoder().decode(Uint8Array.from(atob(part), (c) => c.charCodeAt(0)))) || {};
  } catch {
    return {};
  }
}

const audiences = (claims) => [claims.aud].flat();

// checkID checks an ID token that came from the provider itself (OpenID Connect Core 1.0, section 3.1.3.7). The service verifies the
// signature of what is sent to it.
function checkID(token, provider, nonce) {
  const claims = claimsOf(token);
  if (claims.iss !== provider.issuer) throw new Wrong(`the ID token is of the issuer ${bounded(claims.iss)}`);
  if (!audiences(claims).includes(provider.client_id)) throw new Wrong('the ID token is for another client');
  if (audiences(claims).length > 1 && claims.azp !== provider.client_id) throw new Wrong('the ID token was made for another client');
  if (claims.nonce !== nonce) throw new Wrong('the ID token has another nonce: it is of another sign-in');
  if (!(claims.exp * 1000 > Date.now())) throw new Wrong('the ID token has ended', 'compare the clocks of this machine and of the provider');
}

// finish checks the answer of a provider, and returns the token that the service accepts.
export async function finish({query, attempt}, signal) {
  for (const name of answered) if (query.getAll(name).length > 1) throw new Wrong(`the answer of the identity provider has ${name} twice`);
  if (!attempt || !(Math.abs(Date.now() - attempt.at) < within)) throw new Wrong('this answer is of no sign-in that was begun in this tab in the last 15 minutes');
  if (!attempt.state || query.get('state') !== attempt.state) throw new Wrong('the answer is of another sign-in: its state differs');
  const provider = (await providers(signal)).find((p) => p.issuer === attempt.issuer);
  if (!provider) throw new Wrong('the service has that identity provider no more');
  if (query.has('iss') && query.get('iss') !== provider.issuer) throw new Wrong(`the answer is of the issuer ${bounded(query.get('iss'))}`);
  if (query.has('error')) throw new Wrong(`the identity provider answers ${bounded([query.get('error'), query.get('error_description')].filter(Boolean).join(': '))}`);
  if (!query.get('code') || query.get('code').length > mostToken) throw new Wrong('the answer of the identity provider has no code');
  const meta = await discover(provider, signal);
  if (meta.namesItself && !query.has('iss')) throw new Wrong('the answer does not name its issuer, as the identity provider says that it does');
  const got = await ask('exchange the code for a token', meta.token.href, {
    signal, method: 'POST', headers: {Accept: 'application/json'},
    body: new URLSearchParams({grant_type: 'authorization_code', code: query.get('code'), redirect_uri: here(), client_id: provider.client_id, code_verifier: attempt.verifier}),
  });
  if (typeof got.id_token !== 'string') throw new Wrong('the identity provider made no ID token', 'ask the operator of the provider');
  checkID(got.id_token, provider, attempt.nonce);
  const token = provider.token === 'id' ? got.id_token : got.access_token;
  if (typeof token !== 'string' || token.length > mostToken || !/^[\x21-\x7e]+$/.test(token)) throw new Wrong('the identity provider made no token that can be sent to the service', 'ask the operator of the provider');
  if (!audiences(claimsOf(token)).includes(provider.audience)) throw new Wrong(`the token is not for ${provider.audience}: it is not sent there`, 'have the provider put the audience of the service into aud');
  return token;
}
