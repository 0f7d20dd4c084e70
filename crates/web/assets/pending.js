// Pending: which pods wait, what stops them, and the smallest change that would let them in.

import { h, ic, s, width } from './dom.js';
import { counted, nf, span, upper, usd4 } from './format.js';
import { diff, failure } from './parts.js';
import { ask, one, rows, since } from './store.js';

export const needs = ['pending', 'coming', 'now', 'money'];
const state = { chosen: null, why: {} };

/** Everything that waits: groups that are blocked, then nodes that come for the others. */
const waiting = () => [
  ...rows('pending').map(([key, group]) => ({ key, group })),
  ...rows('coming').map(([key, node]) => ({ key, node })),
];
const scale = (steps) => Math.max(1, ...steps.map((t) => t.left));
const part = (v, max) => Math.sqrt(Math.max(0, v) / max);

const mini = (steps) => {
  const n = steps.length,
    W = 74,
    H = 34,
    rh = H / Math.max(1, n),
    max = scale(steps);
  return s(
    'svg',
    { viewBox: `0 0 ${W} ${H}`, 'aria-hidden': 'true' },
    steps.map((t, i) => {
      const stop = t.left === 0,
        w = stop ? 14 : Math.max(2, part(t.left, max) * W);
      return s('rect', { x: ((W - w) / 2).toFixed(1), y: (i * rh + (stop ? 1 : 0)).toFixed(1), width: w.toFixed(1), height: stop ? 3 : Math.max(1, rh - 1.2).toFixed(1), class: stop ? 'fstop' : i === 0 ? 'fz first' : 'fz' });
    }),
  );
};

/** A note without what every one of them begins with, as long as there is room. */
const short = (note, fit) => {
  const text = note.replace(/^NodePool spec\.template\.spec\.(requirements )?/, '').replace(/^Pod spec\./, '');
  return text.length > fit ? text.slice(0, fit - 1) + '\u2026' : text;
};

function funnel(steps, w) {
  const n = steps.length,
    narrow = w < 520,
    LW = narrow ? 0 : Math.min(300, w * 0.4),
    rh = 40,
    bh = 22,
    step = rh + (narrow ? 16 : 0),
    off = narrow ? 16 : 0,
    H = n * step - (rh - bh) + 10,
    cx0 = LW + 8,
    fw = w - cx0 - 78,
    cx = cx0 + fw / 2,
    max = scale(steps);
  const out = [];
  steps.forEach((t, i) => {
    const y = i * step + off,
      bw = Math.max(3, part(t.left, max) * fw),
      next = steps[i + 1],
      stop = t.left === 0;
    if (next) {
      const nw = Math.max(3, part(next.left, max) * fw);
      out.push(s('path', { class: 'fj', d: `M${cx - bw / 2} ${y + bh}L${cx + bw / 2} ${y + bh}L${cx + nw / 2} ${y + step}L${cx - nw / 2} ${y + step}Z` }));
    }
    if (stop) out.push(s('rect', { x: cx - 26, y: y + bh / 2 - 2.5, width: 52, height: 5, class: 'fstop' }));
    else out.push(s('rect', { x: cx - bw / 2, y, width: bw, height: bh, class: 'fz' + (i === 0 ? ' first' : '') }));
    const lost = i ? steps[i - 1].left - t.left : 0;
    const fit = Math.floor(LW / 5.6);
    if (narrow) out.push(s('text', { x: 0, y: y - 4, class: stop ? 'ts' : 't2' }, t.name));
    else
      out.push(
        s('text', { x: 0, y: y + 10, class: stop ? 'ts' : 't1', css: { 'font-size': '13px' } }, t.name),
        s('text', { x: 0, y: y + 25 }, short(t.note, fit), s('title', {}, t.note)),
      );
    out.push(s('text', { x: w, y: y + 15, 'text-anchor': 'end', class: stop ? 'ts' : 't1', css: { 'font-size': '13px' } }, nf(t.left)));
    if (lost > 0) out.push(s('text', { x: w - 48, y: y + 15, 'text-anchor': 'end' }, '\u2212' + nf(lost)));
  });
  const label = 'Instance types left after each condition: ' + steps.map((t) => `${t.name} ${t.left}`).join(', ');
  return s('svg', { viewBox: `0 0 ${w} ${Math.max(H, 40)}`, height: Math.max(H, 40), role: 'img', 'aria-label': label }, out);
}

