// NodePools: what each may hold, what it is made of, and when its nodes may be disrupted in the next seven days.

import { h, ic, s, width } from './dom.js';
import { counted, upper, usd, usd0 } from './format.js';
import { failure } from './parts.js';
import { all, ask, get, now, one, poolColour, poolNames } from './store.js';

export const needs = ['pools', 'budgets', 'money', 'alerts'];
export const state = { arg: null, why: {} };
const DAY = 864e5;
const DAYS = ['Sun', 'Mon', 'Tue', 'Wed', 'Thu', 'Fri', 'Sat'];

function calendar(pool, report, w) {
  const reasons = report.reasons;
  const L = 88,
    R = 44,
    lane = 17,
    gap = 3,
    T = 18,
    H = T + Math.max(1, reasons.length) * (lane + gap) + 2;
  const t0 = Math.floor(now() / DAY) * DAY,
    t1 = t0 + 7 * DAY,
    X = (t) => L + ((Math.max(t0, Math.min(t1, t)) - t0) / (t1 - t0)) * (w - L - R);
  const out = [];
  for (let d = 0; d < 7; d++) {
    const day = new Date(t0 + d * DAY);
    out.push(s('text', { x: (X(t0 + d * DAY) + 2).toFixed(1), y: 11 }, w < 520 ? DAYS[day.getUTCDay()] : `${DAYS[day.getUTCDay()]} ${day.getUTCDate()}`));
  }
  reasons.forEach((r, k) => {
    const y = T + k * (lane + gap);
    out.push(s('text', { x: 0, y: y + 12.5, class: 't2' }, r.reason));
    for (const win of r.windows) {
      const [a, b] = [X(Date.parse(win.from)), X(Date.parse(win.to))];
      if (b <= a) continue;
      const open = win.nodes == null || win.nodes > 0;
      const much = win.nodes == null ? 1 : Math.min(1, (win.nodes / Math.max(1, report.nodes)) * 2.4 + 0.34);
      out.push(s('rect', { x: a.toFixed(1), y, width: (b - a).toFixed(1), height: lane, class: open ? 'open' : 'closed', 'fill-opacity': open ? much.toFixed(2) : 1 }, s('title', {}, win.nodes == null ? 'without a limit' : open ? `${win.nodes} at a time` : 'closed')));
    }
    for (let d = 1; d < 7; d++) out.push(s('path', { d: `M${X(t0 + d * DAY).toFixed(1)} ${y}v${lane}`, class: 'day' }));
    const allowed = r.now;
    out.push(s('text', { x: w, y: y + 12.5, 'text-anchor': 'end', class: allowed === 0 ? 'ts' : 't1' }, allowed == null ? 'now all' : `now ${allowed}`));
  });
  out.push(s('path', { d: `M${X(now()).toFixed(1)} ${T - 4}V${H - 2}`, class: 'now' }));
  const label = `Disruptions that ${pool} allows over seven days: ` + reasons.map((r) => `${r.reason} ${r.now == null ? 'without a limit' : r.now} now`).join(', ');
  return s('svg', { viewBox: `0 0 ${w} ${H}`, height: H, role: 'img', 'aria-label': label }, out);
}

/** When something that is closed now opens. */
function opens(report) {
  if (report.closed) return report.closed;
  const shut = report.reasons.filter((r) => r.now === 0);
  if (!shut.length) return 'open now';
  const next = shut.map((r) => [r.reason, r.windows.find((w) => Date.parse(w.from) > now() && (w.nodes == null || w.nodes > 0))]).filter(([, w]) => w);
  if (!next.length) return `${shut.map((r) => r.reason).join(', ')} closed all week`;
  const [reason, win] = next.sort((a, b) => (a[1].from < b[1].from ? -1 : 1))[0];
  const at = new Date(win.from);
  return `${reason} opens ${DAYS[at.getUTCDay()]} ${at.toISOString().slice(11, 16)} UTC`;
}

async function explain(name, repaint) {
  state.why[name] = { waits: true };
  repaint();
  try {
    state.why[name] = { why: await ask('api/why/nodepool/' + name) };
  } catch (problem) {
    state.why[name] = { problem };
  }
  repaint();
}

const limit = (l) =>
  h(
    'div',
    { class: 'row', key: l.resource },
    h('span', { class: 'sec' }, l.resource),
    h('span', {}, h('b', { class: l.percent >= 97 ? 'neg' : '' }, l.used), h('span', { class: 'muted' }, ` of ${l.limit}`)),
    h('span', { class: 'mbar' + (l.percent >= 97 ? ' hot' : '') }, h('i', { css: { width: Math.min(100, l.percent) + '%' } })),
  );

