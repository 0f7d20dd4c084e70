// A picture of the page as plain objects, and how the document comes to look like it. Elements that stay are kept, with
// their focus, their scroll position and their listeners; styles are set through the CSSOM, so a strict policy holds.

export const $ = (id) => document.getElementById(id);

const flat = (kids, out = []) => {
  for (const kid of kids) {
    if (kid == null || kid === false || kid === '') continue;
    if (Array.isArray(kid)) flat(kid, out);
    else out.push(typeof kid === 'object' ? kid : { text: String(kid) });
  }
  return out;
};
const node = (t, p, kids, svg) => ({ t, p: p || {}, k: flat(kids), svg, key: p?.key });

/** An HTML element. */
export const h = (t, p, ...kids) => node(t, p, kids, false);
/** An SVG element. */
export const s = (t, p, ...kids) => node(t, p, kids, true);
/** A symbol of the sprite. */
export const ic = (name, cls = '') => s('svg', { class: 'ic ' + cls, 'aria-hidden': 'true' }, s('use', { href: '#' + name }));

const heard = (e) => e.currentTarget._on?.[e.type]?.(e);
const listen = (el, on) => {
  el._on = on;
  el._types ??= new Set();
  for (const type of Object.keys(on || {}))
    if (!el._types.has(type)) {
      el._types.add(type);
      el.addEventListener(type, heard);
    }
};

const widths = new Map();
let onResize = () => {};
const observer = new ResizeObserver((entries) => {
  let changed = false;
  for (const { target } of entries) {
    const w = Math.floor(target.clientWidth);
    if (w && widths.get(target._sized) !== w) {
      widths.set(target._sized, w);
      changed = true;
    }
  }
  if (changed) requestAnimationFrame(onResize);
});
/** The width of the element that was given this name with `sized`; the guess until it is there. */
export const width = (name, guess = 800) => widths.get(name) || guess;
export const whenResized = (fn) => {
  onResize = fn;
};

const SPECIAL = new Set(['on', 'css', 'key', 'value', 'checked', 'sized', 'ref', 'sel']);
function attributes(el, was, is) {
  for (const name of Object.keys(was)) if (!SPECIAL.has(name) && !(name in is)) el.removeAttribute(name);
  for (const [name, value] of Object.entries(is)) {
    if (SPECIAL.has(name) || was[name] === value) continue;
    if (value == null || value === false) el.removeAttribute(name);
    else el.setAttribute(name, value === true ? '' : value);
  }
  if (is.on || was.on) listen(el, is.on);
  if (is.css || was.css) {
    for (const name of Object.keys(was.css || {})) if (!(name in (is.css || {}))) el.style.removeProperty(name);
    for (const [name, value] of Object.entries(is.css || {})) if (was.css?.[name] !== value) el.style.setProperty(name, value);
  }
  if ('value' in is && el !== document.activeElement && el.value !== String(is.value)) el.value = is.value;
  if ('checked' in is && el.checked !== is.checked) el.checked = is.checked;
  if (is.sized && !el._sized) {
    el._sized = is.sized;
    observer.observe(el);
    const w = Math.floor(el.clientWidth);
    if (w && widths.get(is.sized) !== w) {
      widths.set(is.sized, w);
      requestAnimationFrame(onResize);
    }
  }
}

function create(v) {
  if (v.text != null) return (v.el = document.createTextNode(v.text));
  const el = v.svg ? document.createElementNS('http://www.w3.org/2000/svg', v.t) : document.createElement(v.t);
  v.el = el;
  for (const kid of v.k) el.append(create(kid));
  // Children first: a select can only have the value of an option that is there.
  attributes(el, {}, v.p);
  v.p.ref?.(el);
  return el;
}

function update(was, is) {
  is.el = was.el;
  if (is.text != null) {
    if (was.text !== is.text) is.el.data = is.text;
    return;
  }
  children(is.el, was.k, is.k);
  attributes(is.el, was.p, is.p);
  is.p.ref?.(is.el);
}

const alike = (a, b) => a && a.t === b.t && (a.text == null) === (b.text == null);

function children(el, olds, news) {
  const keyed = new Map();
  const plain = [];
  for (const old of olds) old.key != null ? keyed.set(old.key, old) : plain.push(old);
  const kept = new Set();
  let at = 0;
  for (const is of news) {
    const was = is.key != null ? keyed.get(is.key) : plain[at++];
    if (was && !kept.has(was) && alike(was, is)) {
      kept.add(was);
      update(was, is);
    }
  }
  for (const old of olds) if (!kept.has(old)) old.el.remove();
  let place = el.firstChild;
  for (const is of news) {
    if (!is.el) create(is);
    if (is.el === place) place = place.nextSibling;
    else el.insertBefore(is.el, place);
  }
}

/** Lets an element have these children. */
export function show(el, ...kids) {
  const news = flat(kids);
  const focused = document.activeElement;
  children(el, el._shown || [], news);
  el._shown = news;
  if (focused && focused !== document.activeElement && focused.isConnected && el.contains(focused)) focused.focus({ preventScroll: true });
}

/** Says something to those who listen instead of looking. */
export const say = (text) => {
  $('live').textContent = text;
};