const wants = (requests) => Object.entries(requests).map(([k, v]) => `${k} ${v}`).join(', ');
const named = (pod) => {
  const [ns, name] = pod.split('/');
  return [h('span', {}, ns + '/'), name];
};

function choose(key, repaint, focus) {
  state.chosen = key;
  history.replaceState(null, '', '#pending/' + key);
  repaint();
  if (focus) document.querySelector('.plist [aria-selected=true]')?.focus();
}
/** The row after or before the chosen one. */
export function walk(by, repaint) {
  const keys = waiting().map((w) => w.key);
  const at = Math.max(0, keys.indexOf(state.chosen));
  const next = keys[Math.max(0, Math.min(keys.length - 1, at + by))];
  if (next) choose(next, repaint, true);
}
export const open = (key) => {
  state.chosen = key;
};

async function existing(pod, repaint) {
  state.why[pod] = { waits: true };
  repaint();
  try {
    state.why[pod] = await ask('api/why/pod/' + pod);
  } catch (problem) {
    state.why[pod] = { problem };
  }
  repaint();
}

function blocked(key, group, repaint) {
  const f = group.funnel,
    why = state.why[key],
    stop = f?.steps.find((t) => t.left === 0),
    more = group.pod_count - 1;
  return h(
    'div',
    { class: 'pdet', key },
    h('h2', {}, group.pods[0] || group.workload, more > 0 ? h('span', { class: 'muted' }, ` and ${more} more of ${group.workload}`) : null),
    h('p', { class: 'meta' }, `wants ${wants(group.requests)}`),
    h('div', { class: 'why' }, ic('i-stop'), h('div', {}, h('b', {}, stop ? `Stops at: ${stop.name}` : upper(group.reason)), stop ? stop.note : group.message)),
    f
      ? [
          h('div', { class: 'sh' }, h('h2', {}, 'Instance types left after each condition'), h('span', { class: 'sp' }), h('p', {}, `NodePool ${f.node_pool}. Width is the square root of the count`)),
          h('div', { class: 'funnel', sized: 'funnel' }, funnel(f.steps, width('funnel', 760))),
          f.other_pools.length ? h('ul', { class: 'others', 'aria-label': 'Other NodePools' }, f.other_pools.map((p) => h('li', { key: p.node_pool }, h('b', {}, p.node_pool), ': ', p.why))) : null,
          h(
            'div',
            { class: 'fix' },
            h(
              'div',
              {},
              h('div', { class: 'sh' }, h('h2', {}, 'Smallest fix'), h('span', { class: 'sp' }), f.fix?.usd_h != null ? h('span', { class: 'cost' }, `node ${usd4(f.fix.usd_h)}/h`) : null),
              f.fix ? [h('p', { class: 'gap' }, f.fix.text + '.'), f.fix.patch.length ? diff(f.fix.text.split(':')[0], f.fix.patch) : null] : h('p', { class: 'quiet' }, 'No single change helps: nothing that is offered is large enough, or several conditions are in the way.'),
            ),
            h(
              'div',
              {},
              h('div', { class: 'sh' }, h('h2', {}, 'Other ways')),
              f.other_fixes.length ? h('ul', { class: 'others' }, f.other_fixes.map((o) => h('li', {}, upper(o)))) : h('p', { class: 'quiet' }, 'None was found.'),
              why?.existing
                ? h('ul', { class: 'others', 'aria-label': 'Nodes there are' }, h('li', {}, `Of ${counted(why.existing.looked_at, 'node')} there are:`), why.existing.reasons.map((r) => h('li', {}, `${nf(r.nodes)}: ${r.text}`)))
                : why?.problem
                  ? failure(why.problem)
                  : h('p', { class: 'gap' }, h('button', { class: 'btn sm', type: 'button', disabled: why?.waits, on: { click: () => existing(key, repaint) } }, why?.waits ? 'Asking\u2026' : 'Why no node there is?')),
              h('p', { class: 'note' }, 'Same answer: ', h('code', {}, `dovetail why pod ${key}`)),
            ),
          ),
        ]
      : h('p', { class: 'note' }, group.message),
  );
}

