// What if: a change on a copy of the cluster, answered by the engine, as a picture of before and after.

import { h } from './dom.js';
import { change, counted, nf, pct, usd, usd0, usd4 } from './format.js';
import { copyButton, failure, poolTag, select, th } from './parts.js';
import { all, ask, get, poolColour, poolNames } from './store.js';

export const needs = ['workloads', 'pools'];
export const state = { kind: 'zone', workload: '', add: 10, zone: '', up: 40, family: '', node: '', pool: '', cpu: '', asked: null, answer: null, problem: null, waits: false };

const zones = () => [...new Set(Object.values(all('nodes')).map((n) => n.zone).filter(Boolean))].sort();
const families = () => [...new Set(Object.values(all('nodes')).filter((n) => n.managed).map((n) => (n.instance_type || '').split('.')[0]).filter(Boolean))].sort();
const workloads = () => Object.entries(all('workloads')).sort((a, b) => b[1] - a[1]);
const nodes = () => Object.entries(all('nodes')).filter(([, n]) => n.managed).map(([name]) => name).sort();

/** The question in the words of the command line's flags. */
function question() {
  const workload = state.workload || workloads()[0]?.[0];
  const zone = state.zone || zones()[0],
    family = state.family || families()[0],
    node = state.node || nodes()[0],
    pool = state.pool || poolNames()[0];
  switch (state.kind) {
    case 'scale':
      return workload ? { scale: [`${workload}=${(get('workloads', workload) || 0) + state.add}`] } : null;
    case 'zone':
      return zone ? { zone_down: [zone] } : null;
    case 'price':
      return { spot_price: `${state.up >= 0 ? '+' : ''}${state.up}%` };
    case 'family':
      return family ? { instance_family: ['-' + family] } : null;
    case 'node':
      return node ? { remove_node: [node] } : null;
    case 'limit':
      return pool && state.cpu ? { set: [`nodepool/${pool}.spec.limits.cpu=${state.cpu}`] } : null;
  }
  return null;
}
const quote = (text) => (/^[\w./=+%:-]+$/.test(text) ? text : `'${text}'`);
const command = (q) => 'dovetail whatif ' + Object.entries(q).flatMap(([flag, v]) => [v].flat().map((x) => `--${flag.replaceAll('_', '-')}=${quote(x)}`)).join(' ');

async function run(repaint) {
  const q = question();
  if (!q || state.waits) return;
  Object.assign(state, { waits: true, problem: null, asked: q });
  repaint();
  try {
    const answer = await ask('api/whatif', q);
    Object.assign(state, { answer, fleet: Object.entries(all('nodes')).filter(([, n]) => n.managed) });
  } catch (problem) {
    Object.assign(state, { problem, answer: null });
  }
  state.waits = false;
  repaint();
}

const byPool = (a, b) => poolNames().indexOf(a.pool) - poolNames().indexOf(b.pool) || (a.fresh ? 1 : 0) - (b.fresh ? 1 : 0) || b.usd_h - a.usd_h;
const strip = (list, max, cls) =>
  h(
    'div',
    { class: 'strip', role: 'img', 'aria-label': `${counted(list.length, 'node')}, one slat each` },
    list.slice(0, 600).map((n) => h('i', { class: poolColour(n.pool) + cls(n), title: `${n.type} ${n.cap} ${n.zone} ${usd4(n.usd_h)}/h`, css: { width: `calc(${((n.usd_h / max) * 100).toFixed(3)}% - 1px)` } })),
  );

function picture(a) {
  const before = state.fleet.map(([name, n]) => ({ name, pool: n.pool, type: n.instance_type, cap: n.capacity_type, zone: n.zone, usd_h: n.usd_h || 0 }));
  const gone = new Set(a.removed_nodes);
  const after = [...before.filter((n) => !gone.has(n.name)), ...a.new_nodes.map((n) => ({ fresh: true, pool: n.node_pool, type: n.instance_type, cap: n.capacity_type, zone: n.zone, usd_h: n.usd_h }))];
  const total = (list) => list.reduce((t, n) => t + n.usd_h, 0);
  const max = Math.max(total(before), total(after), 0.01);
  return h(
    'div',
    { class: 'slats' },
    h(
      'div',
      { class: 'rowh' },
      h('span', {}, h('b', {}, 'Before'), `  ${counted(a.before.nodes, 'node')}, ${usd(a.before.spend_usd_h)}/h`),
      h('span', { class: 'legend' }, poolNames().slice(0, 5).map((p) => h('span', { key: p }, h('i', { class: 'sw ' + poolColour(p) }), p)), h('span', {}, h('i', { class: 'sw h' }), 'goes'), h('span', {}, h('i', { class: 'sw fresh-slat' }), 'new')),
    ),
    strip(before.sort(byPool), max, (n) => (gone.has(n.name) ? ' out' : '')),
    h('div', { class: 'rowh' }, h('span', {}, h('b', {}, 'After'), `  ${counted(a.after.nodes, 'node')}, ${usd(a.after.spend_usd_h)}/h`), h('span', { class: 'muted' }, "one slat per node, width is today's price")),
    strip(after.sort(byPool), max, (n) => (n.fresh ? ' in' : '')),
  );
}

