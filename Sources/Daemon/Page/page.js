'use strict';
// The status page. What comes from the proxy is inserted as text, never as markup.

const $ = id => document.getElementById(id);
const NS = 'http://www.w3.org/2000/svg';
const state = {
  token: '', status: null, config: null, tick: null, before: null, rates: [], events: new Map(), counts: new Map(),
  connected: false, shown: [], open: new Set(), histories: new Map(),
};

// MARK: Making elements

function h(tag, attributes, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === undefined || value === null || value === false) continue;
    if (name === 'onclick') element.addEventListener('click', value);
    else element.setAttribute(name, value === true ? '' : value);
  }
  element.append(...children.filter(child => child !== null && child !== undefined && child !== ''));
  return element;
}

function fill(element, ...children) { element.replaceChildren(...children.filter(child => child !== null)); }

function spark(values, label) {
  const svg = document.createElementNS(NS, 'svg');
  svg.setAttribute('class', 'spark');
  svg.setAttribute('viewBox', '0 0 60 20');
  svg.setAttribute('preserveAspectRatio', 'none');
  svg.setAttribute('role', 'img');
  svg.setAttribute('aria-label', label);
  const most = Math.max(1, ...values), start = 60 - values.length;
  const points = values.map((value, index) => `${start + index + 0.5},${(19 - 17 * value / most).toFixed(1)}`);
  if (points.length > 0) {
    const area = document.createElementNS(NS, 'path'), line = document.createElementNS(NS, 'path');
    area.setAttribute('class', 'area');
    area.setAttribute('d', `M${start + 0.5},20 L${points.join(' L')} L${start + values.length - 0.5},20 Z`);
    line.setAttribute('d', `M${points.join(' L')}${points.length === 1 ? ' h0.1' : ''}`);
    svg.append(area, line);
  }
  return svg;
}

/** Leaves one of the list's elements to the Tab key: the one that had the focus, else the first. Arrows lead to the others. */
function keepOneStop(list, selector, hadFocus) {
  const all = [...list.querySelectorAll(selector)], again = all.find(hadFocus);
  for (const element of all) element.tabIndex = element === (again || all[0]) ? 0 : -1;
  if (again) again.focus({ preventScroll: true });
}

/** Arrow keys, Home and End lead from one element of a list to another. */
function moveByArrows(list, selector, go) {
  list.addEventListener('keydown', event => {
    const all = [...list.querySelectorAll(selector)], place = all.indexOf(document.activeElement);
    const step = { ArrowDown: 1, ArrowUp: -1, Home: -Infinity, End: Infinity }[event.key];
    if (place < 0 || step === undefined || event.altKey || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    go(all, place, step);
  });
}

function focusAmong(all, place, step) {
  const next = all[Math.min(Math.max(place + step, 0), all.length - 1)];
  for (const element of all) element.tabIndex = element === next ? 0 : -1;
  next.focus();
}

// MARK: Words

const number = new Intl.NumberFormat('en');
const shortDate = new Intl.DateTimeFormat('en-CA', { year: 'numeric', month: '2-digit', day: '2-digit', timeZone: 'UTC' });
const clock = new Intl.DateTimeFormat('en-GB', { hour: '2-digit', minute: '2-digit', second: '2-digit' });
const moment = new Intl.DateTimeFormat('en-GB', { dateStyle: 'medium', timeStyle: 'medium' });

function count(n, one, many = one + 's') { return `${number.format(n)} ${n === 1 ? one : many}`; }

function bytes(n) {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
  let unit = 0;
  while (n >= 1024 && unit < units.length - 1) { n /= 1024; unit += 1; }
  return `${unit === 0 ? n : n.toFixed(n < 10 ? 1 : 0)} ${units[unit]}`;
}

function span(seconds) {
  seconds = Math.max(0, Math.round(seconds));
  if (seconds < 90) return count(seconds, 'second');
  if (seconds < 5400) return count(Math.round(seconds / 60), 'minute');
  if (seconds < 129600) return count(Math.round(seconds / 3600), 'hour');
  return count(Math.round(seconds / 86400), 'day');
}

function ago(unix) { return unix ? `${span(Date.now() / 1000 - unix)} ago` : 'never'; }

function until(unix) {
  const left = unix - Date.now() / 1000;
  return left < 0 ? `${span(-left)} ago` : `in ${span(left)}`;
}

const day = 86400;
function urgency(unix) {
  const left = unix - Date.now() / 1000;
  return left < 0 ? 'bad' : left < 14 * day ? 'bad' : left < 45 * day ? 'warn' : 'good';
}

// MARK: Asking the proxy

async function ask(path, options = {}) {
  const headers = state.token ? { Authorization: `Bearer ${state.token}` } : {};
  const answer = await fetch(path, { ...options, headers, cache: 'no-store', credentials: 'omit' });
  if (answer.status === 401) {
    $('token').hidden = false;
    $('content').hidden = true;
    $('token-note').textContent = state.token ? 'That is not the token.' : 'It stays in this page, and is forgotten with it.';
    throw new Error('token');
  }
  return answer;
}

async function load() {
  const [status, config] = await Promise.all([ask('/status').then(a => a.json()), ask('/config').then(a => a.json())]);
  state.status = status;
  state.config = config;
  for (const event of status.recent || []) state.events.set(`${event.worker}-${event.number}`, event);
  $('token').hidden = true;
  $('content').hidden = false;
  renderAll();
}

async function watch() {
  for (;;) {
    try {
      await load();
      const answer = await ask('/events');
      if (!answer.ok) throw new Error((await answer.json()).cause);
      state.connected = true;
      await read(answer.body.getReader());
    } catch (error) {
      if (error.message === 'token') { health(); return; }
    }
    state.connected = false;
    health();
    await new Promise(resume => setTimeout(resume, 2000));
    // Another process may be there by now, whose numbers begin anew.
    state.events.clear();
    state.counts.clear();
    state.before = null;
  }
}

async function read(reader) {
  const decoder = new TextDecoder();
  let buffer = '';
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    buffer += decoder.decode(value, { stream: true });
    for (let end = buffer.indexOf('\n\n'); end >= 0; end = buffer.indexOf('\n\n')) {
      const data = buffer.slice(0, end).split('\n').filter(line => line.startsWith('data: ')).map(line => line.slice(6)).join('\n');
      buffer = buffer.slice(end + 2);
      if (data) ticked(JSON.parse(data));
    }
  }
}