function coming(key, node) {
  const launches = node.number != null;
  const what = [node.instance_type, node.capacity_type, node.zone && 'in ' + node.zone].filter(Boolean).join(' ');
  return h(
    'div',
    { class: 'pdet', key },
    h('h2', {}, launches ? `A new node: ${what}` : node.name),
    h('p', { class: 'meta' }, `${counted(node.pod_count, 'pod')} on the way${node.node_pool ? `, NodePool ${node.node_pool}` : ''}`),
    h('div', { class: 'why ok' }, ic('i-info'), h('div', {}, h('b', {}, 'On its way'), launches ? `A node is launched${node.usd_h != null ? ` for ${usd4(node.usd_h)}/h` : ''}; ${nf(node.instance_types)} instance types would do. kube-scheduler binds the pods when it joins.` : 'There is room on this node; kube-scheduler is to bind the pods.')),
    h('div', { class: 'sh' }, h('h2', {}, 'Pods')),
    h('ul', { class: 'others' }, node.pods.map((p) => h('li', { key: p }, p)), node.pod_count > node.pods.length ? h('li', {}, `and ${node.pod_count - node.pods.length} more`) : null),
  );
}

export function view(repaint) {
  const N = one('now'),
    M = one('money'),
    list = waiting();
  const head = (text) => h('div', { class: 'vhead' }, h('h1', {}, 'Pending'), text ? h('p', {}, text) : null);
  if (!list.length)
    return [
      head(),
      h('div', { class: 'empty first' }, N?.pods.pending ? [h('b', {}, `${counted(N.pods.pending, 'pod')} just arrived`), 'What becomes of them is being worked out.'] : [h('b', {}, 'No pods are pending'), `${nf(N?.pods.running || 0)} run.`]),
    ];
  const chosen = list.find((w) => w.key === state.chosen) || list[0];
  const row = (w) => {
    const on = w === chosen;
    const text = w.group
      ? [h('span', { class: 'bl' }, upper(w.group.stops_at || w.group.reason)), ' \u00b7 ', w.group.since ? span(since(w.group.since)) : '', w.group.funnel ? ` \u00b7 ${w.group.funnel.node_pool}` : '', w.group.pod_count > 1 ? ` \u00b7 ${w.group.pod_count} pods` : '']
      : [h('span', { class: 'ok' }, 'On its way'), ` \u00b7 ${counted(w.node.pod_count, 'pod')}`, w.node.number != null ? ` \u00b7 ${[w.node.instance_type, w.node.capacity_type].filter(Boolean).join(' ')}` : ` \u00b7 ${w.node.name}`];
    return h(
      'button',
      { key: w.key, type: 'button', role: 'option', 'aria-selected': String(on), tabindex: on ? 0 : -1, on: { click: () => choose(w.key, repaint, true) } },
      h('span', { class: 'n trunc' }, w.group ? named(w.group.pods[0] || w.group.workload) : named(w.node.pods[0] || '/')),
      h('span', { class: 's trunc' }, text),
      w.group?.funnel ? mini(w.group.funnel.steps) : s('svg', { viewBox: '0 0 74 34', 'aria-hidden': 'true' }),
    );
  };
  return [
    head(`${counted(M?.blocked || 0, 'pod')} blocked by a rule, ${nf(M?.on_their_way || 0)} on the way${N?.pods.longest_wait_s != null ? `. Longest wait ${span(N.pods.longest_wait_s)}` : ''}.`),
    h('div', { class: 'md' }, h('div', { class: 'plist', role: 'listbox', 'aria-label': 'Pending pods' }, list.slice(0, 200).map(row)), chosen.group ? blocked(chosen.key, chosen.group, repaint) : coming(chosen.key, chosen.node)),
  ];
}
