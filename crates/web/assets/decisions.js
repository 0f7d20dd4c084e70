// Decisions: everything that was done and everything that was not, on a line of time and as a list; each explains itself.

import { h, ic, s, width } from './dom.js';
import { change, clock, counted, nf, shortId, span, upper, usd, usd0, usd4 } from './format.js';
import { failure, poolTag, seg, select, th } from './parts.js';
import { all, ask, get, now, poolColour, poolNames } from './store.js';

export const needs = ['decisions', 'pools'];
export const state = { open: new Set(), act: 'all', reason: 'all', pool: 'all', most: 100 };
const whys = new Map();
const MORE = 100;

/** The newest first. */
const list = () => Object.entries(all('decisions')).sort(([x, a], [y, b]) => (a.time < b.time ? 1 : a.time > b.time ? -1 : x < y ? 1 : -1));
const passes = ([, d]) => (state.act === 'all' || (state.act === 'acted' ? d.acted : d.refused)) && (state.reason === 'all' || d.reason === state.reason) && (state.pool === 'all' || d.pool === state.pool);

async function explain(id, repaint) {
  const seen = get('decisions', id)?.last_seen;
  const known = whys.get(id);
  if (known?.waits || (known?.why && known.seen === seen)) return;
  whys.set(id, { ...known, waits: true });
  try {
    whys.set(id, { why: await ask('api/decision/' + id), seen });
  } catch (problem) {
    whys.set(id, { problem, seen });
  }
  repaint();
}

function timeline(shown, w, repaint) {
  const every = list();
  const lanes = [...poolNames(), ...(every.some(([, d]) => !get('pools', d.pool)) ? [''] : [])].slice(0, 8);
  const L = 120,
    R = 10,
    lane = 25,
    T = 4,
    H = T + lanes.length * lane + 22;
  const t1 = now(),
    oldest = Math.min(t1 - 6e5, ...every.map(([, d]) => Date.parse(d.time))),
    t0 = Math.max(oldest, t1 - 72e5),
    X = (t) => L + ((t - t0) / Math.max(1, t1 - t0)) * (w - L - R);
  const ids = new Set(shown.map(([id]) => id));
  const out = [];
  const step = [6e4, 3e5, 6e5, 9e5, 18e5].find((m) => (t1 - t0) / m <= 10) || 18e5;
  for (let t = Math.ceil(t0 / step) * step; t <= t1; t += step) {
    out.push(s('path', { d: `M${X(t).toFixed(1)} ${T}V${T + lanes.length * lane}`, stroke: 'var(--line)', 'stroke-width': 1 }));
    if (X(t) < w - 44) out.push(s('text', { x: X(t).toFixed(1), y: H - 5, 'text-anchor': 'middle' }, clock(t)));
  }
  out.push(s('text', { x: w - R, y: H - 5, 'text-anchor': 'end', class: 't1' }, 'now'));
  lanes.forEach((pool, i) => {
    const y = T + i * lane;
    const name = pool.length > 15 ? pool.slice(0, 14) + '\u2026' : pool || 'no pool';
    out.push(s('path', { d: `M0 ${y + lane}H${w}`, stroke: 'var(--line)' }), s('rect', { x: 0, y: y + lane / 2 - 4, width: 8, height: 8, rx: 2, fill: pool ? `var(--${poolColour(pool)})` : 'var(--line-2)' }), s('text', { x: 15, y: y + lane / 2 + 4, class: 't2' }, name));
  });
  for (const [id, d] of every.slice(0, 300).reverse()) {
    const t = Date.parse(d.time),
      at = lanes.indexOf(get('pools', d.pool) ? d.pool : '');
    if (t < t0 || at < 0) continue;
    out.push(
      s(
        'g',
        {
          key: id,
          class: `mk ${d.kind}${ids.has(id) ? '' : ' dimmed'}${state.open.has(id) ? ' sel' : ''}`,
          'aria-hidden': 'true',
          transform: `translate(${(X(t) - 6).toFixed(1)} ${T + at * lane + lane / 2 - 6})`,
          on: { click: () => go(id, repaint) },
        },
        s('circle', { class: 'halo', cx: 6, cy: 6, r: 9.5 }),
        s('svg', { width: 12, height: 12, viewBox: '0 0 16 16', class: 'ic' }, s('use', { href: '#k-' + d.kind })),
        s('title', {}, `${clock(d.time, true)} ${d.word} ${d.what}`),
      ),
    );
  }
  const label = `Decisions since ${clock(t0)} by pool; the list below has the same`;
  return s('svg', { viewBox: `0 0 ${w} ${H}`, height: H, role: 'img', 'aria-label': label }, out);
}

