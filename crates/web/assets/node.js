// The panel of a node: what it is, why it is here, why it stays, and what would come of removing it.

import { $, h, s, show } from './dom.js';
import { age, capWord, change, counted, nf, share, span, upper, usd, usd0, usd4 } from './format.js';
import { diff, failure, labelled, podCells, poolTag } from './parts.js';
import { ask, get, rows, since } from './store.js';
import { state as map } from './fleet.js';

const asked = new Map();

/** What the engine says of a node; asked when the panel opens, and again when that is old. */
async function explain(name, repaint) {
  const known = asked.get(name),
    began = performance.now();
  if (known?.waits || (known && began < known.again)) return;
  asked.set(name, { ...known, waits: true });
  // Not so soon again, and the less soon the longer it takes.
  const again = () => performance.now() + Math.max(10000, 5 * (performance.now() - began));
  try {
    const why = await ask('api/why/node/' + name);
    asked.set(name, { why, again: again() });
  } catch (problem) {
    asked.set(name, { why: known?.why, problem, again: again() });
  }
  if (asked.size > 50) asked.delete(asked.keys().next().value);
  repaint();
}
export const forget = (name) => asked.delete(name);

const fact = (name, value, wide) => [h('dt', {}, name), h('dd', { class: wide ? 'wide' : null, title: typeof value === 'string' ? value : null }, value)];

function came(n, name, why) {
  const born = rows('decisions').find(([, d]) => d.kind === 'launch' && n.claim && d.what && d.claims?.includes(n.claim));
  const steps = why?.came.steps || [];
  return h(
    'section',
    {},
    h('h3', {}, 'Why it is here'),
    !n.managed
      ? h('p', {}, 'Somebody else made it: it takes pods, and is never removed.')
      : [
          born ? h('p', {}, h('a', { class: 'id', href: '#decisions/' + born[0] }, born[0].slice(0, 6)), ' ', upper(born[1].what) + '.') : null,
          why && why.came.asked_cpu_m ? h('p', {}, `Its claim asked for at least ${nf(why.came.asked_cpu_m)}m cpu and ${nf(why.came.asked_memory_mib)} MiB.`) : null,
          n.on_demand_usd_h != null && n.usd_h != null && n.capacity_type === 'spot' ? h('p', { class: 'muted' }, `${usd4(n.on_demand_usd_h - n.usd_h)}/h below on-demand.`) : null,
          steps.length ? h('p', { class: 'muted' }, steps.map((t) => `${t.name} after ${span(t.after_s)}`).join(', ') + '.') : null,
        ],
  );
}

function stays(why) {
  if (why.goes)
    return [
      h('p', {}, `It does not: ${why.goes.action}${why.goes.round === 1 ? ' now' : ` in step ${why.goes.round}`}, `, h('b', { class: why.goes.delta_usd_mo < 0 ? 'pos' : '' }, change(why.goes.delta_usd_mo, usd0) + '/mo'), '.'),
      why.goes.new_nodes.length ? h('p', { class: 'muted' }, 'By ' + why.goes.new_nodes.map((n) => `${n.instance_type} ${n.capacity_type}`).join(' + ') + '.') : null,
    ];
  if (!why.is_managed) return h('p', {}, 'It is not ours to remove.');
  if (!why.stays.length) return h('p', {}, 'Nothing keeps it; nothing was found that is worth moving its pods.');
  const worth = why.lifting_usd_mo != null ? ` Worth ${usd0(why.lifting_usd_mo)}/mo.` : '';
  return why.stays.slice(0, 6).map((stay, i) => [
    h('p', { class: i ? 'gap' : null }, upper(stay.text) + '.'),
    stay.fix
      ? h('div', { class: 'lift' }, h('b', {}, `${stay.fix.object}: ${stay.fix.change}`), h('span', { class: 'worth' }, 'Smallest change that lifts it.' + (i === 0 ? worth : '')), stay.fix.patch.length ? diff(stay.fix.object, stay.fix.patch) : null)
      : null,
  ]);
}