function card(name, repaint) {
  const p = get('pools', name),
    report = get('budgets', name),
    M = one('money')?.pools[name],
    { why, problem, waits } = state.why[name] || {};
  const alerts = Object.values(all('alerts')).filter((a) => a.ask === 'why nodepool ' + name);
  const held = Object.values(all('kept')).filter((k) => k.class === 'held' && k.pool === name).reduce((t, k) => t + k.nodes, 0);
  return h(
    'section',
    { class: 'pool', key: name, id: 'pool-' + name, 'aria-label': 'NodePool ' + name },
    h(
      'div',
      {},
      h('h2', {}, h('i', { class: 'dotp ' + poolColour(name) }), name, p.ready ? null : h('span', { class: 'tag stop after' }, 'not ready')),
      h('p', { class: 'pn' }, `${counted(p.nodes, 'node')}${p.launching ? ` and ${p.launching} coming` : ''}, ${p.spot} spot, ${counted(p.pods, 'pod')}`),
      h('p', { class: 'pn' }, `${held} held, ${p.drifted} drifted`),
      h('p', { class: 'pn' }, `${usd(p.spend_usd_h)}/h, ${usd0(p.spend_usd_mo)}/mo`),
      h('div', { class: 'reqs' }, p.requirements.map((r) => h('span', { class: 'tag', key: r }, r)), p.taints.map((t) => h('span', { class: 'tag', key: 't' + t }, 'taint ' + t))),
    ),
    h(
      'div',
      {},
      h('h3', {}, 'Limits'),
      p.limits.length ? h('div', { class: 'lim' }, p.limits.map(limit)) : h('p', { class: 'pn' }, 'none'),
      h('p', { class: 'set' }, `${p.policy || 'default policy'}${p.consolidate_after ? `, after ${p.consolidate_after}` : ''}`, h('br'), `${!p.expire_after || p.expire_after === 'Never' ? 'never expires' : 'expires ' + p.expire_after}${p.class ? `, class ${p.class}` : ''}`, p.weight != null ? [h('br'), `weight ${p.weight}`] : null),
      M && M.saved.total_usd_mo > 0 ? h('p', { class: 'set' }, `saves ${usd0(M.saved.total_usd_mo)}/mo against on-demand, unpacked`) : null,
    ),
    h(
      'div',
      { class: 'c3' },
      h('h3', {}, 'Disruption budget', h('span', {}, report ? opens(report) : 'being worked out')),
      h('div', { class: 'cal', sized: 'cal' }, report ? calendar(name, report, width('cal', 640)) : null),
      h('div', { class: 'buds' }, p.budgets.length ? p.budgets.map((b) => h('span', { key: b }, h('code', {}, b))) : h('span', {}, 'no budget: as many as there are'), p.zone !== 'UTC' ? h('span', {}, `times in ${p.zone}`) : null),
      h(
        'ul',
        { class: 'lint', 'aria-label': 'What needs a person' },
        alerts.map((a) => h('li', {}, ic('i-' + a.level, a.level), h('span', {}, upper(a.text)), h('code', {}, ''))),
        why
          ? [
              why.conditions.filter((c) => c.status !== 'True').map((c) => h('li', {}, ic('i-warn', 'warn'), h('span', {}, `${c.name} is ${c.status}: ${c.message || c.reason || 'no reason is given'}`), h('code', {}, ''))),
              why.limits.filter((l) => l.blocks.length).map((l) => h('li', {}, ic('i-stop', 'stop'), h('span', {}, `limits.${l.resource} keeps ${counted(l.blocks.length, 'pod')} waiting`), h('code', {}, why.fix?.text || ''))),
              why.refused.slice(0, 5).map((r) => h('li', {}, ic('i-info', 'info'), h('span', {}, `${r.pod}: ${r.why}`), h('code', {}, r.stops_at))),
              !why.refused.length && !why.conditions.some((c) => c.status !== 'True') ? h('li', {}, ic('i-info', 'good'), h('span', { class: 'sec' }, 'Nothing is in the way: it launches what pods ask for.'), h('code', {}, '')) : null,
            ]
          : h('li', {}, h('span'), problem ? failure(problem) : h('button', { class: 'btn sm', type: 'button', disabled: waits, on: { click: () => explain(name, repaint) } }, waits ? 'Asking\u2026' : 'Why does it launch, or not?'), h('code', {}, `dovetail why nodepool ${name}`)),
      ),
    ),
  );
}

export function view(repaint) {
  const names = poolNames();
  return [
    h(
      'div',
      { class: 'vhead' },
      h('h1', {}, 'NodePools'),
      h('p', {}, 'Limits, and when nodes may be disrupted in the next 7 days (UTC).'),
      h('span', { class: 'sp' }),
      h('div', { class: 'legend' }, h('span', {}, h('i', { class: 'sw f4' }), 'disruption allowed, stronger is more nodes'), h('span', {}, h('i', { class: 'sw shut' }), 'closed')),
    ),
    names.length ? names.map((name) => card(name, repaint)) : h('div', { class: 'empty first' }, h('b', {}, 'There is no NodePool'), 'Without one, no node is launched.'),
  ];
}
export const reveal = () => {
  if (state.arg) requestAnimationFrame(() => document.getElementById('pool-' + state.arg)?.scrollIntoView({ block: 'start' }));
};
