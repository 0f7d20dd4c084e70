// Fleet: pools by zones. A node's area is its vCPU, its bars what is asked of it; many nodes are drawn, few are elements.

import { $, h, say, show, width } from './dom.js';
import { age, capWord, counted, nf, pct, share, shortType, usd, usd4 } from './format.js';
import { draw, hit, layout } from './canvas.js';
import { fillClass, hideTip, labelled, podCells, seg } from './parts.js';
import { all, get, poolNames, since } from './store.js';

export const needs = ['nodes', 'marks', 'pools', 'title'];
export const state = { colour: 'fill', zoom: 'nodes', node: null, focus: null };
/** From so many nodes on they are drawn. */
export const MANY = 400;
const COLOURS = ['fill', 'cap', 'age', 'drift'];
const YOUNG = 15 * 60;

export const sick = (n) => n.state === 'NotReady' || n.state === 'Leaving';
const unborn = (n) => n.state === 'Launching' || n.state === 'Starting';
const capClass = (cap) => (cap === 'spot' ? 'cS' : cap === 'reserved' ? 'cR' : 'cO');
const ageClass = (sec) => (sec < 2 * 3600 ? 'a0' : sec < 86400 ? 'a1' : sec < 7 * 86400 ? 'a2' : 'a3');
/** The class of a node's bars; none for their fill. */
export const colourOf = (n) => {
  if (state.colour === 'cap') return capClass(n.capacity_type);
  if (state.colour === 'age') return ageClass(since(n.created) ?? 0);
  if (state.colour === 'drift') return sick(n) ? 'dx' : n.drifted ? 'd1' : 'd2';
  return null;
};
export const flagOf = (name, n) => {
  if (sick(n)) return 'bad';
  const mark = get('marks', name);
  if (mark?.next) return 'next';
  return unborn(n) || (since(n.created) ?? YOUNG) < YOUNG ? 'new' : null;
};
export const words = (name, n) => {
  const mark = get('marks', name);
  return [
    name,
    `${n.instance_type || 'unknown type'} ${capWord(n.capacity_type)}`,
    n.zone || 'no zone',
    `cpu ${Math.round(share(n.cpu_m) * 100)} %`,
    `memory ${Math.round(share(n.memory_mib) * 100)} %`,
    n.usd_h == null ? 'price unknown' : `${usd4(n.usd_h)} per hour`,
    n.state === 'Ready' ? '' : n.state,
    mark?.held ? 'held: ' + mark.held.text : '',
    n.drifted ? 'drifted' : '',
    mark?.next ? 'next: ' + mark.next.action : '',
  ]
    .filter(Boolean)
    .join(', ');
};

/** Names need no language, and comparing in one is slow. */
const order = (a, b) => (a < b ? -1 : a > b ? 1 : 0);

/** Rows and columns of the map, with the nodes of each cell: the largest first. */
export function grid() {
  const cells = new Map(),
    zones = new Set(),
    pools = new Set(poolNames());
  for (const [name, n] of Object.entries(all('nodes'))) {
    const zone = n.zone || 'no zone yet',
      pool = n.pool || 'not ours';
    zones.add(zone);
    pools.add(pool);
    const key = pool + '\n' + zone;
    (cells.get(key) || cells.set(key, []).get(key)).push([name, n]);
  }
  for (const list of cells.values()) list.sort(([x, a], [y, b]) => b.vcpu - a.vcpu || order(a.instance_type || '', b.instance_type || '') || share(b.cpu_m) - share(a.cpu_m) || order(x, y));
  const all_ = [...poolNames(), ...[...pools].filter((p) => !all('pools')[p])];
  return { cells, zones: [...zones].sort(), pools: all_ };
}

const sum = (list, f) => list.reduce((t, [, n]) => t + f(n), 0);

