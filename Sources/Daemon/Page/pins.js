'use strict';
// The pins: what ends when, and the entries. Functions and values of page.js are used.

/** What of the configuration ends when, the first first. */
function ends() {
  const found = [];
  for (const entry of (state.config || {}).entries || []) {
    if (entry.expires) found.push({ date: entry.expires, label: entry.match, what: 'pins expire', entry });
    for (const pin of entry.pins) if (pin.not_after) found.push({ date: pin.not_after, label: entry.match, what: pin.written, entry });
  }
  for (const item of (state.status || {}).expiring || []) {
    if (['client certificate', 'revocation list', ...withoutEntry].includes(item.what)) found.push({ date: item.date, label: item.entry || item.name, what: item.what });
  }
  return found.sort((a, b) => a.date - b.date);
}

/** The months in which something ends, and no others. */
function renderCalendar() {
  const now = Date.now(), year = 366 * day * 1000, months = new Map();
  for (const item of ends()) {
    const time = item.date * 1000;
    const name = time < now ? 'Over' : time > now + year ? 'Later'
      : new Date(time).toLocaleDateString('en', { month: 'short', year: 'numeric', timeZone: 'UTC' });
    months.set(name, [...(months.get(name) || []), item]);
  }
  fill($('calendar'), ...[...months].map(([name, items]) => h('li', { class: name === 'Over' ? 'past' : false },
    h('div', { class: 'month' }, h('span', {}, name), h('span', {}, items.length > 1 ? number.format(items.length) : '')),
    ...items.slice(0, 3).map(item => h('span', { class: `end ${urgency(item.date)}`, title: `${item.label}: ${item.what}` },
      h('span', { class: 'date' }, shortDate.format(item.date * 1000)), item.label)),
    items.length > 3 ? h('span', { class: 'end' }, `and ${number.format(items.length - 3)} more`) : null)));
  $('calendar-none').hidden = months.size > 0;
}

function lastMatch(entry) {
  const kept = state.histories.get(entry.match);
  if (!kept) return 0;
  return Math.max(0, ...kept.pins.map(pin => pin.last || 0));
}

function firstEnd(entry) {
  const dates = entry.pins.map(pin => pin.not_after).concat(entry.expires).filter(Boolean);
  return dates.length > 0 ? Math.min(...dates) : 0;
}

function misses(entry) { return Math.max((state.histories.get(entry.match) || {}).misses || 0, (state.counts.get(entry.match) || {}).missed || 0); }

function hasMatched(entry) { return lastMatch(entry) > 0 || ((state.counts.get(entry.match) || {}).matched || 0) > 0; }

function badges(entry) {
  const list = [];
  if (entry.action !== 'intercept') list.push([entry.action, entry.action === 'deny' ? 'warn' : '']);
  if (entry.pinning !== 'none') list.push([`${entry.pinning} · ${count(entry.pins.length, 'pin')}`, '']);
  else if (entry.action === 'intercept') list.push(['no pins', '']);
  if (entry.insecure.length > 0) list.push([entry.insecure[0].startsWith('accepts') ? 'accepts anyone' : 'insecure', 'bad']);
  if (entry.pinning !== 'none' && entry.enforcement === 'report') list.push(['report only', 'info']);
  if (misses(entry) > 0) list.push([count(misses(entry), 'miss', 'misses'), 'bad']);
  if (entry.clients) list.push(['some clients only', '']);
  if (entry.pinning !== 'none' && !hasMatched(entry)) list.push(['never matched', 'warn']);
  return list;
}

/** As many as there is room for in two lines of the narrowest screen, those that matter most first. */
const badgesShown = 3;

function badgeElements(entry) {
  const rank = { bad: 0, warn: 1, info: 2, '': 3 };
  const [policy, ...others] = badges(entry);
  const all = [policy, ...others.sort((a, b) => rank[a[1]] - rank[b[1]])], more = all.slice(badgesShown);
  const shown = all.slice(0, badgesShown).map(([text, level]) => h('span', { class: `badge ${level}` }, text));
  if (more.length === 0) return shown;
  const names = more.map(([text]) => text).join(', ');
  return [...shown, h('span', { class: 'badge', title: names }, `+${more.length}`, h('span', { class: 'sr' }, `: ${names}`))];
}

function renderEntries() {
  if (!state.config) return;
  state.histories = new Map(((state.status || {}).entries || []).map(entry => [entry.entry, entry]));
  const wanted = $('pin-filter').value.trim().toLowerCase(), kind = $('pin-kind').value;
  state.shown = state.config.entries.filter(entry => {
    if (wanted && !entry.match.toLowerCase().includes(wanted)) return false;
    switch (kind) {
      case 'pinned': return entry.pinning !== 'none';
      case 'never': return entry.pinning !== 'none' && !hasMatched(entry);
      case 'report': return entry.pinning !== 'none' && entry.enforcement === 'report';
      case 'ending': { const end = firstEnd(entry); return end > 0 && end < Date.now() / 1000 + 45 * day; }
      case 'missed': return misses(entry) > 0;
      case 'insecure': return entry.insecure.length > 0;
      default: return true;
    }
  });
  const total = state.config.entry_count;
  $('entries-title').textContent = `Entries (${state.shown.length === total ? number.format(total) : `${number.format(state.shown.length)} of ${number.format(total)}`})`;
  $('entry-none').hidden = state.shown.length > 0;
  $('entry-none').textContent = total === 0 ? 'The pin file has no entries.' : 'No entry fits the filter.';
  $('entries').hidden = state.shown.length === 0;
  $('entries').setAttribute('aria-rowcount', String(state.shown.length + 1));
  drawRows(true);
}

