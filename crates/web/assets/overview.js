// Overview: what is spent, what of it is avoidable and why, how it came here, what is next, and what needs a person.

import { h, ic, s, width } from './dom.js';
import { age, change, clock, counted, memory, nf, pct, share, shortId, span, upper, usd, usd0 } from './format.js';
import { bar, poolTag, section, th } from './parts.js';
import { all, now, one, poolColour, poolNames, rows, since } from './store.js';

export const needs = ['now', 'money', 'trend', 'moves', 'kept', 'alerts', 'pools', 'marks', 'decisions'];

/** What is above the bound, by why: the parts of the ruler. */
const ABOVE = [
  ['planned_usd_mo', 'goes by itself', 'var(--f3)'],
  ['held_usd_mo', 'held by a rule', 'var(--f0)'],
  ['drag_usd_mo', 'on-demand that may be spot', 'var(--od)'],
  ['rounding_usd_mo', 'sizes come in steps', 'var(--line-2)'],
];
const SAVED = [
  ['spot_usd_mo', 'spot', 'var(--spot)'],
  ['packing_usd_mo', 'packing', 'var(--p1)'],
  ['commitments_usd_mo', 'commitments', 'var(--rsv)'],
];
const HOURS = 730;

function ruler(money, w) {
  const spend = money.spend_usd_h,
    bound = money.bound_usd_h,
    base = Math.max(money.baseline_usd_h, spend),
    H = 104,
    bar = 40,
    bh = 24,
    x = (v) => (base > 0 ? (v / base) * w : 0);
  const out = [];
  const part = (a, b, fill, opacity = 1, title = '') =>
    out.push(s('rect', { x: x(a).toFixed(1), y: bar, width: Math.max(0, x(b) - x(a) - 1).toFixed(1), height: bh, fill, 'fill-opacity': opacity }, title ? s('title', {}, title) : null));
  part(0, bound, 'var(--ink-2)', 1, `lower bound ${usd(bound)}/h`);
  let at = bound;
  for (const [field, words, fill] of ABOVE) {
    const v = money.above_bound[field] / HOURS;
    if (v > 0) part(at, at + v, fill, 1, `${words}: ${usd0(money.above_bound[field])}/mo`);
    at += v;
  }
  const total = SAVED.reduce((t, [field]) => t + Math.max(0, money.saved[field]), 0);
  at = spend;
  for (const [field, words, fill] of SAVED) {
    const v = total > 0 ? (Math.max(0, money.saved[field]) / total) * (base - spend) : 0;
    if (v <= 0) continue;
    part(at, at + v, fill, 0.32, `saved by ${words}: ${usd0(money.saved[field])}/mo`);
    out.push(s('rect', { x: x(at).toFixed(1), y: bar + bh - 3, width: Math.max(0, x(at + v) - x(at) - 1).toFixed(1), height: 3, fill }));
    if (x(at + v) - x(at) > 120) out.push(s('text', { x: (x(at) + 9).toFixed(1), y: bar + 15, class: 't2' }, `${words}  `, s('tspan', { class: 't1' }, usd0(money.saved[field])), '/mo'));
    at += v;
  }
  if (x(bound) > 100) out.push(s('text', { x: 9, y: bar + 16, css: { fill: 'var(--surface)' } }, x(bound) > 230 ? 'cannot be avoided: proven lower bound' : 'cannot be avoided'));
  const mark = (v, top, lines, anchor, dx = 0) => {
    out.push(s('path', { d: `M${(x(v) - 0.5).toFixed(1)} ${top ? bar - 6 : bar}V${top ? bar + bh : bar + bh + 7}`, stroke: 'var(--ink)', 'stroke-width': 1.5 }));
    lines.forEach((l, i) => out.push(s('text', { x: (x(v) + dx).toFixed(1), y: top ? bar - 26 + i * 15 : bar + bh + 21 + i * 15, 'text-anchor': anchor, class: i === 0 ? 't1' : 't2' }, l)));
  };
  const left = x(bound) < 90;
  mark(bound, false, [`${usd(bound)}/h`, 'lower bound'], left ? 'start' : 'end');
  const end = x(spend) > w - 250;
  mark(spend, true, [`${now() - Date.parse(money.at) > 6e4 ? clock(money.at) : 'now'} ${usd(spend)}/h`, bound > 0 ? `at most ${pct(spend / bound - 1, 1)} above the bound, ${usd0(money.above_bound.total_usd_mo)}/mo` : 'nothing runs that must'], end ? 'end' : 'start', end ? 4 : -4);
  if (base > spend * 1.02) {
    mark(base, false, [`${usd(base)}/h`, w < 820 ? 'baseline' : 'same pods, on-demand, unpacked'], 'end');
    if (w >= 620 && x(base) - x(spend) > 240) {
      const mid = Math.min(x((spend + base) / 2), w - 270);
      out.push(
        s('text', { x: mid.toFixed(1), y: bar + bh + 21, 'text-anchor': 'middle', class: 't1' }, `saved ${usd0(money.saved.total_usd_mo)}/mo`),
        s('text', { x: mid.toFixed(1), y: bar + bh + 36, 'text-anchor': 'middle', class: 't2' }, `${pct(1 - spend / base)} of the baseline`),
      );
    }
  }
  const label = `Of a baseline of ${usd(base)} per hour, ${usd(spend)} is spent; the proven lower bound is ${usd(bound)}`;
  return s('svg', { viewBox: `0 0 ${w} ${H}`, height: H, role: 'img', 'aria-label': label }, out);
}