function ticked(tick) {
  const first = state.tick === null;
  state.before = state.tick;
  state.tick = tick;
  for (const entry of tick.counts) state.counts.set(entry.entry, entry);
  const fresh = tick.events.filter(event => !state.events.has(`${event.worker}-${event.number}`));
  for (const event of fresh) state.events.set(`${event.worker}-${event.number}`, event);
  const all = [...state.events.entries()].sort((a, b) => b[1].time - a[1].time || b[1].number - a[1].number);
  // Of each kind: whatever else is refused, failures of pins stay.
  for (const pins of [true, false]) for (const [key] of all.filter(([, event]) => isPin(event) === pins).slice(500)) state.events.delete(key);
  if (state.before) {
    state.rates.push(Math.max(0, (tick.requests - state.before.requests) * 1000 / Math.max(1, tick.time - state.before.time)));
    state.rates = state.rates.slice(-60);
  }
  if (fresh.length > 0) {
    renderRefusals();
    if (!first) $('announcer').textContent = `${count(fresh.length, 'new refusal')}: ${fresh[0].host}, ${fresh[0].cause}`;
  }
  if (state.config && tick.generation !== state.config.generation) load().catch(() => {});
  if (tick.counts.length > 0) renderEntries();
  renderTiles();
  renderIncidents();
  renderTasks();
  renderNetwork();
  health();
}

setInterval(() => { if (state.connected) ask('/status').then(a => a.json()).then(s => { state.status = s; renderNetwork(); renderEntries(); }).catch(() => {}); }, 60000);

// MARK: Health

