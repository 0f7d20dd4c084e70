// The shell: which view is open, what the keys do, and when what is painted again.

import { $, h, ic, s, say, show, whenResized } from './dom.js';
import { clock, nf, pct, share, shortId, span, usd } from './format.js';
import { bar, hideTip } from './parts.js';
import { forgetColours } from './canvas.js';
import { all, ask, connect, link, one, poolNames, rows, setToken, whenChanged } from './store.js';
import * as overview from './overview.js';
import * as fleet from './fleet.js';
import * as pending from './pending.js';
import * as decisions from './decisions.js';
import * as pools from './pools.js';
import * as whatif from './whatif.js';
import { panel } from './node.js';

const VIEWS = [
  ['overview', 'Overview', overview],
  ['fleet', 'Fleet', fleet],
  ['pending', 'Pending', pending],
  ['decisions', 'Decisions', decisions],
  ['pools', 'NodePools', pools],
  ['whatif', 'What if', whatif],
];
const shell = { view: 'overview', speed: null };
const current = () => VIEWS.find(([id]) => id === shell.view);

// ---- painting: at most once a frame, and only what has changed ------------------------------------------------

const dirty = { main: true, head: true, panel: true, due: false };
function paint() {
  dirty.due = false;
  const { main, head, panel: side } = dirty;
  dirty.main = dirty.head = dirty.panel = false;
  const began = performance.now();
  if (head) paintHead();
  if (main) show($('main'), h('div', { key: shell.view }, current()[2].view(repaint, pick)));
  if (side || main) panel(shell.view === 'fleet', closeNode, repaintPanel);
  const took = performance.now() - began;
  // For tests and the curious: how long painting takes.
  (window.dovetailPaints ??= []).push(took);
  if (window.dovetailPaints.length > 200) window.dovetailPaints.shift();
}
function schedule() {
  if (dirty.due) return;
  dirty.due = true;
  requestAnimationFrame(paint);
}
/** Paints now what is due: the next key means what is on the screen after the last one. */
function catchUp() {
  if (dirty.due) paint();
}
function repaint() {
  dirty.main = true;
  schedule();
}
function repaintPanel() {
  dirty.panel = true;
  schedule();
}
whenResized(repaint);
whenChanged((changed) => {
  const touches = (needs) => !changed || needs.some((name) => changed.has(name));
  dirty.main ||= touches(current()[2].needs);
  dirty.head ||= touches(['now', 'title', 'stage', 'eye', 'decisions', 'pools', 'pending']);
  dirty.panel ||= shell.view === 'fleet' && fleet.state.node && (!changed || changed.has('nodes'));
  schedule();
});

// ---- header, rail, demo bar -----------------------------------------------------------------------------------

function paintHead() {
  const N = one('now'),
    title = one('title');
  const counts = { fleet: N ? N.fleet.nodes + N.fleet.launching : 0, pending: N?.pods.pending, decisions: Object.keys(all('decisions')).length, pools: poolNames().length };
  show(
    $('nav'),
    VIEWS.map(([id, name], i) =>
      h(
        'li',
        { key: id },
        h(
          'a',
          { href: '#' + id, 'aria-current': shell.view === id ? 'page' : null, title: `${name} (${i + 1})` },
          ic('i-' + id),
          h('span', { class: 'lbl' }, name),
          counts[id] ? h('span', { class: 'cnt' + (id === 'pending' ? ' hot' : '') }, nf(counts[id])) : null,
          h('kbd', { 'aria-hidden': 'true' }, i + 1),
        ),
      ),
    ),
  );
  const line = link();
  const mode = { demo: 'demo', acting: 'acting', dump: 'read only' }[title?.mode] || 'connecting';
  show(
    $('ctx'),
    h('b', {}, title?.cluster || 'Dovetail'),
    h('span', { class: 'sec trunc' }, [title?.place, N?.kubernetes.split(/[-+]/)[0]].filter(Boolean).join(', ')),
    line.ok || !title
      ? h('span', { class: 'mode', title: title?.mode === 'acting' ? 'decisions are carried out' : 'nothing outside this process is changed' }, h('i'), title ? mode : 'connecting')
      : h('span', { class: 'mode stale', role: 'status', title: line.why }, h('i'), line.quiet > 2 ? `no news, data ${span(line.quiet)} old` : 'reconnecting'),
  );
  const one_ = (name, f, cls) => h('span', { class: 'mb ' + cls }, name, bar(f), h('b', {}, pct(f, 1)));
  show(
    $('oneline'),
    N
      ? [
          h('span', {}, h('b', { id: 'one-nodes' }, nf(N.fleet.nodes)), ' nodes'),
          one_('cpu', share(N.fleet.cpu_m), 'x1'),
          one_('mem', share(N.fleet.memory_mib), 'x1'),
          h('span', { class: 'x2' }, h('b', { id: 'one-pods' }, nf(N.pods.running)), ' pods'),
          h('span', {}, h('b', { class: N.pods.pending ? 'neg' : '', id: 'one-pending' }, nf(N.pods.pending)), ' pending'),
          h('span', {}, h('b', { id: 'one-spend' }, usd(N.spend_usd_h)), '/h'),
        ]
      : null,
  );
  const row = (a, b) => h('div', {}, h('span', {}, a), h('span', {}, b));
  show($('about'), N ? row('cluster time', clock(N.at, true)) : null, one('money') ? row('planned at', clock(one('money').at, true)) : null, title ? row('version', title.version) : null);
  paintDemo(title);
}