export function tip(name, rect) {
  const n = get('nodes', name),
    el = $('tip');
  if (!n) return hideTip();
  const mark = get('marks', name);
  show(
    el,
    h('div', { class: 'r' }, h('b', {}, name), h('span', {}, n.usd_h == null ? 'price unknown' : usd4(n.usd_h) + '/h')),
    h('div', { class: 'r sec' }, h('span', {}, `${n.instance_type || 'unknown type'} ${capWord(n.capacity_type)}, ${n.zone || 'no zone'}`), h('span', {}, n.created ? age(since(n.created)) : '')),
    labelled('cpu', share(n.cpu_m)),
    labelled('mem', share(n.memory_mib)),
    h(
      'div',
      { class: 'pods' },
      h('div', { class: 'r muted' }, h('span', {}, `${n.pods} of ${n.pod_capacity} pods`), h('span', { class: 'trunc' }, n.state !== 'Ready' ? n.state : mark?.held ? 'held: ' + mark.held.word : mark?.next ? 'next: ' + mark.next.action : n.drifted ? 'drifted' : '')),
      podCells(n.cells.slice(0, 60)),
    ),
  );
  el.hidden = false;
  const w = 316,
    x = Math.max(8, Math.min(innerWidth - w - 8, rect.left)),
    below = rect.bottom + 8 + el.offsetHeight < innerHeight;
  el.style.setProperty('left', x + 'px');
  el.style.setProperty('top', (below ? rect.bottom + 8 : Math.max(8, rect.top - el.offsetHeight - 8)) + 'px');
}

function tile(name, n, k, first, pick) {
  const w = Math.max(14, n.vcpu * k - 3),
    cls = colourOf(n),
    zoomed = state.zoom === 'pods';
  const type = n.instance_type || '';
  const label = [type, shortType(type), shortType(type).split('.')[0], ''].find((l) => l.length * 6.4 + 8 <= w || !l);
  const lane = (fill, kind) => {
    const f = share(fill);
    return h(
      'span',
      { class: 'lane ' + kind },
      zoomed
        ? n.cells.map(([cpu, mem, flag]) => h('i', { class: (flag === 1 ? 'ds' : cls || fillClass(f)) + (flag === 2 ? ' pin' : ''), css: { width: (((kind === 'cpu' ? cpu : mem) / Math.max(1, fill.allocatable)) * 100).toFixed(2) + '%' } }))
        : h('i', { class: cls || fillClass(f), css: { width: (Math.min(1, f) * 100).toFixed(1) + '%' } }),
    );
  };
  const flag = flagOf(name, n);
  return h(
    'button',
    {
      key: name,
      type: 'button',
      class: 'tile' + (get('marks', name)?.held ? ' held' : '') + (sick(n) ? ' gone' : '') + (unborn(n) ? ' fresh' : ''),
      'aria-label': words(name, n),
      'aria-pressed': String(state.node === name),
      tabindex: first ? 0 : -1,
      'data-n': name,
      css: { width: w.toFixed(1) + 'px' },
      on: {
        click: () => pick(name),
        mouseenter: (e) => tip(name, e.currentTarget.getBoundingClientRect()),
        mouseleave: hideTip,
        focus: (e) => {
          state.focus = name;
          if (e.currentTarget.matches(':focus-visible')) tip(name, e.currentTarget.getBoundingClientRect());
        },
        blur: hideTip,
      },
    },
    h('span', { class: 'nm' }, label),
    lane(n.cpu_m, 'cpu'),
    lane(n.memory_mib, 'mem'),
    flag ? h('i', { class: 'flag ' + flag }) : null,
  );
}