function problems() {
  const found = [], status = state.status || {}, tick = state.tick || {};
  const hour = tick.last_hour || status.last_hour;
  const pins = incidentProblem('pin', 'Pins fail');
  if (pins && hour && hour.pins_missed > 0) {
    const missed = hour.pin_failures.filter(entry => entry.missed > 0).map(entry => entry.entry);
    found.push(['bad', 'Pins fail', `${missed.slice(0, 3).join(', ')}${missed.length > 3 ? ' …' : ''}: ${count(hour.pins_missed, 'connection')} refused in the last hour.`, '#refusals', 'pins']);
  } else if (pins) found.push(pins);
  // Refusals without an incident are of certificates that can't be read.
  const open = new Set(openIncidents().filter(incident => incident.kind === 'trust').map(incident => `${incident.host}:${incident.port}`));
  const acknowledged = new Set(tick.acknowledged || []);
  const trust = incidentProblem('trust', 'Certificates fail');
  const bad = groups().filter(group => kindOf(group.event)[0] === 'certificate' && group.event.kind === 'refused' && group.event.time > Date.now() - 3600000 && (open.has(`${group.event.host}:${group.event.port}`) || !acknowledged.has(`${group.event.host}:${group.event.port}`)));
  if (bad.length > 0) {
    const causes = bad.slice(0, 3).map(group => group.event.cause + (group.count > 1 ? ` (${number.format(group.count)} times)` : ''));
    found.push(['bad', 'Certificates fail', `${causes.join('; ')}${bad.length > 3 ? ' …' : ''}.`, '#refusals', 'certificates']);
  } else if (trust) found.push(trust);
  const machine = (tick.reachability || status.reachability || []).find(target => target.target === 'any');
  if (machine && machine.status === 'not-reachable') found.push(['bad', 'No network', machine.reason || '', '#network']);
  for (const worker of (tick.workers || []).filter(worker => !worker.up)) found.push(['bad', `Worker ${worker.worker} hangs`, 'It has not answered for two seconds.', '#tasks']);
  if (status.fallback) found.push(['bad', 'An older configuration is in force', status.fallback, '#configuration']);
  else if ((tick.last_reload || status.last_reload) === 'refused') found.push(['warn', 'The last reload was refused', 'The configuration before is in force. pinproxy check says what is wrong.', '#configuration']);
  const policy = status.policy;
  if (policy && policy.denial) found.push(['bad', 'Every host is denied', policy.denial, '#configuration']);
  else if (policy && policy.expires && policy.expires < Date.now() / 1000) found.push(['bad', 'The policy has expired', `Bundle version ${policy.version} expired ${until(policy.expires)}.`, '#configuration']);
  else if (policy && policy.failure) found.push(['warn', 'The policy is not up to date', policy.failure, '#configuration']);
  if ((status.insecure || []).length > 0) found.push(['bad', count(status.insecure.length, 'insecure setting'), status.insecure[0] + (status.insecure.length > 1 ? ' …' : ''), '#configuration']);
  if ((status.replaced_libraries || []).length > 0) found.push(['warn', 'A restart is due', `Replaced on disk since the start: ${status.replaced_libraries.join(', ')}`]);
  const ending = (status.expiring || []).filter(item => item.date < Date.now() / 1000 + 14 * day);
  if (ending.length > 0) found.push(['warn', `${count(ending.length, 'thing ends', 'things end')} within 14 days`, ending.slice(0, 3).map(item => `${item.what === 'entry' ? 'pins' : item.what}${withoutEntry.includes(item.what) ? '' : ` of ${item.entry || 'the defaults'}`} ${until(item.date)}`).join('; '), '#pins']);
  return found;
}

// What the proxy itself signs with, or presents to its clients; and the policy bundle.
const withoutEntry = ['authority', 'next authority', 'admin certificate', 'proxy certificate', 'bundle', 'bundle root'];

function health() {
  const found = state.status ? problems() : [];
  const worst = found.some(problem => problem[0] === 'bad') ? 'bad' : found.length > 0 ? 'warn' : 'good';
  const level = state.connected ? worst : 'unknown';
  $('health').className = `health ${level}`;
  $('headline').textContent = !state.connected ? (state.token || $('token').hidden ? 'Not connected' : 'Token needed') : worst === 'good' ? 'Healthy' : worst === 'bad' ? found.find(problem => problem[0] === 'bad')[1] : 'Needs attention';
  document.title = `${state.connected && worst === 'good' ? '' : '● '}pinproxy${state.connected ? '' : ' (not connected)'}`;
  const shown = JSON.stringify(found);
  if ($('banners').dataset.shown !== shown) {
    $('banners').dataset.shown = shown;
    fill($('banners'), ...found.map(([kind, title, text, link, refusals]) => h('p', { class: `banner ${kind}` }, h('strong', {}, title), text, ' ', link && h('a', { href: link, onclick: refusals ? () => showRefusals(refusals) : false }, 'Show'))));
  }
  const status = state.status;
  if (status) {
    $('facts').textContent = `pinproxy ${status.version} · process ${status.process} · up for ${span(Date.now() / 1000 - status.since)} · ${status.listen.join(', ')} · configuration read ${ago(status.read_at)}`;
  }
}

// MARK: Tiles