/** Opens one, whatever is filtered. */
export function go(id, repaint) {
  const full = get('decisions', id) ? id : Object.keys(all('decisions')).find((known) => known.startsWith(id));
  state.open = new Set(full ? [full] : []);
  Object.assign(state, { act: 'all', reason: 'all', pool: 'all' });
  const at = list().findIndex(([known]) => known === full);
  if (at >= state.most) state.most = Math.ceil((at + 1) / MORE) * MORE;
  if (full) history.replaceState(null, '', '#decisions/' + full);
  repaint();
  requestAnimationFrame(() => document.getElementById('d-' + full)?.scrollIntoView({ block: 'center' }));
}

const steps = (list) => {
  const W = 420,
    n = list.length,
    t0 = Date.parse(list[0].at),
    X = (i) => 4 + (n > 1 ? (i / (n - 1)) * (W - 70) : 0);
  const after = (t) => (Date.parse(t.at) - t0) / 1000;
  return s(
    'svg',
    { class: 'steps', viewBox: `0 0 ${W} 40`, preserveAspectRatio: 'xMinYMid meet', role: 'img', 'aria-label': 'Steps: ' + list.map((t) => `${t.step} after ${span(after(t))}`).join(', ') },
    s('path', { d: `M4 10H${X(n - 1)}`, stroke: 'var(--line-2)', 'stroke-width': 2 }),
    list.map((t, i) => [
      s('circle', { cx: X(i), cy: 10, r: 3.5, fill: 'var(--accent)' }),
      s('text', { x: X(i) - (i ? 0 : 3), y: 25, 'text-anchor': i ? 'middle' : 'start', class: 't2', css: { 'font-size': '10.5px' } }, t.step),
      s('text', { x: X(i) - (i ? 0 : 3), y: 37, 'text-anchor': i ? 'middle' : 'start', css: { 'font-size': '10px' } }, span(after(t))),
    ]),
  );
};

const verdict = (o, chosen) => h('td', { class: 'whyc' }, chosen ? h('span', { class: 'tag acc' }, 'chosen') : o.verdict);
function offers(why) {
  const all = [...(why.chosen ? [{ ...why.chosen, is: true }] : []), ...(why.runners_up || [])];
  if (!all.length) return h('div', {}, h('h3', {}, 'What else was possible'), h('p', { class: 'muted' }, 'Nothing was priced: it was clear before.'));
  const max = Math.max(0.0001, ...all.map((o) => o.usd_h || 0));
  return [
    h('h3', {}, why.chosen ? 'Chosen and runners-up' : 'What else was possible'),
    h(
      'table',
      { class: 'run' },
      h('thead', {}, h('tr', {}, th('Offer'), th('$/h', 'num'), h('th', { class: 'pb opt' }, h('span', { class: 'vh' }, 'Price bar')), th('Verdict'))),
      h(
        'tbody',
        {},
        all.map((o) => h('tr', { class: o.is ? 'chosen' : null }, h('td', {}, o.offer), h('td', { class: 'num' }, o.usd_h == null ? '-' : o.usd_h.toFixed(4)), h('td', { class: 'pb opt' }, o.usd_h == null ? null : h('span', { class: 'pbar', css: { width: Math.max(2, (o.usd_h / max) * 92).toFixed(0) + 'px' } })), verdict(o, o.is))),
      ),
    ),
  ];
}