/** A cell whose nodes are drawn; one button stands for the one that has the focus. */
function drawn(list, w, pick, repaint, hasFocus, key) {
  const plan = layout(list, w);
  const at = hasFocus ? list.findIndex(([name]) => name === state.focus) : -1;
  const focus = (to) => {
    const next = list[Math.max(0, Math.min(list.length - 1, to))];
    if (!next) return;
    state.focus = next[0];
    repaint();
  };
  const [name, n] = list[Math.max(0, at)] || [];
  return h(
    'div',
    { class: 'drawn' },
    h('canvas', {
      key: 'c' + key,
      'aria-hidden': 'true',
      css: { width: w + 'px', height: plan.height + 'px' },
      ref: (el) => draw(el, plan, w),
      on: {
        mousemove: (e) => {
          const found = hit(plan, e.offsetX, e.offsetY);
          if (!found) return hideTip();
          const r = e.currentTarget.getBoundingClientRect();
          tip(found.name, { left: r.left + found.x, right: r.left + found.x + found.w, top: r.top + found.y, bottom: r.top + found.y + found.h });
        },
        mouseleave: hideTip,
        click: (e) => {
          const found = hit(plan, e.offsetX, e.offsetY);
          if (found) pick(found.name);
        },
      },
    }),
    name
      ? h(
          'button',
          {
            key: 'b' + key,
            type: 'button',
            class: 'rove',
            'aria-label': words(name, n) + `; ${Math.max(0, at) + 1} of ${list.length}, arrows move`,
            on: {
              focus: () => {
                if (at < 0) focus(0);
              },
              blur: () => {
                state.focus = null;
                hideTip();
                repaint();
              },
              click: () => pick(name),
              keydown: (e) => {
                const rows = plan.perRow || 1;
                const by = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: rows, ArrowUp: -rows, Home: -list.length, End: list.length }[e.key];
                if (!by) return;
                e.preventDefault();
                e.stopPropagation();
                focus(Math.max(0, at) + by);
              },
            },
          },
          '',
        )
      : null,
  );
}

const LEGEND = {
  fill: [['f0', 'below 20 %'], ['f1', '20'], ['f2', '40'], ['f3', '60'], ['f4', 'above 80 % (full is good)']],
  cap: [['cS', 'spot'], ['cO', 'on-demand'], ['cR', 'reserved']],
  age: [['a0', 'under 2 h'], ['a1', 'under 1 d'], ['a2', 'under 7 d'], ['a3', 'older']],
  drift: [['d2', 'as its pool asks'], ['d1', 'drifted'], ['dx', 'not ready or leaving']],
};

/** Arrows go to the nearest tile that way. */
function arrows(e) {
  const by = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: 'd', ArrowUp: 'u' }[e.key];
  const tiles = [...e.currentTarget.querySelectorAll('.tile')],
    i = tiles.indexOf(document.activeElement);
  if (!by || i < 0) return;
  e.preventDefault();
  let to = tiles[i + by];
  if (typeof by === 'string') {
    const r = tiles[i].getBoundingClientRect(),
      cx = r.left + r.width / 2;
    const far = (q) => Math.abs(q.top - r.top) + Math.abs(q.left + q.width / 2 - cx) * 0.5;
    to = tiles
      .map((x) => [x, x.getBoundingClientRect()])
      .filter(([, q]) => (by === 'd' ? q.top > r.bottom - 4 : q.bottom < r.top + 4))
      .sort((a, b) => far(a[1]) - far(b[1]))[0]?.[0];
  }
  if (!to) return;
  tiles[i].tabIndex = -1;
  to.tabIndex = 0;
  to.focus();
}

export const next = (what) => {
  if (what === 'colour') state.colour = COLOURS[(COLOURS.indexOf(state.colour) + 1) % COLOURS.length];
  else state.zoom = state.zoom === 'pods' ? 'nodes' : 'pods';
  say(what === 'colour' ? `Colour by ${state.colour}` : `Zoom: ${state.zoom}`);
};