/** Round steps for an axis. */
const nice = (max) => {
  const raw = max / 3 || 1,
    ten = 10 ** Math.floor(Math.log10(raw));
  return [1, 2, 5, 10].map((m) => m * ten).find((v) => v >= raw);
};

let hover = null;
function chart(points, w, repaint) {
  const H = 178,
    L = 42,
    R = 8,
    T = 8,
    B = 22,
    n = points.length;
  const names = poolNames(),
    shown = names.slice(0, 4),
    rest = names.slice(4);
  const value = (p, k) => (k < 4 ? p.pools[shown[k]] || 0 : rest.reduce((t, name) => t + (p.pools[name] || 0), 0));
  const layers = rest.length ? 5 : shown.length;
  const t0 = Date.parse(points[0].at),
    t1 = Date.parse(points[n - 1].at),
    X = (t) => L + ((t - t0) / Math.max(1, t1 - t0)) * (w - L - R);
  const top = Math.max(...points.map((p) => Math.max(p.spend_usd_h, p.baseline_usd_h ?? 0, p.bound_usd_h ?? 0)), 0.01),
    step = nice(top * 1.03),
    max = Math.max(step, Math.ceil((top * 1.03) / step) * step),
    Y = (v) => T + (1 - v / max) * (H - T - B);
  const at = points.map((p) => X(Date.parse(p.at)).toFixed(1));
  const out = [];
  for (let v = 0; v <= max + 1e-9; v += step)
    out.push(s('path', { d: `M${L} ${Y(v).toFixed(1)}H${w - R}`, stroke: 'var(--line)' }), s('text', { x: L - 7, y: (Y(v) + 4).toFixed(1), 'text-anchor': 'end' }, '$' + (step < 1 ? v.toFixed(2) : v)));
  const minute = 6e4,
    spanMs = t1 - t0,
    every = [1, 2, 5, 10, 15, 30, 60, 120, 180, 360].map((m) => m * minute).find((m) => spanMs / m <= 8) || 360 * minute;
  if (spanMs > 10 * 1000)
    for (let t = Math.ceil(t0 / every) * every; t <= t1; t += every)
      if (X(t) > L + 14 && X(t) < w - 24) out.push(s('text', { x: X(t).toFixed(1), y: H - 5, 'text-anchor': 'middle' }, clock(t)));
  let base = Array(n).fill(0);
  for (let k = 0; k < layers; k++) {
    const upper = points.map((p, i) => base[i] + value(p, k));
    const d = 'M' + upper.map((v, i) => `${at[i]} ${Y(v).toFixed(1)}`).join('L') + 'L' + base.map((v, i) => `${at[i]} ${Y(v).toFixed(1)}`).reverse().join('L') + 'Z';
    out.push(s('path', { d, fill: `var(--p${k})`, 'fill-opacity': 0.82, stroke: 'var(--bg)', 'stroke-width': 1 }));
    base = upper;
  }
  const line = (field, dash, wd) => {
    const known = points.map((p, i) => [at[i], p[field]]).filter(([, v]) => v != null);
    if (known.length > 1) out.push(s('path', { d: 'M' + known.map(([x, v]) => `${x} ${Y(v).toFixed(1)}`).join('L'), fill: 'none', stroke: 'var(--ink)', 'stroke-width': wd, 'stroke-dasharray': dash, 'stroke-linejoin': 'round' }));
  };
  line('baseline_usd_h', '5 4', 1.3);
  line('bound_usd_h', '1.5 3', 1.6);
  for (const [, d] of rows('decisions')) {
    const t = Date.parse(d.time);
    if (d.acted && t >= t0 && t <= t1) out.push(s('path', { d: `M${X(t).toFixed(1)} ${H - B}v4`, stroke: 'var(--ink-2)' }));
  }
  const i = hover == null ? -1 : Math.min(n - 1, hover);
  if (i >= 0) out.push(s('path', { stroke: 'var(--ink-2)', 'stroke-width': 1, d: `M${at[i]} ${T}V${H - B}` }));
  out.push(
    s('rect', {
      x: L,
      y: T,
      width: Math.max(0, w - L - R),
      height: H - T - B,
      fill: 'transparent',
      on: {
        mouseleave: () => {
          hover = null;
          repaint();
        },
        mousemove: (e) => {
          const r = e.currentTarget.getBoundingClientRect(),
            t = t0 + ((e.clientX - r.left) / r.width) * (t1 - t0);
          let best = 0;
          points.forEach((p, j) => {
            if (Math.abs(Date.parse(p.at) - t) < Math.abs(Date.parse(points[best].at) - t)) best = j;
          });
          hover = best;
          repaint();
        },
      },
    }),
  );
  const last = points[n - 1];
  const box =
    i >= 0
      ? h(
          'div',
          { class: 'cursor', css: { left: (at[i] > w / 2 ? at[i] - 190 : +at[i] + 14) + 'px', top: '22px' } },
          h('div', {}, h('b', {}, clock(points[i].at, true)), h('b', {}, usd(points[i].spend_usd_h) + '/h')),
          [...names].reverse().map((name) => (points[i].pools[name] ? h('div', {}, poolTag(name), h('span', {}, usd(points[i].pools[name]))) : null)),
          points[i].baseline_usd_h != null ? h('div', { class: 'muted' }, h('span', {}, 'baseline'), h('span', {}, usd(points[i].baseline_usd_h))) : null,
          points[i].bound_usd_h != null ? h('div', { class: 'muted' }, h('span', {}, 'lower bound'), h('span', {}, usd(points[i].bound_usd_h))) : null,
          h('div', { class: 'muted' }, h('span', {}, 'pending pods'), h('span', {}, points[i].pending)),
        )
      : null;
  const label = `Spend per hour by pool from ${clock(points[0].at)} to ${clock(last.at)}, now ${usd(last.spend_usd_h)}, with baseline and lower bound`;
  return [s('svg', { viewBox: `0 0 ${w} ${H}`, height: H, role: 'img', 'aria-label': label }, out), box];
}