function body(id, d, repaint) {
  explain(id, repaint);
  const { why, problem } = whys.get(id) || {};
  if (!why) return h('div', { class: 'dbody', id: 'b-' + id, key: 'b' + id }, problem ? failure(problem) : h('p', { class: 'muted' }, 'Asking\u2026'));
  const money = why.money;
  const left = h(
    'div',
    {},
    h('h3', {}, 'Why'),
    h('p', {}, upper(why.detail || d.what) + '.'),
    d.count > 1 ? h('p', { class: 'muted' }, `Found ${nf(d.count)} times, last at ${clock(d.last_seen, true)}.`) : null,
    money ? h('p', {}, `From ${usd4(money.before_usd_h)}/h to ${usd4(money.after_usd_h)}/h: `, h('b', { class: money.delta_usd_mo < 0 ? 'pos' : '' }, change(money.delta_usd_mo) + '/mo'), '.') : null,
    why.lift ? h('div', { class: 'lift' }, h('b', {}, `${why.lift.object}: ${why.lift.change}`), h('span', { class: 'worth' }, 'Smallest change that lifts the refusal.' + (why.forgone_usd_h ? ` Worth ${usd(d.forgone_usd_mo)}/mo.` : ''))) : null,
    why.score ? [h('h3', {}, 'Score'), h('p', {}, `saves ${(why.score.saving_permille / 10).toFixed(1)} % of the pool, disturbs ${(why.score.disruption_permille / 10).toFixed(1)} %: `, h('b', { class: why.score.approved ? 'pos' : 'neg' }, why.score.approved ? 'worth it' : 'not worth it'))] : null,
    why.steps?.length ? [h('h3', {}, 'Steps'), steps(why.steps)] : null,
    h('h3', {}, 'Decided on'),
    h(
      'dl',
      { class: 'dgrid' },
      why.inputs.digest ? [h('dt', {}, 'digest'), h('dd', { class: 'mono' }, why.inputs.digest)] : null,
      why.inputs.nodes || why.inputs.pods ? [h('dt', {}, 'cluster'), h('dd', {}, `${counted(why.inputs.pods, 'pod')}, ${counted(why.inputs.nodes, 'node')}, ${counted(why.inputs.offers, 'offer')}`)] : null,
      why.inputs.engine ? [h('dt', {}, 'engine'), h('dd', {}, `${why.inputs.engine}, decided in ${why.inputs.took_ms} ms`)] : null,
      h('dt', {}, 'command'),
      h('dd', { class: 'mono' }, `dovetail why ${shortId(id)}`),
      h('dt', {}, 'link'),
      h('dd', { class: 'mono' }, h('a', { href: '#decisions/' + id }, '#decisions/' + id)),
    ),
  );
  const nodes = why.targets || [];
  const right = h(
    'div',
    {},
    offers(why),
    nodes.length
      ? [
          h('h3', {}, 'Nodes'),
          h(
            'ul',
            { class: 'moves two-col' },
            nodes.map((t) => h('li', {}, h('span', { class: 'trunc' }, t.node && get('nodes', t.node) ? h('a', { href: '#fleet/' + t.node }, t.node) : t.node || t.claim || 'new'), h('span', { class: 'muted' }, [t.type, t.capacity, t.zone].filter(Boolean).join(' ')), h('span', {}, t.comes ? '+' : ''), h('span', { class: 'sec' }, t.usd_h != null ? usd4(t.usd_h) + '/h' : ''))),
          ),
        ]
      : null,
    why.pods?.length ? [h('h3', {}, `Pods (${why.pod_count || why.pods.length})`), h('ul', { class: 'moves' }, why.pods.map((p) => h('li', {}, h('span', { class: 'trunc', title: p }, p))), why.pod_count > why.pods.length ? h('li', { class: 'muted' }, `and ${why.pod_count - why.pods.length} more`) : null)] : null,
  );
  return h('div', { class: 'dbody', id: 'b-' + id, key: 'b' + id }, left, right);
}

function row([id, d], repaint) {
  const open = state.open.has(id);
  return [
    h(
      'button',
      {
        type: 'button',
        class: 'drow',
        key: id,
        id: 'd-' + id,
        'aria-expanded': String(open),
        'aria-controls': open ? 'b-' + id : null,
        on: {
          click: () => {
            if (!state.open.delete(id)) {
              state.open.add(id);
              history.replaceState(null, '', '#decisions/' + id);
            }
            repaint();
          },
        },
      },
      ic('i-chev', 'ch'),
      h('span', { class: 't0 sec' }, clock(d.time, true)),
      h('span', { class: 'id' }, shortId(id)),
      h('span', { class: 'kind ' + d.kind }, ic('k-' + d.kind), d.word),
      h('span', { class: 'ttlc trunc', title: d.what }, upper(d.what)),
      h('span', { class: 'r trunc' }, d.reason),
      h('span', { class: 'pl trunc' }, d.pool ? poolTag(d.pool) : h('span', { class: 'muted' }, '-')),
      h('span', { class: 'num pd sec' }, d.pods || '-'),
      h('span', { class: 'num m' }, d.delta_usd_mo && !d.refused ? h('span', { class: d.delta_usd_mo < 0 ? 'pos' : '' }, change(d.delta_usd_mo)) : d.forgone_usd_mo ? h('span', { class: 'muted', title: 'saving forgone' }, `(${usd(d.forgone_usd_mo)})`) : h('span', { class: 'muted' }, '-')),
    ),
    open ? body(id, d, repaint) : null,
  ];
}

