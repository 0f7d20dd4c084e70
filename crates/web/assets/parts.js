// Pieces that several views share.

import { $, h, ic, s, say } from './dom.js';
import { pct } from './format.js';
import { poolColour } from './store.js';

export const fillClass = (f) => 'f' + Math.min(4, Math.floor(Math.max(0, f) * 5));
export const bar = (f, cls) => h('span', { class: 'mbar' }, h('i', { class: cls || fillClass(f), css: { width: Math.min(100, f * 100).toFixed(2) + '%' } }));
export const labelled = (name, f, text) => h('div', { class: 'lab' }, h('span', {}, name), bar(f), h('span', {}, text ?? pct(f)));
export const poolTag = (pool) => h('span', { class: 'nw' }, h('i', { class: 'dotp ' + poolColour(pool), 'aria-hidden': 'true' }), pool || 'no pool');
export const seg = (label, options, current, fn) =>
  h(
    'div',
    { class: 'seg', role: 'group', 'aria-label': label },
    options.map(([v, t]) => h('button', { key: v, type: 'button', 'aria-pressed': String(v === current), on: { click: () => fn(v) } }, t)),
  );
export const select = (label, options, current, fn) =>
  h(
    'select',
    { 'aria-label': label, value: current, on: { change: (e) => fn(e.target.value) } },
    options.map((o) => {
      const [v, t] = Array.isArray(o) ? o : [o, o];
      return h('option', { key: v, value: v }, t);
    }),
  );
export const copyButton = (text, what) =>
  h(
    'button',
    {
      class: 'btn sm',
      type: 'button',
      'aria-label': 'Copy ' + what,
      on: {
        click: async (e) => {
          const label = e.currentTarget.querySelector('span');
          try {
            await navigator.clipboard.writeText(text);
          } catch {
            const area = document.createElement('textarea');
            area.className = 'vh';
            area.value = text;
            document.body.append(area);
            area.select();
            document.execCommand('copy');
            area.remove();
          }
          label.textContent = 'Copied';
          say(what + ' copied');
          setTimeout(() => {
            label.textContent = 'Copy';
          }, 1400);
        },
      },
    },
    ic('i-copy'),
    h('span', {}, 'Copy'),
  );
/** Lines of YAML, each with `+`, `-` or a blank in front. */
export const diff = (title, lines) => [
  h('div', { class: 'dh' }, h('code', {}, title), copyButton(lines.join('\n'), 'YAML')),
  h(
    'pre',
    { class: 'diff', tabindex: 0, 'aria-label': 'Change as YAML' },
    lines.map((line) => h('span', { class: line[0] === '+' ? 'a' : line[0] === '-' ? 'd' : null }, line)),
  ),
];
export const section = (id, title, extra, ...kids) =>
  h('section', { 'aria-labelledby': id }, h('div', { class: 'sh' }, h('h2', { id }, title), extra), kids);
export const th = (text, cls) => h('th', { scope: 'col', class: cls || null }, text);
/** A pod's cells: its size is its area. */
export const podCells = (cells) =>
  h(
    'div',
    { class: 'pcells', 'aria-hidden': 'true' },
    cells.map(([cpu, , flag]) => h('i', { class: 'pc' + (flag === 1 ? ' ds' : flag === 2 ? ' pin' : ''), css: { width: Math.max(5, Math.sqrt(cpu) * 0.62).toFixed(1) + 'px' } })),
  );
export const hideTip = () => {
  $('tip').hidden = true;
};
export const failure = (problem) => h('p', { class: 'neg', role: 'alert' }, [problem.error, problem.why, problem.next].filter(Boolean).join('. '));
export { s };
