'use strict';
// Unacknowledged incidents. Functions and values of page.js are used.

function openIncidents() { return (state.tick && state.tick.incidents) || (state.status && state.status.incidents) || []; }

/** What a banner says of those of one kind that were refused; null: there is none. */
function incidentProblem(kind, title) {
  const found = openIncidents().filter(incident => incident.kind === kind && incident.refused > 0);
  if (found.length === 0) return null;
  const named = found.slice(0, 3).map(incident => `${incident.cause} (${count(incident.refused, 'connection')} refused, the last ${ago(incident.last)})`);
  return ['bad', title, `${named.join('; ')}${found.length > 3 ? ' …' : ''}.`, '#incidents'];
}

function renderIncidents() {
  const all = openIncidents(), shown = JSON.stringify(all);
  $('incidents').hidden = all.length === 0;
  if ($('incident-list').dataset.shown === shown) return;
  $('incident-list').dataset.shown = shown;
  fill($('incident-list'), ...all.map(incident => h('li', {},
    h('span', { class: `badge ${incident.refused > 0 ? 'bad' : 'info'}` }, incident.refused > 0 ? 'refused' : 'reported'), ' ',
    h('span', { class: 'host' }, `${incident.host}${incident.port === 443 ? '' : ':' + incident.port}`), ' ',
    h('span', { class: 'cause' }, incident.cause), ' ',
    h('span', { class: 'note' }, `${count(incident.refused + incident.reported, 'connection')}, ${moment.format(incident.first * 1000)} to ${moment.format(incident.last * 1000)}${incident.addresses.length > 0 ? ', at ' + incident.addresses.join(', ') : ''}`), ' ',
    h('code', {}, incident.id))));
}