function result() {
  const a = state.answer;
  const [b, c] = [a.before, a.after],
    dm = a.delta.usd_mo,
    stuck = a.unplaced.length;
  const tone = dm > 1 ? 'neg' : dm < -1 && !stuck ? 'pos' : '';
  const row = (name, x, y, d, cls) => h('tr', { key: name }, h('td', {}, name), h('td', { class: 'num sec' }, x), h('td', { class: 'num' }, y), h('td', { class: 'num ' + (cls || '') }, d));
  const fill = (side, kind) => (kind === 'cpu' ? side.cpu_requested_m / Math.max(1, side.cpu_m) : side.memory_requested_mib / Math.max(1, side.memory_mib));
  const points = (x) => `${x > 0 ? '+' : x < 0 ? '\u2212' : ''}${Math.abs(x * 100).toFixed(1)} pt`;
  const dn = a.delta.nodes;
  const kinds = new Map();
  for (const n of a.new_nodes) {
    const key = `${n.instance_type} ${n.capacity_type}\n${n.node_pool}`;
    const k = kinds.get(key) || kinds.set(key, { text: `${n.instance_type} ${n.capacity_type}`, pool: n.node_pool, n: 0, usd: 0 }).get(key);
    k.n++;
    k.usd += n.usd_h;
  }
  return [
    h(
      'div',
      { class: 'verdictline' },
      h('span', { class: 'd ' + tone }, change(dm, usd0) + '/mo'),
      h(
        'span',
        { class: 'sec' },
        a.change.join('; ') + '. ',
        `${usd0(b.spend_usd_mo)} to ${usd0(c.spend_usd_mo)} a month${b.spend_usd_mo > 0 ? `, ${c.spend_usd_mo >= b.spend_usd_mo ? '+' : '\u2212'}${Math.abs((c.spend_usd_mo / b.spend_usd_mo - 1) * 100).toFixed(1)}\u2009%` : ''}.`,
        stuck ? [h('b', { class: 'neg' }, ` ${counted(stuck, 'pod')} cannot be placed`), dm < 0 ? '; part of the fall is that they do not run.' : '.'] : ' Every pod finds a place.',
      ),
      a.delta.settled_usd_mo != null ? h('div', { class: 'muted' }, `Once every move that saves money is made on both sides: ${change(a.delta.settled_usd_mo, usd0)}/mo.`) : null,
    ),
    picture(a),
    h(
      'div',
      { class: 'wtwo' },
      h(
        'div',
        {},
        h(
          'table',
          {},
          h('thead', {}, h('tr', {}, th('Measure'), th('Before', 'num'), th('After', 'num'), th('Change', 'num'))),
          h(
            'tbody',
            {},
            row('Spend per hour', usd(b.spend_usd_h), usd(c.spend_usd_h), change(a.delta.usd_h), tone),
            row('Spend per month', usd0(b.spend_usd_mo), usd0(c.spend_usd_mo), change(dm, usd0), tone),
            row('Nodes', nf(b.nodes), nf(c.nodes), dn > 0 ? '+' + dn : dn < 0 ? '\u2212' + -dn : '0'),
            row('Of these spot', nf(b.spot), nf(c.spot), ''),
            row('CPU requested', pct(fill(b, 'cpu'), 1), pct(fill(c, 'cpu'), 1), points(fill(c, 'cpu') - fill(b, 'cpu'))),
            row('Memory requested', pct(fill(b, 'memory'), 1), pct(fill(c, 'memory'), 1), points(fill(c, 'memory') - fill(b, 'memory'))),
            row('Pods that run', nf(b.pods_running), nf(c.pods_running), ''),
            row('Pods moved', '-', nf(a.moved.length), ''),
            row('Pods that cannot be placed', nf(b.unplaced), h('span', { class: stuck ? 'neg' : '' }, nf(c.unplaced)), ''),
            row('Pods that nobody makes again', '-', nf(a.lost.length), ''),
            b.settled && c.settled ? row('Spend at rest', usd(b.settled.spend_usd_h), usd(c.settled.spend_usd_h), change(c.settled.spend_usd_h - b.settled.spend_usd_h)) : null,
          ),
        ),
      ),
      h(
        'div',
        {},
        h('div', { class: 'sh' }, h('h2', {}, 'New nodes'), h('span', { class: 'sp' }), h('p', {}, nf(a.new_nodes.length))),
        kinds.size
          ? h('table', {}, h('tbody', {}, [...kinds.values()].sort((x, y) => y.usd - x.usd).slice(0, 8).map((k) => h('tr', { key: k.text + k.pool }, h('td', { class: 'times' }, k.n + '\u00d7'), h('td', {}, k.text), h('td', {}, poolTag(k.pool)), h('td', { class: 'num' }, usd(k.usd) + '/h')))))
          : h('p', { class: 'muted gap' }, 'None needed.'),
        h('div', { class: 'sh gap' }, h('h2', {}, 'Cannot be placed'), h('span', { class: 'sp' }), h('p', {}, nf(stuck))),
        stuck
          ? h('ul', { class: 'others stk' }, a.unplaced.slice(0, 6).map((p) => h('li', { key: p.pod }, h('span', { class: 'trunc' }, p.pod), h('span', { class: 'muted trunc', title: p.why }, p.why))), stuck > 6 ? h('li', {}, h('span', { class: 'muted' }, `and ${stuck - 6} more`)) : null)
          : h('p', { class: 'muted gap' }, 'None.'),
      ),
    ),
    h('p', { class: 'note' }, a.assumed?.length ? `Taken for granted: ${a.assumed.join('; ')}. ` : '', 'Both sides are the cluster once the pods that wait have their nodes. Nothing is changed in the cluster.'),
  ];
}