const spark = (values) => {
  const W = 64,
    H = 18,
    max = Math.max(1, ...values);
  return s(
    'svg',
    { class: 'spark', viewBox: `0 0 ${W} ${H}`, 'aria-hidden': 'true' },
    s('path', { d: 'M' + values.map((v, i) => `${((i / Math.max(1, values.length - 1)) * W).toFixed(1)} ${(H - 1 - (v / max) * (H - 2)).toFixed(1)}`).join('L'), fill: 'none', stroke: 'var(--ink-3)', 'stroke-width': 1.2 }),
  );
};

const vital = (name, value, { sub, fill, cls, href, extra } = {}) =>
  h(href ? 'a' : 'div', { key: name, href }, extra, h('div', { class: 'k' }, name), h('div', { class: 'v' }, value), fill != null ? bar(fill, cls) : null, sub ? h('div', { class: 'sub' }, sub) : null);

const words = (t) => [t.instance_type, t.capacity_type].filter(Boolean).join(' ');
const nodeLink = (name) => h('a', { href: '#fleet/' + name }, name);
const targets = (list, count) => (count === 1 ? nodeLink(list[0].node) : h('a', { href: '#fleet' }, counted(count, 'node')));

function moveRow([key, m]) {
  const t = m.targets[0];
  const into = m.new_nodes.length ? ' by ' + m.new_nodes.slice(0, 3).map(words).join(' + ') + (m.new_nodes.length > 3 ? ` + ${m.new_nodes.length - 3}` : '') : '';
  return h(
    'tr',
    { key: 'm' + key },
    h('td', { class: 'w' }, m.round === 1 ? 'now' : `step ${m.round}`),
    h('td', { class: 'act' }, m.action),
    h('td', { class: 'what' }, h('span', { class: 'l1' }, targets(m.targets, m.nodes), '  ', h('span', { class: 'sec' }, words(t) + into)), h('span', { class: 'l2' }, `${m.reason}, ${m.round === 1 ? 'nothing blocks it' : 'once those before are done'}`)),
    h('td', { class: 'opt nw' }, poolTag(m.pools[0])),
    h('td', { class: 'num opt sec' }, m.pods || '-'),
    h('td', { class: 'num' }, h('span', { class: m.delta_usd_mo < 0 ? 'pos' : '' }, change(m.delta_usd_mo, usd0))),
    h('td', { class: 'num opt' }, h('span', { class: 'id' }, shortId(m.id))),
  );
}
function keptRow([key, k]) {
  const held = k.class === 'held';
  const left = k.lifts_at ? (Date.parse(k.lifts_at) - now()) / 1000 : null;
  return h(
    'tr',
    { key: 'k' + key, class: held ? 'never' : null },
    h('td', { class: 'w' }, left > 0 ? span(left) : held ? 'never' : 'later'),
    h('td', { class: 'act' }, held ? 'keep' : 'wait'),
    h('td', { class: 'what' }, h('span', { class: 'l1' }, targets(k.targets, k.nodes), '  ', h('span', { class: 'sec' }, words(k.targets[0]))), h('span', { class: 'l2' }, (held ? 'Held: ' : 'Waits: ') + k.text)),
    h('td', { class: 'opt nw' }, poolTag(k.pool)),
    h('td', { class: 'num opt sec' }, k.pods || '-'),
    h('td', { class: 'num' }, k.saving_usd_mo ? (held ? `(${usd0(k.saving_usd_mo)})` : h('span', { class: 'pos' }, change(-k.saving_usd_mo, usd0))) : h('span', { class: 'muted' }, '-')),
    h('td', { class: 'num opt' }, ''),
  );
}

