// The proof that a tenant is isolated: the last verdict that was signed, and a button that has a receipt issued.

import {get, post, repeat} from './api.js';
import {badge, download, el, facts, link, refusal, section, span, time, to} from './dom.js';

const verdicts = {isolated: 'good', leaks: 'bad', unknown: 'wait'};
const words = {isolated: 'isolated', leaks: 'not isolated', unknown: 'not proven'};
const verdict = (v) => badge(words[v] || v, verdicts[v] || 'plain');

const ages = [['an hour', 3600], ['a day', 86400], ['a week', 7 * 86400], ['31 days', 31 * 86400]];

// The audit log is looked through this many pages at most for the last receipt.
const deep = 10;

// lastOf returns the entry of the audit log about the last receipt of a tenant, nothing if there is none.
async function lastOf(tenant, signal) {
  let after = '';
  for (let i = 0; i < deep; i += 1) {
    const page = await get('/v1/audit', {signal, query: {action: 'receipt.issue', object: `tenant/${tenant}`, newest: true, limit: 1, after}});
    if (page.items.length) return page.items[0];
    after = page.next || '';
    if (!after) return null;
  }
  return null;
}

function said(e) {
  if (!e) return el('p', {}, 'The audit log has no receipt of this tenant, as far as it was looked through.');
  const [, found] = /^verdict ([a-z]+), /.exec(e.detail) || [];
  return facts([
    ['Verdict', found ? verdict(found) : e.detail], ['Age', span(Math.max(0, (Date.now() - new Date(e.time)) / 1000))], ['Issued', time(e.time)],
    ['For', e.actor], ['Audit log', link(to('audit', String(e.seq)), `entry ${e.seq}`)],
  ]);
}

// read returns the predicate of a receipt. It verifies nothing.
function read(envelope) {
  const bytes = Uint8Array.from(atob(JSON.parse(envelope).payload), (c) => c.charCodeAt(0));
  return JSON.parse(new TextDecoder().decode(bytes)).predicate;
}

// receipts shows the proof of a tenant.
export function receipts(tenant, signal, say) {
  const last = el('div', {}, el('p', {class: 'none'}, 'Asking…'));
  const result = el('div', {role: 'status'});
  const counts = el('select', {}, ages.map(([name, value]) => el('option', {value, selected: value === 86400}, name)));
  const membership = el('input', {type: 'checkbox'});
  const button = el('button', {type: 'submit'}, 'Prove, and download a receipt');
  const form = el('form', {class: 'filters', 'aria-label': 'Receipt'}, el('label', {}, 'Counts for', counts),
    el('label', {class: 'check'}, membership, ' Assume that switches compare membership'), button);
  const look = async () => last.replaceChildren(said(await lastOf(tenant, signal)));
  const failed = (err) => { if (err && !signal.aborted) last.replaceChildren(refusal(err)); };
  repeat(30000, signal, look, failed);

  form.addEventListener('submit', async (e) => {
    e.preventDefault();
    button.disabled = true;
    result.replaceChildren(el('p', {}, 'The service reads all tables of the fabric. That takes 10 minutes at most.'));
    try {
      const envelope = await post('/v1/receipts', {tenant, membership: membership.checked, max_age_seconds: Number(counts.value)}, signal);
      const p = read(envelope);
      const name = `receipt-${tenant}-${p.issued.at.replace(/[^0-9TZ]/g, '')}.json`;
      const save = () => download(name, envelope, 'application/vnd.dsse.envelope.v1+json');
      const again = el('button', {type: 'button'}, 'Download again');
      again.addEventListener('click', save);
      save();
      result.replaceChildren(
        facts([
          ['Verdict', verdict(p.verdict)], ['Tables read', time(p.reading.at)], ['Counts for', span(p.issued.max_age_seconds)], ['File', name],
        ]),
        el('p', {}, 'This page does not verify the signature: ', el('code', {}, `portcullis receipt verify ${name} --key receipts.pem --tenant ${tenant}`), ' does.'), again,
      );
      say(`The receipt of ${tenant}: ${words[p.verdict] || p.verdict}`);
      look().catch(failed);
    } catch (err) {
      if (signal.aborted) return;
      result.replaceChildren(refusal(err));
    }
    button.disabled = false;
  });
  return section('Proof and receipt', el('h3', {}, `Last receipt of ${tenant}`), last, el('h3', {}, 'New receipt'),
    el('p', {}, 'The verdict is about all clusters of the tenant, and is signed whatever it is. The roles operator, security-admin and auditor, and the tenant itself, get receipts.'), form, result);
}