function removed(why) {
  const r = why.if_removed;
  if (!r) return null;
  const to = new Set(r.moves.filter((m) => !m.to.startsWith('new ')).map((m) => m.to));
  const fits = r.moves.filter((m) => !m.to.startsWith('new ')).length;
  const text = [
    r.moves.length || r.pending.length ? (fits ? `${fits} of ${counted(r.moves.length + r.pending.length, 'pod')} fit on ${counted(to.size, 'node')} there are` : 'No pod fits on a node there is') : 'Only pods of DaemonSets run here; nothing would move',
    r.new_nodes.length ? `${r.new_nodes.length} new: ${r.new_nodes.slice(0, 3).map((n) => `${n.instance_type} ${n.capacity_type}`).join(', ')}` : '',
    r.pending.length ? `${r.pending.length} would stay pending` : r.moves.length ? 'none pending' : '',
  ];
  return h(
    'section',
    {},
    h('h3', {}, 'What if removed'),
    h('div', { class: 'verdict' }, h('span', { class: 'd ' + (r.delta_usd_mo < -0.005 ? 'pos' : r.delta_usd_mo > 0.005 ? 'neg' : '') }, change(r.delta_usd_mo, usd0) + '/mo'), h('span', { class: 'sec' }, text.filter(Boolean).join('; ') + '.')),
  );
}

/** Shows the panel of the chosen node, or hides it. */
export function panel(visible, close, repaint) {
  const el = $('panel'),
    name = map.node,
    n = name && get('nodes', name);
  el.hidden = !visible || !name;
  $('app').classList.toggle('has-panel', !el.hidden);
  if (el.hidden) return show(el);
  explain(name, repaint);
  const { why, problem, waits } = asked.get(name) || {};
  const head = h(
    'header',
    {},
    h('div', {}, h('h2', {}, name), h('p', {}, n ? [poolTag(n.pool), ` \u00a0${n.instance_type || 'unknown type'} ${capWord(n.capacity_type)}`] : 'is gone')),
    h('button', { class: 'ib', type: 'button', 'aria-label': 'Close node details', on: { click: close } }, s('svg', { 'aria-hidden': 'true' }, s('use', { href: '#i-close' }))),
  );
  if (!n) return show(el, head, h('section', {}, h('p', {}, 'This node is no longer in the cluster.')));
  const mib = (x) => (x / 1024).toFixed(1);
  show(
    el,
    head,
    h(
      'section',
      {},
      h(
        'dl',
        { class: 'facts' },
        fact('Price', n.usd_h == null ? 'unknown' : usd4(n.usd_h) + '/h'),
        fact('Month', n.usd_mo == null ? 'unknown' : usd(n.usd_mo)),
        fact('Zone', n.zone || '-'),
        fact('Age', n.created ? age(since(n.created)) : '-'),
        fact('Size', `${n.vcpu} vCPU`),
        fact('Memory', `${n.gib} GiB`),
        fact('Arch', n.arch || '-'),
        fact('Pods', `${n.pods} of ${n.pod_capacity}`),
        fact('State', h('span', {}, n.state, n.drifted ? h('span', { class: 'tag warn after' }, 'drifted') : null), 1),
        n.image ? fact('Image', n.image, 1) : null,
        n.claim ? fact('Claim', n.claim, 1) : null,
      ),
      h('div', { class: 'gap' }, labelled('cpu', share(n.cpu_m), `${(n.cpu_m.requested / 1000).toFixed(1)} of ${(n.cpu_m.allocatable / 1000).toFixed(1)}`), labelled('memory', share(n.memory_mib), `${mib(n.memory_mib.requested)} of ${mib(n.memory_mib.allocatable)} GiB`)),
    ),
    came(n, name, why),
    h('section', { 'aria-busy': String(!!waits) }, h('h3', {}, 'Why it stays'), why ? stays(why) : problem ? failure(problem) : h('p', { class: 'muted' }, 'Asking the engine\u2026')),
    why ? removed(why) : null,
    h(
      'section',
      {},
      h('h3', {}, `Pods (${n.pods})`),
      podCells(n.cells),
      why
        ? h(
            'ul',
            { class: 'podlist', tabindex: 0, 'aria-label': 'Pods of the node' },
            why.pods.map((p) => {
              const [ns, pod] = p.pod.split('/');
              return h('li', { key: p.pod }, h('span', { class: 'trunc', title: p.pod }, h('span', { class: 'muted' }, ns + '/'), pod), h('span', { class: 'num' }, p.cpu_m + 'm'), h('span', { class: 'num' }, p.memory_mib >= 1024 ? (p.memory_mib / 1024).toFixed(1) + ' GiB' : p.memory_mib + ' MiB'));
            }),
          )
        : null,
      h('p', { class: 'note' }, 'Same answer: ', h('code', {}, 'dovetail why node ' + name)),
    ),
  );
}