const WHERE = { pod: 'pending', node: 'fleet', nodepool: 'pools' };
/** The place on the page that the command of an alert speaks of. */
const place = (ask) => {
  const [, kind, name] = ask.split(' ');
  return '#' + (WHERE[kind] || 'overview') + '/' + (name || '');
};
const alertRow = ([key, a]) => {
  const [title, ...rest] = a.text.split(': ');
  return h(
    'li',
    { key },
    h('a', { class: a.level, href: place(a.ask) }, ic('i-' + a.level), h('b', {}, upper(title)), h('span', { class: 'ago' }, a.since ? age(since(a.since)) : ''), rest.length ? h('span', { class: 's' }, upper(rest.join(': '))) : h('span', { class: 's muted' }, 'dovetail ' + a.ask)),
  );
};

export function view(repaint) {
  const N = one('now'),
    M = one('money');
  if (!N) return [h('h1', { class: 'vh' }, 'Overview'), h('p', { class: 'quiet' }, 'Looking at the cluster for the first time.')];
  const points = rows('trend').map(([, p]) => p);
  const first = points[0],
    vs = first && first.spend_usd_h > 0 ? N.spend_usd_h / first.spend_usd_h - 1 : null;
  const marks = Object.values(all('marks'));
  const held = marks.filter((m) => m.held).length;
  const drifted = Object.values(all('pools')).reduce((t, p) => t + p.drifted, 0);
  const moves = rows('moves'),
    kept = rows('kept');
  const names = poolNames();
  const saves = moves.reduce((t, [, m]) => t + m.delta_usd_mo, 0);
  const blocked = M ? M.blocked : 0;
  return [
    h('h1', { class: 'vh' }, 'Overview'),
    h(
      'div',
      { class: 'hl' },
      h(
        'div',
        {},
        h('h2', {}, 'Spend now'),
        h('div', { class: 'big', id: 'spend' }, usd(N.spend_usd_h), h('small', {}, '/h')),
        h('div', { class: 'mo' }, usd0(N.spend_usd_mo), ' a month'),
        h('div', { class: 'vs' }, vs == null || points.length < 2 ? `first seen ${clock(first?.at ?? N.at)}` : [h('span', { class: vs < 0 ? 'pos' : 'sec' }, `${vs >= 0 ? '+' : '\u2212'}${Math.abs(vs * 100).toFixed(1)}\u2009%`), ` since ${clock(first.at)}`]),
      ),
      h('div', { class: 'ruler', sized: 'ruler' }, M ? ruler(M, width('ruler')) : h('p', { class: 'quiet' }, 'The lower bound is being worked out.')),
    ),
    h(
      'div',
      { class: 'vitals' },
      vital('Nodes', [nf(N.fleet.nodes), h('small', {}, ` ${N.fleet.spot} spot${N.fleet.launching ? `, ${N.fleet.launching} coming` : ''}`)], { sub: `${nf(N.fleet.vcpu)} vCPU in ${counted(names.length, 'pool')}`, href: '#fleet' }),
      vital('CPU requested', [pct(share(N.fleet.cpu_m), 1), h('small', { class: 'wide' }, ` ${nf(Math.round(N.fleet.cpu_m.requested / 1000))} of ${nf(Math.round(N.fleet.cpu_m.allocatable / 1000))}`)], { fill: share(N.fleet.cpu_m) }),
      vital('Memory requested', [pct(share(N.fleet.memory_mib), 1), h('small', { class: 'wide' }, ' ' + memory(N.fleet.memory_mib.requested, N.fleet.memory_mib.allocatable))], { fill: share(N.fleet.memory_mib) }),
      vital('Spot share', [pct(N.fleet.vcpu ? N.fleet.spot_vcpu / N.fleet.vcpu : 0, 1), h('small', { class: 'wide' }, ' of vCPU')], { fill: N.fleet.vcpu ? N.fleet.spot_vcpu / N.fleet.vcpu : 0, cls: 'cS' }),
      vital('Pods', nf(N.pods.running), { sub: 'running' }),
      vital('Pending', h('span', { class: N.pods.pending ? 'neg' : '' }, nf(N.pods.pending)), {
        sub: N.pods.pending ? (M ? `${nf(blocked)} blocked, ${nf(M.on_their_way)} on the way` : `longest ${span(N.pods.longest_wait_s || 0)}`) : 'nobody waits',
        href: '#pending',
        extra: points.some((p) => p.pending) && points.length > 2 ? spark(points.map((p) => p.pending)) : null,
      }),
      vital('Held or drifted', `${nf(held)} / ${nf(drifted)}`, { sub: 'may not go / not as asked', href: '#fleet' }),
    ),
    h(
      'div',
      { class: 'two' },
      h(
        'div',
        { class: 'col' },
        section(
          'h-24',
          points.length > 1 ? `Spend per hour since ${clock(points[0].at)}` : 'Spend per hour',
          [
            h('span', { class: 'sp' }),
            h(
              'div',
              { class: 'legend' },
              names.slice(0, 4).map((name) => h('span', { key: name }, h('i', { class: 'sw ' + poolColour(name) }), name)),
              names.length > 4 ? h('span', {}, h('i', { class: 'sw p4' }), 'other') : null,
              h('span', {}, h('i', { class: 'sw line' }), 'baseline'),
              h('span', {}, h('i', { class: 'sw dot' }), 'bound'),
            ),
          ],
          h('div', { class: 'chart', sized: 'chart' }, points.length > 1 ? chart(points, width('chart'), repaint) : h('p', { class: 'quiet' }, one('title')?.mode === 'dump' ? 'What was read once has no past.' : 'The first points are being gathered.')),
        ),
        section(
          'h-pl',
          'What it will do next',
          M && moves.length ? h('p', {}, `${counted(moves.length, 'move')}, `, h('span', { class: saves < 0 ? 'pos' : '' }, change(saves, usd0) + '/mo')) : null,
          !M
            ? h('p', { class: 'quiet' }, 'Being worked out.')
            : !moves.length && !kept.length
              ? h('p', { class: 'quiet' }, `Nothing: no move saves money now${M.above_bound.total_usd_mo > 0 ? `. Still possible at most: ${usd0(M.above_bound.total_usd_mo)}/mo` : ''}.`)
              : h(
                  'table',
                  { class: 'plan' },
                  h('thead', {}, h('tr', {}, th('When'), th('Action'), th('Target'), th('Pool', 'opt'), th('Pods', 'num opt'), th('$/mo', 'num'), th('Id', 'num opt'))),
                  h('tbody', {}, moves.slice(0, 12).map(moveRow), kept.slice(0, 12).map(keptRow)),
                ),
          moves.length > 12 || kept.length > 12 ? h('p', { class: 'note' }, `and ${Math.max(0, moves.length - 12) + Math.max(0, kept.length - 12)} more: dovetail plan`) : null,
        ),
      ),
      h(
        'div',
        { class: 'col' },
        section(
          'h-al',
          'Needs a person',
          [h('span', { class: 'sp' }), h('p', {}, Object.keys(all('alerts')).length)],
          Object.keys(all('alerts')).length ? h('ul', { class: 'alerts' }, rows('alerts').slice(0, 8).map(alertRow)) : h('p', { class: 'quiet' }, M ? 'Nothing. No rule, limit or stock-out is in the way.' : 'Being worked out.'),
        ),
        section(
          'h-po',
          'Where the money goes',
          null,
          h(
            'table',
            {},
            h('thead', {}, h('tr', {}, th('Pool'), th('$/h', 'num'), th('CPU', 'num'), th('above bound', 'num'))),
            h(
              'tbody',
              {},
              names.map((name) => {
                const p = all('pools')[name],
                  m = M?.pools[name];
                return h(
                  'tr',
                  { key: name },
                  h('td', {}, h('a', { href: '#pools/' + name }, poolTag(name))),
                  h('td', { class: 'num' }, usd(p.spend_usd_h)),
                  h('td', { class: 'num sec' }, p.nodes ? pct(share(p.cpu_m)) : '-'),
                  h('td', { class: 'num' }, m && m.bound_usd_h > 0 ? pct(m.spend_usd_h / m.bound_usd_h - 1, 1) : '-'),
                );
              }),
              h(
                'tr',
                { key: '' },
                h('td', {}, h('b', {}, 'All')),
                h('td', { class: 'num' }, h('b', {}, usd(N.spend_usd_h))),
                h('td', { class: 'num' }, h('b', {}, pct(share(N.fleet.cpu_m)))),
                h('td', { class: 'num' }, h('b', {}, M && M.bound_usd_h > 0 ? pct(M.spend_usd_h / M.bound_usd_h - 1, 1) : '-')),
              ),
            ),
          ),
          M
            ? h(
                'ul',
                { class: 'above', 'aria-label': 'What is above the bound, a month' },
                ABOVE.map(([field, text, fill]) => h('li', {}, h('i', { class: 'sw', css: { background: fill } }), h('span', {}, text), h('span', { class: 'num' }, usd0(M.above_bound[field]) + '/mo'))),
              )
            : null,
        ),
      ),
    ),
  ];
}