function tile(label, value, more, level, drawing) {
  return h('div', { class: `tile ${level || ''}` }, h('dt', {}, label), h('dd', { class: String(value).length > 8 ? 'value long' : 'value' }, value), h('dd', { class: 'more' }, ...[more || ' '].flat()), drawing ? h('dd', {}, drawing) : null);
}

function renderTiles() {
  const status = state.status, tick = state.tick;
  if (!status) return;
  const rate = state.rates.length > 0 ? state.rates[state.rates.length - 1] : 0;
  const entries = [...state.counts.values()];
  const sum = key => entries.reduce((total, entry) => total + entry[key], 0);
  const next = ends().filter(item => item.date > Date.now() / 1000)[0];
  const refused = tick ? tick.refused : status.refused || 0;
  const missed = sum('missed');
  fill($('tiles'),
    tile('Requests a second', rate < 10 ? rate.toFixed(1) : number.format(Math.round(rate)), `${number.format(tick ? tick.requests : status.requests || 0)} since the start`, '', spark(state.rates, 'Requests a second in the last minute')),
    tile('In flight', number.format(tick ? tick.task_count : status.tasks || 0), count(tick ? tick.clients : status.clients, 'client') + ` of ${number.format(status.client_limit)}`),
    tile('Refused', number.format(refused), 'since the start', refused > 0 ? 'warn' : '', spark(status.refusals_by_minute || [], 'Refusals in the last hour')),
    // What is red is the number that is bad.
    missed > 0 ? tile('Pins missed', number.format(missed), `${number.format(sum('matched'))} matched, ${number.format(sum('reported'))} reported`, incidentProblem('pin') ? 'bad' : '')
      : tile('Pins matched', number.format(sum('matched')), `none missed, ${number.format(sum('reported'))} reported`),
    tile('Ends next', next ? shortDate.format(next.date * 1000) : '–', next ? [h('span', { class: 'host', title: next.label }, next.label), until(next.date)] : 'nothing is known to end', next ? { bad: 'bad', warn: 'warn' }[urgency(next.date)] : ''),
    ...cacheTile((tick || status).cache),
    tile('Carried', tick ? bytes(tick.bytes_up + tick.bytes_down) : '–', tick ? `${bytes(tick.bytes_down)} down, ${bytes(tick.bytes_up)} up` : ''));
}

/** What the cache saves, once a request went to a host with one. */
function cacheTile(cache) {
  if (!cache || cache.hit_ratio === undefined || cache.hit_ratio === null) return [];
  const all = cache.hit + cache.miss + cache.revalidated + cache.stale;
  return [tile('Cache hits', `${(cache.hit_ratio * 100).toFixed(cache.hit_ratio < 0.1 ? 1 : 0)} %`, `of ${count(all, 'request')}, ${bytes(cache.saved_bytes)} saved`)];
}

// MARK: Tasks

function renderTasks() {
  const tick = state.tick;
  if (!tick) return;
  const list = $('task-list'), before = new Map([...list.children].map(item => [item.dataset.id, item]));
  const may = state.token !== '';
  fill(list, ...tick.tasks.map(task => {
    const item = before.get(String(task.id)) || taskItem(task, may);
    updateTask(item, task);
    return item;
  }));
  $('task-none').hidden = tick.tasks.length > 0;
  $('task-note').textContent = tick.task_count > tick.tasks.length ? `The first ${tick.tasks.length} of ${number.format(tick.task_count)}.` : may || tick.tasks.length === 0 ? '' : 'Paths and buttons need the token of admin.token_file.';
}

/** Who asks, by the kernel's word where it has one. */
function who(task) {
  const program = task.client_executable ? ` (${task.client_executable})` : '';
  const facts = [task.client_user_name || (task.client_user === undefined || task.client_user === null ? null : `user ${task.client_user}`),
    task.client_process ? `process ${task.client_process}${program}` : null, task.client_unit].filter(Boolean);
  return [task.client, facts.join(', ')].filter(Boolean).join(': ');
}

// What client and origin speak: h2 > http/1.1.
function spoken(task) {
  const last = (task.transactions || []).at(-1), origin = last && last.network_protocol;
  return [task.protocol, origin && `> ${origin}`].filter(Boolean).join(' ');
}

function taskItem(task, may) {
  const order = name => h('button', { onclick: () => ask(`/tasks/${task.id}/${name}`, { method: 'POST' }).catch(() => {}), 'aria-label': `${name} task ${task.id}` }, name);
  return h('li', { 'data-id': task.id }, h('span', { class: 'id' }), h('span', { class: 'target' }), h('span', { class: 'phase' }),
    h('span', {}, h('progress', { max: 1, 'aria-label': `Progress of task ${task.id}` }), h('span', { class: 'amount' })),
    h('span', { class: 'buttons' }, ...(may ? [order('suspend'), order('resume'), order('cancel')] : [])), h('span', { class: 'client' }));
}