function csv(shown) {
  const lines = [['time', 'id', 'action', 'reason', 'pool', 'pods', 'usd_per_month', 'what'], ...shown.map(([id, d]) => [d.time, id, d.word, d.reason, d.pool, d.pods, d.delta_usd_mo ?? '', d.what])];
  const text = lines.map((l) => l.map((c) => `"${String(c).replaceAll('"', '""')}"`).join(',')).join('\n');
  const a = document.createElement('a');
  a.href = URL.createObjectURL(new Blob([text], { type: 'text/csv' }));
  a.download = 'decisions.csv';
  a.click();
  URL.revokeObjectURL(a.href);
}

export function view(repaint) {
  const every = list(),
    shown = every.filter(passes),
    acted = every.filter(([, d]) => d.acted),
    saved = acted.filter(([, d]) => d.kind !== 'launch').reduce((t, [, d]) => t + (d.delta_usd_mo || 0), 0),
    reasons = [...new Set(every.map(([, d]) => d.reason))].sort(),
    set = (field) => (v) => {
      state[field] = v;
      repaint();
    };
  const kinds = [['launch', 'launch'], ['replace', 'replace'], ['delete', 'delete'], ['interrupt', 'interrupted'], ['refuse', 'refused'], ['abort', 'aborted']];
  return [
    h(
      'div',
      { class: 'vhead' },
      h('h1', {}, 'Decisions'),
      h('p', {}, `${counted(every.length, 'decision')}: ${acted.length} acted, ${every.filter(([, d]) => d.refused).length} refused. Moves `, h('b', { class: 'nw ' + (saved < 0 ? 'pos' : '') }, change(saved, usd0) + '/mo'), '.'),
      h('span', { class: 'sp' }),
      h('div', { class: 'legend' }, kinds.map(([k, t]) => h('span', { class: 'kind ' + k, key: k }, ic('k-' + k), t))),
    ),
    h('div', { class: 'tl', sized: 'timeline' }, every.length ? timeline(shown, width('timeline', 1100), repaint) : null),
    h(
      'div',
      { class: 'filters' },
      seg('Outcome', [['all', 'All'], ['acted', 'Acted'], ['refused', 'Refused']], state.act, set('act')),
      select('Reason', [['all', 'All reasons'], ...reasons.map((r) => [r, r])], state.reason, set('reason')),
      select('Pool', [['all', 'All pools'], ...poolNames().map((p) => [p, p])], state.pool, set('pool')),
      h('span', { class: 'muted' }, `${shown.length} shown`),
      h('span', { class: 'grow' }),
      h('button', { class: 'btn sm', type: 'button', on: { click: () => csv(shown) } }, 'Export CSV'),
    ),
    h(
      'div',
      { class: 'dl' },
      h('div', { class: 'drow hrow', 'aria-hidden': 'true', key: 'head' }, h('span'), h('span', { class: 't0' }, 'Time'), h('span', {}, 'Id'), h('span', {}, 'Action'), h('span', {}, 'What'), h('span', { class: 'r' }, 'Reason'), h('span', {}, 'Pool'), h('span', { class: 'num pd' }, 'Pods'), h('span', { class: 'num' }, '$/mo')),
      !shown.length
        ? h(
            'div',
            { class: 'empty', key: 'empty' },
            every.length ? 'No decision matches these filters.' : [h('b', {}, 'Nothing was decided yet'), 'What is done, and what is not, is written down here with its why.'],
            every.length ? h('button', { class: 'btn', type: 'button', on: { click: () => { Object.assign(state, { act: 'all', reason: 'all', pool: 'all' }); repaint(); } } }, 'Clear filters') : null,
          )
        : shown.slice(0, state.most).map((entry) => row(entry, repaint)),
      shown.length > state.most ? h('div', { class: 'empty', key: 'more' }, h('button', { class: 'btn', type: 'button', on: { click: () => { state.most += MORE; repaint(); } } }, `Show ${Math.min(MORE, shown.length - state.most)} more of ${shown.length - state.most}`)) : null,
    ),
    h('p', { class: 'note' }, 'Figures in brackets are savings forgone by a refusal. Every id is also in the log line, the event and the NodeClaim.'),
  ];
}