async function act(id, argument) {
  try {
    const { said } = await ask('api/demo/' + id, argument == null ? {} : { argument });
    if (id !== 'speed') say(said);
  } catch (problem) {
    say([problem.error, problem.why].filter(Boolean).join(': '));
  }
}

let before = 1;
function paintDemo(title) {
  const el = $('demo'),
    stage = one('stage');
  el.hidden = title?.mode !== 'demo' || !stage;
  if (el.hidden) return;
  const speed = stage.speed,
    slider = speed ? Math.round(Math.log2(speed)) : Math.round(Math.log2(before));
  show(
    el,
    h('span', { class: 'ttl' }, 'Demo'),
    title.acts.map((a) => h('button', { key: a.id, class: 'btn', type: 'button', 'data-act': a.id, title: a.about, on: { click: () => act(a.id) } }, a.label)),
    h('span', { class: 'sep' }),
    h(
      'button',
      {
        class: 'ib',
        type: 'button',
        'aria-label': speed ? 'Pause simulation' : 'Resume simulation',
        on: {
          click: () => {
            if (speed) before = speed;
            act('speed', speed ? 0 : before);
          },
        },
      },
      s('svg', { 'aria-hidden': 'true' }, s('use', { href: speed ? '#i-pause' : '#i-play' })),
    ),
    h('label', { class: 'spd' }, 'Speed', h('input', { type: 'range', min: 0, max: 8, step: 1, value: slider, 'aria-label': 'Simulation speed', 'aria-valuetext': `${speed} times`, on: { change: (e) => act('speed', 2 ** Number(e.target.value)) } }), h('output', {}, speed ? speed + '\u00d7' : 'paused')),
    h('span', { class: 'log', role: 'status' }, stage.said ? [h('b', {}, clock(stage.said[0], true)), ' ', stage.said[1]] : 'Press a button, then watch the map.'),
  );
}

// ---- the node that is open ------------------------------------------------------------------------------------

function pick(name) {
  fleet.state.node = name;
  hideTip();
  history.replaceState(null, '', '#fleet/' + name);
  repaint();
}
function closeNode() {
  const name = fleet.state.node;
  fleet.state.node = null;
  history.replaceState(null, '', '#' + shell.view);
  repaint();
  requestAnimationFrame(() => {
    const tile = document.querySelector(`.tile[data-n="${CSS.escape(name || '')}"]`);
    if (tile) {
      tile.tabIndex = 0;
      tile.focus({ preventScroll: true });
    } else $('main').focus({ preventScroll: true });
  });
}

// ---- addresses ------------------------------------------------------------------------------------------------

const go = (hash) => {
  location.hash = hash;
};
function route() {
  const [view, ...rest] = decodeURIComponent(location.hash.slice(1) || 'overview').split('/');
  const argument = rest.join('/');
  const known = VIEWS.some(([id]) => id === view),
    changed = known && view !== shell.view;
  shell.view = known ? view : 'overview';
  hideTip();
  if (view === 'fleet') fleet.state.node = argument || null;
  if (view === 'pending' && argument) pending.open(argument);
  if (view === 'pools') pools.state.arg = argument || null;
  if (view === 'whatif' && argument) whatif.state.kind = argument;
  document.title = `${current()[1]} - Dovetail`;
  dirty.head = true;
  repaint();
  if (view === 'decisions' && argument) decisions.go(argument, repaint);
  if (changed) {
    $('main').scrollTop = 0;
    say(current()[1]);
  }
  if (view === 'pools') requestAnimationFrame(pools.reveal);
}
addEventListener('hashchange', route);

// ---- theme ----------------------------------------------------------------------------------------------------

const root = document.documentElement;
const memory = {
  get: (key) => {
    try {
      return localStorage.getItem(key);
    } catch {
      return null;
    }
  },
  set: (key, value) => {
    try {
      localStorage.setItem(key, value);
    } catch {
      // A browser that keeps nothing shows the page all the same.
    }
  },
};
const wanted = new URLSearchParams(location.search).get('theme') || memory.get('dovetail-theme');
if (wanted === 'light' || wanted === 'dark') root.dataset.theme = wanted;
function turnTheme() {
  const dark = root.dataset.theme ? root.dataset.theme === 'dark' : matchMedia('(prefers-color-scheme: dark)').matches;
  root.dataset.theme = dark ? 'light' : 'dark';
  memory.set('dovetail-theme', root.dataset.theme);
  forgetColours();
  repaint();
  say((dark ? 'Light' : 'Dark') + ' theme');
}
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => {
  forgetColours();
  repaint();
});
$('theme').addEventListener('click', turnTheme);
$('help').addEventListener('click', () => $('keys').showModal());

