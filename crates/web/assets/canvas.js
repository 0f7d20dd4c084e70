// Many nodes, drawn: where each one is, how it looks, and which one is under the pointer.

import { share } from './format.js';
import { fillClass } from './parts.js';
import { get } from './store.js';
import { colourOf, flagOf, sick, state } from './fleet.js';

const H = 22,
  GAP = 2;
const COLOUR = { cS: '--spot', cO: '--od', cR: '--rsv', a0: '--a0', a1: '--a1', a2: '--a2', a3: '--a3', d0: '--line-2', d1: '--f0', d2: '--f4', dx: '--stop', f0: '--f0', f1: '--f1', f2: '--f2', f3: '--f3', f4: '--f4' };
const FLAG = { next: '--accent', new: '--good', bad: '--stop' };

let palette = null;
/** The colours of the theme, read once until it changes. */
export const forgetColours = () => {
  palette = null;
};
const paint = (name) => {
  palette ??= { style: getComputedStyle(document.documentElement), known: {} };
  return (palette.known[name] ??= palette.style.getPropertyValue(name).trim());
};

/** Where each node of a list is in a cell of this width. */
export function layout(list, w) {
  const k = Math.min(2.2, (w - GAP) / Math.max(1, list[0]?.[1].vcpu || 1));
  let x = 0,
    y = 0,
    perRow = 0;
  const boxes = list.map(([name, n], i) => {
    const bw = Math.max(9, Math.round(n.vcpu * k) - GAP);
    if (x + bw > w && x > 0) {
      perRow ||= i;
      x = 0;
      y += H + GAP;
    }
    const box = { name, n, x, y, w: bw, h: H };
    x += bw + GAP;
    return box;
  });
  return { boxes, height: y + H, perRow: perRow || list.length };
}

/** The box under a point. */
export const hit = (plan, x, y) => plan.boxes.find((b) => x >= b.x && x < b.x + b.w && y >= b.y && y < b.y + b.h);

export function draw(el, plan, w) {
  const ratio = Math.min(2, devicePixelRatio || 1);
  const [pw, ph] = [Math.round(w * ratio), Math.round(plan.height * ratio)];
  if (el.width !== pw) el.width = pw;
  if (el.height !== ph) el.height = ph;
  const c = el.getContext('2d');
  c.setTransform(ratio, 0, 0, ratio, 0, 0);
  c.clearRect(0, 0, w, plan.height);
  const [ground, lane, ring, ink, hatch] = [paint('--sunken'), paint('--bg'), paint('--accent'), paint('--ink'), paint('--hatch')];
  for (const b of plan.boxes) {
    const n = b.n,
      cls = colourOf(n),
      inner = b.w - 4;
    c.globalAlpha = sick(n) ? 0.5 : 1;
    c.fillStyle = ground;
    c.fillRect(b.x, b.y, b.w, b.h);
    c.fillStyle = lane;
    c.fillRect(b.x + 2, b.y + 4, inner, 9);
    c.fillRect(b.x + 2, b.y + 14, inner, 6);
    const [cpu, mem] = [share(n.cpu_m), share(n.memory_mib)];
    c.fillStyle = paint(COLOUR[cls || fillClass(cpu)]);
    c.fillRect(b.x + 2, b.y + 4, inner * Math.min(1, cpu), 9);
    if (!cls) c.fillStyle = paint(COLOUR[fillClass(mem)]);
    c.fillRect(b.x + 2, b.y + 14, inner * Math.min(1, mem), 6);
    c.globalAlpha = 1;
    if (get('marks', b.name)?.held) {
      c.fillStyle = hatch;
      for (let x = b.x + 1; x < b.x + b.w - 1; x += 3) c.fillRect(x, b.y, 1, 3);
    }
    const flag = flagOf(b.name, n);
    if (flag) {
      c.fillStyle = paint(FLAG[flag]);
      c.beginPath();
      c.moveTo(b.x + b.w - 5, b.y);
      c.lineTo(b.x + b.w, b.y);
      c.lineTo(b.x + b.w, b.y + 5);
      c.fill();
    }
    if (state.node === b.name || state.focus === b.name) {
      c.strokeStyle = state.focus === b.name ? ring : ink;
      c.lineWidth = 2;
      c.strokeRect(b.x + 1, b.y + 1, b.w - 2, b.h - 2);
    }
  }
}