function updateTask(item, task) {
  const [id, target, phase, progress] = item.children, total = task.total_down, bar = progress.children[0];
  id.textContent = task.id;
  target.textContent = `${task.method} ${task.host}${task.port === 443 ? '' : ':' + task.port}${task.path}`;
  target.title = `${target.textContent} (${task.client})`;
  item.children[5].textContent = [who(task), spoken(task)].filter(Boolean).join(' · ');
  phase.textContent = `${task.state === 'running' ? task.phase : task.state} · ${span(task.age)}`;
  if (total) bar.value = Math.min(1, task.bytes_down / total);
  else if (task.phase === 'relaying') bar.value = 0; else bar.removeAttribute('value');
  progress.children[1].textContent = total ? `${bytes(task.bytes_down)} of ${bytes(total)}` : `${bytes(task.bytes_down)} down, ${bytes(task.bytes_up)} up`;
  const [suspend, resume] = item.children[4].children;
  if (suspend) { suspend.hidden = task.state === 'suspended'; resume.hidden = task.state !== 'suspended'; }
}

// MARK: Network and configuration

function renderNetwork() {
  const status = state.status || {}, targets = (state.tick || {}).reachability || status.reachability || [];
  fill($('targets'), ...targets.map(target => h('li', {}, h('strong', {}, target.target === 'any' ? 'This machine' : target.target),
    h('span', { class: `badge ${target.status === 'not-reachable' ? 'bad' : target.status === 'unknown' ? '' : 'good'}` }, target.status.replace('via-', '')),
    h('span', { class: 'reason' }, [target.link, target.reason].filter(Boolean).join(', ')))));
  const changes = status.network_changes || [];
  fill($('changes'), ...changes.map(change => h('li', {}, h('time', { datetime: new Date(change.time).toISOString() }, moment.format(change.time)),
    h('span', {}, `${change.target === 'any' ? 'This machine' : change.target}: ${change.from} → ${change.to}${change.reason ? ' (' + change.reason + ')' : ''}`))));
  $('change-none').hidden = changes.length > 0;
}

/** One line for each kind of warning, with all places that it is about. */
function warnings(all) {
  const kinds = new Map();
  for (const text of all) {
    const [, place, message] = /^(.*?:\d+:\d+): (.*)$/s.exec(text) || [null, '', text];
    kinds.set(message, [...(kinds.get(message) || []), place]);
  }
  return [...kinds].map(([message, places]) => h('li', { class: message.includes('insecure:') ? 'bad' : '' },
    places.length === 1 ? [places[0], message].filter(Boolean).join(': ')
      : h('details', {}, h('summary', {}, `${message} (${count(places.length, 'place')})`), h('p', { class: 'places' }, places.join(', ')))));
}

function renderConfiguration() {
  const config = state.config, status = state.status;
  $('configuration-facts').textContent = `${config.files.join(' and ')}, generation ${config.generation}, read ${moment.format(config.read_at * 1000)}; last reload: ${status.last_reload || 'none since the start'}.`;
  fill($('warnings'), ...warnings(config.warnings));
  fill($('settings'), ...Object.keys(config.settings).sort().flatMap(key => [h('dt', {}, key), h('dd', {}, config.settings[key])]));
}

function renderAll() {
  renderEntries();
  renderTiles();
  renderIncidents();
  renderRefusals();
  renderCalendar();
  renderNetwork();
  renderConfiguration();
  health();
}

$('token').addEventListener('submit', event => {
  event.preventDefault();
  state.token = $('secret').value.trim();
  $('secret').value = '';
  watch();
});
for (const id of ['refusal-filter', 'refusal-kind']) $(id).addEventListener('input', renderRefusals);
for (const id of ['pin-filter', 'pin-kind']) $(id).addEventListener('input', () => { $('viewport').scrollTop = 0; renderEntries(); });
moveByArrows($('refusal-list'), 'summary', focusAmong);
moveByArrows($('viewport'), 'button', (all, place, step) => {
  focusEntry(state.shown.findIndex(entry => entry.match === all[place].dataset.match) + step);
});
$('viewport').addEventListener('scroll', () => drawRows(false), { passive: true });
window.addEventListener('resize', () => drawRows(true));
watch();