// ---- search ---------------------------------------------------------------------------------------------------

const field = $('q'),
  hits = $('hits');
const search = { found: [], at: 0 };
function look() {
  const x = field.value.trim().toLowerCase();
  hits.hidden = !x;
  field.setAttribute('aria-expanded', String(!!x));
  if (!x) return;
  const has = (...texts) => texts.some((text) => text?.toLowerCase().includes(x));
  search.found = [
    ...rows('nodes').filter(([name, n]) => has(name, n.instance_type, n.claim)).slice(0, 6).map(([name, n]) => ['node', name, n.instance_type || '', 'fleet/' + name]),
    ...rows('pending').filter(([key, g]) => has(key, g.workload)).slice(0, 4).map(([key, g]) => ['pending', key, g.stops_at || '', 'pending/' + key]),
    ...Object.entries(all('decisions')).filter(([id, d]) => id.startsWith(x) || has(d.what, d.reason)).slice(-5).reverse().map(([id, d]) => ['decision', d.what, shortId(id), 'decisions/' + id]),
    ...poolNames().filter((name) => has(name)).map((name) => ['pool', name, '', 'pools/' + name]),
  ];
  search.at = 0;
  paintHits();
}
function paintHits() {
  show(
    hits,
    search.found.length
      ? search.found.map(([kind, name, more], i) =>
          h(
            'li',
            {
              key: i,
              role: 'option',
              id: 'hit-' + i,
              'aria-selected': String(i === search.at),
              on: {
                mousedown: (e) => {
                  e.preventDefault();
                  take(i);
                },
              },
            },
            h('span', { class: 'muted' }, kind),
            h('span', { class: 'trunc' }, name),
            h('span', { class: 'sec nw' }, more),
          ),
        )
      : h('li', { key: 'none', class: 'none' }, 'Nothing named like that.'),
  );
  field.setAttribute('aria-activedescendant', search.found.length ? 'hit-' + search.at : '');
}
function take(i) {
  const found = search.found[i];
  if (!found) return;
  field.value = '';
  look();
  field.blur();
  go(found[3]);
}
field.addEventListener('input', look);
field.addEventListener('focus', look);
field.addEventListener('blur', () => {
  hits.hidden = true;
});
field.addEventListener('keydown', (e) => {
  if (e.key === 'ArrowDown' || e.key === 'ArrowUp') {
    e.preventDefault();
    const n = search.found.length || 1;
    search.at = (search.at + (e.key === 'ArrowDown' ? 1 : n - 1)) % n;
    paintHits();
    hits.children[search.at]?.scrollIntoView({ block: 'nearest' });
  }
  if (e.key === 'Enter') take(search.at);
  if (e.key === 'Escape') {
    field.value = '';
    look();
    field.blur();
    e.stopPropagation();
  }
});

// ---- keys -----------------------------------------------------------------------------------------------------

function step(by) {
  if (shell.view === 'pending') return pending.walk(by, repaint);
  if (shell.view !== 'decisions') return;
  const list = [...document.querySelectorAll('button.drow')],
    at = list.indexOf(document.activeElement);
  list[Math.max(0, Math.min(list.length - 1, at + by))]?.focus();
}
function back() {
  if (shell.view === 'fleet' && fleet.state.node) return closeNode();
  if (shell.view === 'decisions' && decisions.state.open.size) {
    decisions.state.open.clear();
    repaint();
  }
}
document.addEventListener('keydown', (e) => {
  if (e.ctrlKey || e.metaKey || e.altKey) return;
  const typing = /^(INPUT|SELECT|TEXTAREA)$/.test(e.target.tagName) && !['radio', 'range'].includes(e.target.type);
  if (typing || $('keys').open || $('login').open) return;
  catchUp();
  if (/^[1-6]$/.test(e.key)) {
    go(VIEWS[Number(e.key) - 1][0]);
    // The browser tells of the new address later than the next key of a quick hand.
    route();
    $('main').focus({ preventScroll: true });
  } else if (e.key === '/') {
    e.preventDefault();
    field.focus();
  } else if (e.key === '?') $('keys').showModal();
  else if (e.key === 't') turnTheme();
  else if (e.key === 'Escape') back();
  else if (e.key === 'j') step(1);
  else if (e.key === 'k') step(-1);
  else if (shell.view === 'fleet' && (e.key === 'c' || e.key === 'z')) {
    fleet.next(e.key === 'c' ? 'colour' : 'zoom');
    repaint();
  }
});

// ---- the stream -----------------------------------------------------------------------------------------------

function login(refused) {
  const dialog = $('login');
  if (!refused) return dialog.open && dialog.close();
  $('login-why').textContent = [refused.error, refused.why].filter(Boolean).join(': ') + '.';
  if (!dialog.open) dialog.showModal();
}
$('login-form').addEventListener('submit', (e) => {
  e.preventDefault();
  setToken($('token').value.trim());
  $('token').value = '';
});
$('login').addEventListener('cancel', (e) => e.preventDefault());

setInterval(() => {
  dirty.head = true;
  schedule();
}, 1000);
route();
connect(login);
