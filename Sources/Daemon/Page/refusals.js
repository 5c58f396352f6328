'use strict';
// What was refused lately. Functions and values of page.js are used.

function isPin(event) { return event.pin_failure === true; }

/** Another reason to distrust a server's certificate than its pins: its name, its authority, its dates. */
function isCertificate(event) { return !isPin(event) && event.error === 'tls_certificate_error'; }

/** Shows those of one kind: what a banner tells of may be below a hundred others. */
function showRefusals(kind) {
  $('refusal-kind').value = kind;
  renderRefusals();
}

function kindOf(event) {
  if (event.kind === 'reported') return ['reported', 'info'];
  if (event.kind === 'broken') return ['cut off', ''];
  if (isPin(event)) return ['pins', 'bad'];
  return isCertificate(event) ? ['certificate', 'bad'] : ['refused', 'warn'];
}

/** A client without its port and the number of its process, which differ each time. */
function clientOf(event) { return event.client.replace(/,? process \d+/g, '').replace(/^(\[[^\]]*\]|[^:]*):\d+(?=:|$)/, '$1'); }

/** Equal refusals, the latest first: how often, since when, and from which clients. The proxy decides which are equal. */
function groups() {
  const all = new Map();
  for (const event of [...state.events.values()].sort((a, b) => b.time - a.time || b.number - a.number)) {
    const key = event.group, group = all.get(key) || { key, event, count: 0, first: event.time, clients: new Set() };
    group.count += 1;
    group.first = Math.min(group.first, event.time);
    if (event.client) group.clients.add(clientOf(event));
    all.set(key, group);
  }
  return [...all.values()];
}

function isWanted(event, kind) {
  switch (kind) {
    case 'pins': return isPin(event);
    case 'certificates': return isCertificate(event);
    default: return !kind || event.kind === kind;
  }
}

function renderRefusals() {
  const wanted = $('refusal-filter').value.trim().toLowerCase(), kind = $('refusal-kind').value;
  const all = groups();
  const shown = all.filter(({ event, clients }) => {
    if (!isWanted(event, kind)) return false;
    return !wanted || [event.host, event.cause, event.entry, event.error, event.story, ...clients].some(text => (text || '').toLowerCase().includes(wanted));
  }).slice(0, 100);
  const focused = document.activeElement && document.activeElement.dataset ? document.activeElement.dataset.refusal : undefined;
  fill($('refusal-list'), ...shown.map(refusal));
  keepOneStop($('refusal-list'), 'summary', summary => summary.dataset.refusal === focused);
  $('refusal-none').hidden = shown.length > 0;
  $('refusal-none').textContent = all.length === 0 ? 'Nothing was refused lately.' : 'No refusal fits the filter.';
}


function refusal(group) {
  const { key, event } = group, [word, level] = kindOf(event), clients = [...group.clients];
  const facts = [
    ['When', group.count > 1 ? `${number.format(group.count)} times, from ${moment.format(group.first)} to ${moment.format(event.time)}` : moment.format(event.time)],
    ['Request', `${event.method} ${event.host}${event.port ? ':' + event.port : ''}`],
    [clients.length > 1 ? 'Clients' : 'Client', group.count > 1 ? clients.slice(0, 20).join(', ') + (clients.length > 20 ? `, and ${number.format(clients.length - 20)} more` : '') : event.client],
    ['Decided by', event.entry], ['Answer', event.status ? `${event.status}${event.error ? ', ' + event.error : ''}` : event.error],
  ].filter(fact => fact[1]);
  const details = h('details', {},
    h('summary', { 'data-refusal': key }, h('time', { datetime: new Date(event.time).toISOString() }, clock.format(event.time)),
      h('span', {}, h('span', { class: `badge ${level}` }, word)),
      h('span', { class: 'what' }, h('span', { class: 'host' }, event.host || 'no host'), group.count > 1 ? ' ' : null,
        group.count > 1 ? h('span', { class: 'badge', 'aria-label': `${group.count} times` }, `× ${number.format(group.count)}`) : null,
        h('span', { class: 'cause' }, event.cause)),
      h('span', { class: 'client' }, clients.length > 1 ? count(clients.length, 'client') : clients[0] || '')),
    h('dl', {}, ...facts.flatMap(([name, value]) => [h('dt', {}, name), h('dd', {}, value)])),
    h('pre', { tabindex: 0, 'aria-label': 'What the client was told' }, event.story || event.cause));
  details.open = state.open.has(key);
  details.addEventListener('toggle', () => { if (details.open) state.open.add(key); else state.open.delete(key); });
  return h('li', {}, details);
}