export function view(repaint) {
  const set = (field, f = (v) => v) => (v) => {
    state[field] = f(v);
    repaint();
  };
  const range = (label, field, min, max, step, text) =>
    h(
      'label',
      {},
      h('span', { class: 'rng' }, label, h('output', {}, text(state[field]))),
      h('input', { type: 'range', min, max, step, value: state[field], 'aria-label': label, on: { input: (e) => set(field, Number)(e.target.value) } }),
    );
  const scenario = (kind, label, ...controls) =>
    h(
      'div',
      { class: 'scn', key: kind },
      h(
        'label',
        {},
        h('input', {
          type: 'radio',
          name: 'scn',
          'data-kind': kind,
          checked: state.kind === kind,
          on: {
            change: () => {
              history.replaceState(null, '', '#whatif/' + kind);
              set('kind')(kind);
            },
          },
        }),
        label,
      ),
      state.kind === kind ? h('div', { class: 'params' }, controls) : null,
    );
  const q = question();
  const works = workloads();
  return [
    h('div', { class: 'vhead' }, h('h1', {}, 'What if'), h('p', {}, 'Runs the real planner on a copy of the cluster.')),
    h(
      'div',
      { class: 'wi' },
      h(
        'form',
        {
          on: {
            submit: (e) => {
              e.preventDefault();
              run(repaint);
            },
          },
        },
        h(
          'fieldset',
          {},
          h('legend', {}, 'Change'),
          scenario('zone', 'Take a zone down', h('label', {}, 'Zone', select('Zone', zones(), state.zone || zones()[0], set('zone')))),
          scenario(
            'scale',
            'Scale a workload',
            works.length
              ? [h('label', {}, 'Workload', select('Workload', works.slice(0, 200).map(([name, n]) => [name, `${name} (${n})`]), state.workload || works[0][0], set('workload'))), range('Replicas added', 'add', 1, 200, 1, (v) => '+' + v)]
              : h('p', { class: 'muted' }, 'No Deployment, StatefulSet or ReplicaSet has pods.'),
          ),
          scenario('price', 'Move the spot price', range('Change', 'up', -50, 200, 5, (v) => `${v >= 0 ? '+' : '\u2212'}${Math.abs(v)} %`)),
          scenario('family', 'Switch an instance family off', h('label', {}, 'Family', select('Family', families(), state.family || families()[0], set('family')))),
          scenario('node', 'Remove a node', h('label', {}, 'Node', select('Node', nodes().slice(0, 500), state.node || nodes()[0], set('node')))),
          scenario('limit', 'Set limits.cpu of a NodePool', h('label', {}, 'NodePool', select('NodePool', poolNames(), state.pool || poolNames()[0], set('pool'))), h('label', {}, 'limits.cpu', h('input', { class: 'txt-in', type: 'text', inputmode: 'numeric', placeholder: '128', value: state.cpu, 'aria-label': 'limits.cpu', on: { input: (e) => set('cpu')(e.target.value.trim()) } }))),
        ),
        h('div', { class: 'gap' }, h('button', { class: 'btn primary', type: 'submit', disabled: !q || state.waits }, state.waits ? 'Planning\u2026' : 'Ask the planner')),
        q ? h('div', { class: 'cli' }, h('div', { class: 'dh' }, h('span', {}, 'Same question on a laptop'), copyButton(command(q), 'command')), h('pre', { class: 'mono' }, command(q))) : null,
      ),
      h('div', { class: 'res', 'aria-live': 'polite', 'aria-busy': String(state.waits) }, state.problem ? failure(state.problem) : state.answer ? result() : h('div', { class: 'empty first' }, h('b', {}, state.waits ? 'Planning' : 'Nothing was asked yet'), state.waits ? 'Both sides are planned; a large cluster takes a while.' : 'Choose a change, then ask the planner.')),
    ),
  ];
}