/** Only the rows that can be seen are there: ten thousand entries cost no more than ten. */
function drawRows(again) {
  const view = $('viewport'), spacer = $('spacer');
  const height = parseFloat(getComputedStyle(document.documentElement).getPropertyValue('--row')) || 52;
  spacer.style.height = `${state.shown.length * height}px`;
  view.style.height = `${Math.min(state.shown.length * height, 8 * height)}px`;
  const first = Math.max(0, Math.floor(view.scrollTop / height) - 4), last = Math.min(state.shown.length, first + 20);
  if (!again && view.dataset.first === String(first)) return;
  view.dataset.first = String(first);
  const focused = document.activeElement && document.activeElement.dataset ? document.activeElement.dataset.match : undefined;
  fill(spacer, ...state.shown.slice(first, last).map((entry, index) => row(entry, first + index, height)));
  keepOneStop(spacer, 'button', button => button.dataset.match === focused);
}

/** The row's button at that place among all entries, which may be far from those that can be seen. */
function focusEntry(index) {
  const entry = state.shown[Math.min(Math.max(index, 0), state.shown.length - 1)], view = $('viewport');
  if (!entry) return;
  const place = state.shown.indexOf(entry), height = $('spacer').offsetHeight / state.shown.length;
  view.scrollTop = Math.min(Math.max(view.scrollTop, (place + 1) * height - view.clientHeight), place * height);
  drawRows(true);
  const button = [...$('spacer').querySelectorAll('button')].find(button => button.dataset.match === entry.match);
  if (button) button.focus({ preventScroll: true });
}

function row(entry, index, height) {
  const hits = ((state.status || {}).hits || {})[entry.match] || [], end = firstEnd(entry), last = lastMatch(entry);
  const element = h('div', { class: 'row', role: 'row', 'aria-rowindex': index + 2 },
    h('span', { role: 'cell', class: 'cell' }, h('button', { class: 'match', title: entry.match, onclick: () => show(entry), 'data-match': entry.match }, entry.match)),
    h('span', { role: 'cell', class: 'policy' }, ...badgeElements(entry)),
    h('span', { role: 'cell', class: 'cell spark-cell' }, hits.length > 0 ? spark(hits, `${number.format(hits.reduce((a, b) => a + b, 0))} requests in the last hour`) : '–'),
    h('span', { role: 'cell', class: 'cell' }, entry.pinning === 'none' ? '–' : last ? ago(last) : hasMatched(entry) ? 'just now' : 'never'),
    h('span', { role: 'cell', class: `cell ${end ? { bad: 'bad', warn: 'warn' }[urgency(end)] || '' : ''}` }, end ? shortDate.format(end * 1000) : '–'));
  element.style.top = `${index * height}px`;
  return element;
}

function show(entry) {
  $('entry-title').textContent = entry.match;
  const kept = state.histories.get(entry.match), live = state.counts.get(entry.match);
  const facts = [
    ['Written at', entry.location], ['Action', entry.action], ['Pinning', entry.pinning], ['Enforcement', entry.rollout || entry.enforcement], ['Position', entry.position],
    ['Expires', entry.expires ? `${shortDate.format(entry.expires * 1000)}, then ${entry.on_expiry}` : null], ['Client certificate', entry.client_certificate],
    ['Only for clients', entry.clients], ['Reports to', entry.report_uri], ['Requests', live ? number.format(live.requests) + ' since the start' : null],
    ['Met a pin', kept ? count(kept.accepted, 'connection') : null], ['Missed', kept ? `${kept.misses}${kept.last_miss ? ', the last ' + ago(kept.last_miss) : ''}` : null],
  ].filter(fact => fact[1] !== null && fact[1] !== undefined);
  fill($('entry-body'),
    ...entry.insecure.map(text => h('p', { class: 'banner bad' }, text)),
    h('dl', { class: 'facts-list' }, ...facts.flatMap(([name, value]) => [h('dt', {}, name), h('dd', {}, value)])),
    entry.pins.length > 0 ? h('h3', {}, 'Pins') : null,
    ...entry.pins.map(pin => {
      const record = kept && kept.pins.find(item => item.pin === pin.pin);
      return h('div', { class: 'pin' }, h('code', {}, pin.pin), pin.written !== pin.pin ? h('div', { class: 'note' }, pin.written) : null,
        h('div', { class: 'note' }, record && record.matches > 0 ? `${count(record.matches, 'match', 'matches')}, the last ${ago(record.last)}` : 'never matched', pin.not_after ? `; its certificate ends ${shortDate.format(pin.not_after * 1000)}` : ''));
    }),
    entry.rules.length > 0 ? h('h3', {}, 'Rules') : null,
    ...entry.rules.map(rule => h('div', { class: 'pin' }, h('code', {}, rule))));
  $('entry').showModal();
}