export function view(repaint, pick) {
  const { cells, zones, pools } = grid();
  const count = Object.keys(all('nodes')).length,
    many = count > MANY;
  const narrow = innerWidth <= 760,
    w = width('matrix', 1100),
    head = narrow ? 0 : innerWidth <= 1200 ? 118 : 150;
  const cw = Math.max(60, narrow ? w : (w - head) / Math.max(1, zones.length) - 15);
  const big = Math.max(1, ...Object.values(all('nodes')).map((n) => n.vcpu));
  const roomy = count <= 30 ? 24 : count <= 80 ? 15 : 11;
  const k = Math.min(state.zoom === 'pods' ? roomy * 1.2 : roomy, cw / big);
  const set = (field) => (v) => {
    state[field] = v;
    repaint();
  };
  let first = !Object.keys(all('nodes')).includes(state.focus);
  return [
    h(
      'div',
      { class: 'vhead' },
      h('h1', {}, 'Fleet'),
      h('p', {}, 'Area is vCPU. Upper bar cpu, lower bar memory, both requested over allocatable.'),
      h('span', { class: 'sp' }),
      seg('Colour by', [['fill', 'Fill'], ['cap', 'Capacity'], ['age', 'Age'], ['drift', 'Drift']], state.colour, set('colour')),
      many ? null : seg('Zoom', [['nodes', 'Nodes'], ['pods', 'Pods']], state.zoom, set('zoom')),
    ),
    !count
      ? h('div', { class: 'empty first' }, h('b', {}, 'There are no nodes yet'), 'Pods that find no place bring them.')
      : h(
          'div',
          {
            class: 'matrix' + (state.zoom === 'pods' && !many ? ' zoomed' : '') + (many ? ' many' : ''),
            role: 'group',
            'aria-label': 'Nodes by pool and zone',
            sized: 'matrix',
            css: { 'grid-template-columns': narrow ? 'minmax(0, 1fr)' : `${head}px repeat(${zones.length}, minmax(0, 1fr))` },
            on: { keydown: arrows },
          },
          h('div', { class: 'corner', key: 'corner' }),
          zones.map((zone) => {
            const list = pools.flatMap((pool) => cells.get(pool + '\n' + zone) || []);
            const vcpu = sum(list, (n) => n.vcpu);
            return h('div', { class: 'zh', key: 'z' + zone }, h('b', {}, zone), h('span', { class: 'trunc' }, `${counted(list.length, 'node')} \u00b7 ${usd(sum(list, (n) => n.usd_h || 0))}/h \u00b7 ${pct(vcpu ? sum(list, (n) => (n.capacity_type === 'spot' ? n.vcpu : 0)) / vcpu : 0)} spot`));
          }),
          pools.map((pool) => {
            const card = all('pools')[pool],
              list = zones.flatMap((zone) => cells.get(pool + '\n' + zone) || []);
            return [
              h(
                'div',
                { class: 'ph', key: 'p' + pool },
                card ? h('a', { href: '#pools/' + pool }, pool) : h('b', {}, pool),
                h('div', { class: 'sub' }, `${counted(card ? card.nodes + card.launching : list.length, 'node')}, ${nf(card ? card.vcpu : sum(list, (n) => n.vcpu))} vCPU`, h('br'), card ? `${usd(card.spend_usd_h)}/h` : 'never removed'),
                card && card.nodes ? h('div', { class: 'rows' }, labelled('cpu', share(card.cpu_m)), labelled('mem', share(card.memory_mib))) : null,
              ),
              zones.map((zone) => {
                const key = pool + '\n' + zone,
                  here = cells.get(key);
                if (!here) return h('div', { class: 'cell none', 'data-zone': zone, key }, narrow ? null : 'no nodes');
                if (many) return h('div', { class: 'cell', 'data-zone': zone, key }, drawn(here, Math.floor(cw), pick, repaint, here.some(([name]) => name === state.focus), key));
                return h(
                  'div',
                  { class: 'cell', 'data-zone': zone, key },
                  here.map(([name, n]) => {
                    const is = first || state.focus === name;
                    first = false;
                    return tile(name, n, k, is, pick);
                  }),
                );
              }),
            ];
          }),
        ),
    h(
      'div',
      { class: 'legend maplg' },
      LEGEND[state.colour].map(([cls, text]) => h('span', { key: cls }, h('i', { class: 'sw ' + cls }), text)),
      h('span', { class: 'opt' }, h('i', { class: 'sw h' }), 'held: may not be disrupted'),
      h('span', { class: 'opt' }, h('i', { class: 'sw corner-next' }), 'has a planned action'),
      h('span', { class: 'opt' }, h('i', { class: 'sw corner-new' }), 'younger than 15 min'),
      h('span', { class: 'opt' }, h('i', { class: 'sw corner-bad' }), 'not ready or leaving'),
      state.zoom === 'pods' && !many ? h('span', {}, h('i', { class: 'sw d0' }), 'DaemonSet pods') : null,
    ),
  ];
}
